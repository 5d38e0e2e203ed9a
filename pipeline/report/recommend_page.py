"""The page of a recommendation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final
from xml.etree.ElementTree import Element

from quotascope.pages.markup import Child, element, framed, table
from quotascope.pages.words import counted, moment, seconds, shown

from ..recommend.advice import NOW, RECOMMENDED, Advice, Hit
from ..recommend.coverage import Logged
from ..recommend.recommendation import Recommendation
from ..week import HOURS, hour_name
from .charts import group_section
from .rollups import Drawn
from .summary import Group, GroupSummary
from .words import percent, rate, spaced, who

CHARTS: Final = 12
_COLORS: Final = {RECOMMENDED: 0, NOW: 1}
_HEADS: Final = ("who", "=quota", "#now", "#recommended", "#lowest", "=decided by", "on broker", "#requests", "#throttled while logged")  # fmt: skip
_HIT_HEADS: Final = ("user", "client id", "=quota", "#limit", "#throttled for", "#share", "#longest", "#now for")  # fmt: skip
_NOTES: Final = (
    "Nothing was applied.",
    "Limits hold for each broker by itself: a recommended one is what the neediest broker needs.",
    "The lowest limit is searched for with requests as they were logged, not slowed down (open loop).",
    "Who would be hit is told by a replay of all quotas together, with Kafka's own precedence.",
)


def recommend_page(
    advice: Advice, usages: Mapping[Group, Drawn], commands: Sequence[str]
) -> str:
    """
    The text of a file; names of strangers are text in it and nothing else.

    Args:
        advice: the limits.
        usages: what the groups of `charted` used.
        commands: that would set the limits.

    """
    return framed("Recommended quotas", _sections(advice, usages, commands))


def charted(advice: Advice) -> Sequence[GroupSummary]:
    """What is drawn: those with most requests."""
    most = sorted(advice.recommended, key=lambda each: each.requests, reverse=True)
    return [_summary(each, advice) for each in most[:CHARTS]]


def headline(advice: Advice) -> str:
    """How many limits, and what they would do, in one sentence."""
    policy = advice.policy
    limits = counted(len(advice.recommended), "limit")
    hit = f"{counted(len(advice.hits), 'client')} would be throttled in the replay"
    return f"{limits} for at most {percent(policy.share)} of the time throttled, with {percent(policy.headroom)} of headroom; {hit}."


def _sections(
    advice: Advice, usages: Mapping[Group, Drawn], commands: Sequence[str]
) -> Iterator[Element]:
    begin, end = advice.span_ms
    zone = advice.policy.zone
    yield element("h1", "Recommended quotas")
    period = f"{shown(advice.source, 200)}, {moment(begin, zone)} to {moment(end, zone)}"  # fmt: skip
    yield element("p", period, class_="where")
    yield element("p", headline(advice), class_="headline")
    yield element("ul", *(element("li", sentence) for sentence in caveats(advice)))
    yield element("h2", "Limits")
    yield table(_HEADS, [_limit(each, advice) for each in advice.recommended])
    yield from _hits(advice)
    yield from _charts(advice, usages)
    yield element("h2", "Commands")
    told = commands or ("# nothing to change",)
    yield element("pre", "\n".join(shown(line, 100_000) for line in told))
    yield element("ul", *(element("li", note) for note in notes(advice)))


def caveats(advice: Advice) -> Sequence[str]:
    """What the limits were made of, and why they may be too low, one sentence or two each."""
    coverage, zone = advice.coverage, advice.policy.zone
    begin, end = (moment(time, zone) for time in coverage.span_ms)
    logged = coverage.logged
    silent = f"; of {logged.unknown:,} more it does not say" if logged.unknown else ""
    told = (
        f"Made of {seconds(coverage.period_ms / 1_000)} of log ({begin} to {end}) with requests in {coverage.hours_of_week} of the {HOURS} hours of a week; "
        f"{logged.throttled:,} of {logged.known:,} requests ({_share(logged)}) were throttled while it was written{silent}."
    )
    found = [told]
    if coverage.short:
        found.append("That is less than a day of log: hours that are not in it may need more.")  # fmt: skip
    if advice.held_back:
        found.append(
            f"{advice.held_back:,} of {counted(len(advice.recommended), 'limit')} (marked *) are of entities that were throttled while the log was written: "
            "what they would have sent otherwise is unknown, and their limits may be too low."
        )
    return found


def verdict(advice: Advice) -> str:
    """What is said where the replay throttles no client."""
    if advice.held_back:
        return "No client would be throttled in the replay, but the log has only what clients sent while they were throttled."  # fmt: skip
    return "No client would be throttled in the replay."


def configured(advice: Advice, made: Recommendation) -> str:
    """The quota of the same entity and key as configured, or why there is no number."""
    now = advice.now_of(made)
    return advice.now_state(made) if now is None else rate(made.kind, now)


def limit(advice: Advice, made: Recommendation) -> str:
    """The recommended limit, marked where the entity's demand was held back."""
    mark = " *" if advice.logged(made).throttled else ""
    return f"{rate(made.kind, made.limit)}{mark}"


def muted_now(hit: Hit) -> str:
    """For how long the configured quotas throttle a client."""
    return "unknown" if hit.muted_now_ms is None else seconds(hit.muted_now_ms / 1_000)


def notes(advice: Advice) -> Sequence[str]:
    """What a reader must know about the figures, one sentence each."""
    missing = (
        "The configured quotas are not known here, so that every limit counts as new.",
    )
    return (*_NOTES, advice.kafka.note, *(missing if advice.now is None else ()))


def _limit(made: Recommendation, advice: Advice) -> Sequence[Child]:
    return (
        _who(made),
        spaced(made.kind.label),
        configured(advice, made),
        _change(advice, made),
        rate(made.kind, made.lowest),
        "any hour" if made.hour is None else hour_name(made.hour),
        shown(made.broker),
        f"{made.requests:,}",
        _share(advice.logged(made)),
    )


def _share(logged: Logged) -> str:
    return "unknown" if logged.share is None else percent(logged.share)


def _change(advice: Advice, made: Recommendation) -> Child:
    told, now = limit(advice, made), advice.now_of(made)
    if now is None or now == made.limit:
        return told
    up = made.limit > now
    return element("span", f"{'▲' if up else '▼'} {told}", class_="up" if up else "down")  # fmt: skip


def _hits(advice: Advice) -> Iterator[Element]:
    yield element("h2", "Who would be hit")
    if advice.hits:
        yield table(_HIT_HEADS, [_hit(hit) for hit in advice.hits])
    else:
        yield element("p", verdict(advice))


def _hit(hit: Hit) -> Sequence[Child]:
    return (
        shown(hit.user),
        shown(hit.client_id),
        spaced(hit.kind.label),
        rate(hit.kind, hit.limit),
        seconds(hit.muted_ms / 1_000),
        percent(hit.share),
        seconds(hit.longest_ms / 1_000),
        muted_now(hit),
    )


def _charts(advice: Advice, usages: Mapping[Group, Drawn]) -> Iterator[Element]:
    yield element("h2", "Usage against limits")
    for each in charted(advice):
        if each.group in usages:
            yield from group_section(
                each, usages[each.group], _COLORS, advice.policy.zone
            )


def _summary(made: Recommendation, advice: Advice) -> GroupSummary:
    now = advice.now_of(made)
    limits = {RECOMMENDED: made.limit} | ({} if now is None else {NOW: now})
    group = Group(made.kind, _name(made.entity.user), _name(made.entity.client_id))
    return GroupSummary(group=group, limits=limits)


def _who(made: Recommendation) -> str:
    return who(_name(made.entity.user), _name(made.entity.client_id))


def _name(name: object) -> str | None:
    return name if isinstance(name, str) else None
