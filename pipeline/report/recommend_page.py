"""The page of a recommendation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final
from xml.etree.ElementTree import Element

from quotascope.pages.frame import framed
from quotascope.pages.markup import Child, element
from quotascope.pages.table import table
from quotascope.pages.words import counted, moment, seconds, shown

from ..recommend.advice import NOW, RECOMMENDED, Advice, Hit
from ..recommend.recommendation import Recommendation
from ..week import hour_name
from .charts import group_section
from .rollups import Drawn
from .style import STYLE
from .summary import Group, GroupSummary
from .words import percent, rate, spaced, who

CHARTS: Final = 12
_COLOURS: Final = {RECOMMENDED: 0, NOW: 1}
_HEADS: Final = ("who", "=quota", "#now", "#recommended", "#lowest", "=decided by", "on broker", "#requests")  # fmt: skip
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
    return framed("Recommended quotas", STYLE, _sections(advice, usages, commands))


def charted(advice: Advice) -> Sequence[GroupSummary]:
    """What is drawn: those with most requests."""
    most = sorted(advice.recommended, key=lambda each: each.requests, reverse=True)
    return [_summary(each, advice) for each in most[:CHARTS]]


def headline(advice: Advice) -> str:
    """How many limits, and what they would do, in one sentence."""
    policy = advice.policy
    limits = counted(len(advice.recommended), "limit")
    hit = f"{counted(len(advice.hits), 'client')} would be throttled"
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
    yield element("h2", "Limits")
    yield table(_HEADS, [_limit(each, advice) for each in advice.recommended])
    yield from _hits(advice)
    yield from _charts(advice, usages)
    yield element("h2", "Commands")
    told = commands or ("# nothing to change",)
    yield element("pre", "\n".join(shown(line, 100_000) for line in told))
    yield element("ul", *(element("li", note) for note in notes(advice)))


def notes(advice: Advice) -> Sequence[str]:
    """What a reader must know about the figures, one sentence each."""
    missing = (
        "The configured quotas are not known here, so that every limit counts as new.",
    )
    return (*_NOTES, advice.kafka.note, *(missing if advice.now is None else ()))


def _limit(made: Recommendation, advice: Advice) -> Sequence[Child]:
    now = advice.now_of(made)
    return (
        _who(made),
        spaced(made.kind.label),
        "-" if now is None else rate(made.kind, now),
        _change(made, now),
        rate(made.kind, made.lowest),
        "any hour" if made.hour is None else hour_name(made.hour),
        shown(made.broker),
        f"{made.requests:,}",
    )


def _change(made: Recommendation, now: float | None) -> Child:
    told = rate(made.kind, made.limit)
    if now is None or now == made.limit:
        return told
    up = made.limit > now
    return element("span", f"{'▲' if up else '▼'} {told}", class_="up" if up else "down")  # fmt: skip


def _hits(advice: Advice) -> Iterator[Element]:
    yield element("h2", "Who would be hit")
    if advice.hits:
        yield table(_HIT_HEADS, [_hit(hit) for hit in advice.hits])
    else:
        yield element("p", "Nobody.")


def _hit(hit: Hit) -> Sequence[Child]:
    return (
        shown(hit.user),
        shown(hit.client_id),
        spaced(hit.kind.label),
        rate(hit.kind, hit.limit),
        seconds(hit.muted_ms / 1_000),
        percent(hit.share),
        seconds(hit.longest_ms / 1_000),
        seconds(hit.muted_now_ms / 1_000),
    )


def _charts(advice: Advice, usages: Mapping[Group, Drawn]) -> Iterator[Element]:
    yield element("h2", "Usage against limits")
    for each in charted(advice):
        if each.group in usages:
            yield from group_section(
                each, usages[each.group], _COLOURS, advice.policy.zone
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
