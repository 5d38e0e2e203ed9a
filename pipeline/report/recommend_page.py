"""The page of a recommendation, and the sentences that it shares with the terminal and the script."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import Final
from xml.etree.ElementTree import Element

from quotascope.metrics import spelled
from quotascope.pages.markup import Child, element, framed, table
from quotascope.pages.words import counted, moment, percent, period, seconds, shown, spaced

from ..rates import HOURS, GroupUsage, LimitGroup, hour_name, rate
from ..recommend.advice import NOW, RECOMMENDED, Advice, Hit, Recommendation
from ..recommend.coverage import Logged
from .whatif import CHART_NOTES, GroupSummary, group_section

CHARTS: Final = 12
_COLORS: Final = {RECOMMENDED: 0, NOW: 1}
_HEADS: Final = (
    "entity",
    "=quota",
    "#now",
    "#recommended",
    "#lowest",
    "=peak hour",
    "broker",
    "#requests",
    "#throttled while logged",
)
_HIT_HEADS: Final = ("entity", "=quota", "#limit", "#throttled for", "#share", "#longest", "#throttled now")
_OF_SHARES: Final = (
    "Each broker enforces limits separately: a recommended limit is what the broker with the highest demand needs.",
    "The search for the lowest limit takes requests as logged, not slowed down (open loop).",
)
_OF_HITS: Final = "The throttled clients are those of a replay of all quotas together, with Kafka's own precedence."
_NOT_KNOWN: Final = "The configured quotas are unknown here, so that every limit counts as new."


def recommend_page(advice: Advice, usages: Mapping[LimitGroup, GroupUsage], commands: Sequence[str]) -> str:
    """
    The text of a file; names are untrusted, and nothing but text in it.

    Args:
        advice: the limits.
        usages: what the groups of `charted` used.
        commands: that would set the limits.

    """
    return framed("Recommended quotas", _sections(advice, usages, commands))


def _sections(advice: Advice, usages: Mapping[LimitGroup, GroupUsage], commands: Sequence[str]) -> Iterator[Element]:
    zone = advice.policy.zone
    yield element("h1", "Recommended quotas")
    yield element("p", period(advice.source, *advice.span_ms, zone), class_="where")
    yield element("p", headline(advice), class_="headline")
    yield element("ul", *(element("li", sentence) for sentence in caveats(advice)))
    if advice.recommended:
        yield element("h2", "Limits")
        yield table(_HEADS, [_limit(each, advice) for each in advice.recommended])
        yield element("h2", "Throttled clients")
        rows = [
            (spelled(hit.user, hit.client_id), spaced(hit.kind.label), rate(hit.kind, hit.limit), *hit_figures(hit))
            for hit in advice.hits
        ]  # fmt: skip
        yield table(_HIT_HEADS, rows) if rows else element("p", verdict(advice))
        yield element("h2", "Usage against limits")
        for each in charted(advice):
            if each.group in usages:
                yield from group_section(each, usages[each.group], _COLORS, zone)
    yield element("h2", "Commands")
    lines = commands or ("# nothing to change",)
    yield element("pre", "\n".join(shown(line, 100_000) for line in lines))
    charts = CHART_NOTES if advice.recommended else ()
    yield element("ul", *(element("li", note) for note in (*notes(advice), *charts)))


def charted(advice: Advice) -> Sequence[GroupSummary]:
    """The groups that are drawn: those with most requests."""
    found = []
    most = sorted(advice.recommended, key=lambda each: each.requests, reverse=True)
    for made in most[:CHARTS]:
        now = advice.now_of(made)
        limits = {RECOMMENDED: made.limit} | ({} if now is None or now == inf else {NOW: now})
        found.append(GroupSummary(group=LimitGroup(made.kind, *made.names), limits=limits))
    return found


def headline(advice: Advice) -> str:
    """How many limits, and what they would do, in one sentence."""
    policy = advice.policy
    limits = counted(len(advice.recommended), "limit")
    hit = counted(len(advice.hits), "client")
    if advice.protection is not None:
        replayed = f" The replay throttles {hit} at {limits}." if advice.hits else ""
        return f"{advice.protection.headline}{replayed}"
    return f"{limits}, chosen to throttle an entity for at most {percent(policy.share)} of its time, plus {percent(policy.headroom)} of headroom; the replay throttles {hit}."


def caveats(advice: Advice) -> Sequence[str]:
    """What the limits were made of, and why they may be too low, one sentence or two each."""
    coverage, zone = advice.coverage, advice.policy.zone
    begin, end = (moment(time, zone) for time in coverage.span_ms)
    logged = coverage.logged
    silent = f"; for {logged.unknown:,} more it is unknown" if logged.unknown else ""
    made_of = (
        f"The log covers {seconds(coverage.period_ms / 1_000)} ({begin} to {end}) with requests in {coverage.hours_of_week} of the {HOURS} hours of a week; "
        f"{logged.throttled:,} of {logged.known:,} requests ({_share(logged)}) were throttled while it was written{silent}."
    )
    found = [made_of, *(advice.protection.notes if advice.protection else ())]
    if coverage.short:
        found.append("That is less than a day of log: hours that are not in it may need more.")
    if advice.held_back:
        found.append(
            f"{advice.held_back:,} of {counted(len(advice.recommended), 'limit')} (marked *) are of entities that were throttled while the log was written: "
            "what they would have sent otherwise is unknown, and their limits may be too low."
        )
    if any(made.unsized for made in advice.recommended):
        found.append(
            "≥ marks limits that may be too low as the log lacks the size of some requests: of throttled Fetches, and the number of partitions of controller "
            "mutations, which `quotascope ingest --topics` takes."
        )
    return found


def verdict(advice: Advice) -> str:
    """The sentence where the replay throttles no client."""
    if advice.held_back:
        return "No client would be throttled in the replay, but the log has only what clients sent while they were throttled."
    return "No client would be throttled in the replay."


def notes(advice: Advice) -> Sequence[str]:
    """What a reader must know about the figures, one sentence each."""
    return (
        "Nothing was applied.",
        *(_OF_SHARES if advice.protection is None else ()),
        *((_OF_HITS,) if advice.recommended else ()),
        advice.kafka.note,
        *((_NOT_KNOWN,) if advice.now is None else ()),
    )


def configured(advice: Advice, made: Recommendation) -> str:
    """The quota of the same entity and key as configured, or why there is no number."""
    now = advice.now_of(made)
    return advice.state(now) if now is None or now == inf else rate(made.kind, now)


def limit(advice: Advice, made: Recommendation) -> str:
    """The recommended limit, marked where the entity's demand was held back, or not all of it is known."""
    mark = " *" if advice.logged(made).throttled else ""
    return f"{'≥ ' if made.unsized else ''}{rate(made.kind, made.limit)}{mark}"


def peak_hour(made: Recommendation) -> str:
    """The hour of the week with the highest demand."""
    return "any hour" if made.hour is None else hour_name(made.hour)


def hit_figures(hit: Hit) -> tuple[str, ...]:
    """For how long a client would be throttled: in all, as a share of its time, at most, and under the configured quotas."""
    now = hit.muted_now_ms
    return (
        seconds(hit.muted_ms / 1_000),
        percent(hit.share),
        seconds(hit.longest_ms / 1_000),
        "unknown" if now is None else seconds(now / 1_000),
    )


def _limit(made: Recommendation, advice: Advice) -> Sequence[Child]:
    recommended: Child = limit(advice, made)
    now = advice.now_of(made)
    if now is not None and now != made.limit:
        arrow, kind = ("▲", "up") if made.limit > now else ("▼", "down")
        recommended = element("span", f"{arrow} {recommended}", class_=kind)
    return (
        spelled(*made.names),
        spaced(made.kind.label),
        configured(advice, made),
        recommended,
        rate(made.kind, made.lowest),
        peak_hour(made).replace(" ", "\N{NO-BREAK SPACE}"),
        shown(made.broker),
        f"{made.requests:,}",
        _share(advice.logged(made)),
    )


def _share(logged: Logged) -> str:
    return "unknown" if logged.share is None else percent(logged.share)
