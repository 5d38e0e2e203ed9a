"""The report of limits that were recommended from the samples of a Prometheus server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from typing import Any, Final

from quotascope.pages.baseline import HELD_BACK_LOGGED, legend_of_bounds, lower_bound
from quotascope.pages.report import Block, Cell, Lines, Mark, Report, Rows, csv_of
from quotascope.pages.words import counted, percent, period, seconds, shown, spaced
from quotascope.quotas import Commands

from ..rates import rate
from ..recommend.policy import limit_of, steps_of
from ..runs.recommend import change_text
from .advice import LEAST_GAP, PastAdvice, PastLimit, name_of
from .evidence import SEEN_BY_S, Sight

_MOST: Final = 40
"""Number of limits that a terminal shows."""
_HEADS: Final = (
    *("entity", "=quota", "#now", "#recommended", "#lowest", "#throttled", "samples", "node", "#active", "#coverage"),
)
_WORDS: Final = {
    Sight.WHOLE: "all seen",
    Sight.SPARSE: "≈ sparse",
    Sight.BURSTS: "≈ bursts",
    Sight.UNSEEN: "unseen",
}
_COLUMNS: Final = (
    *("user", "client_id", "quota_type", "key", "now", "now_state", "now_rule", "limit", "lowest", "node", "sight"),
    *("scrape_interval_seconds", "advised_interval_seconds", "active_seconds", "seen_seconds", "coverage"),
    *("throttled_seconds", "throttled_share", "held_back", "refused"),
)


def report(advice: PastAdvice, commands: Commands) -> Report:
    """Report recommended limits, the changes from the configured quotas, and the commands for these changes."""
    past = advice.past
    return Report(
        title="Recommended quotas",
        where=period(past.address, 1_000 * past.begin, 1_000 * past.end, advice.policy.zone),
        headline=(headline(advice),),
        caveats=list(caveats(advice)),
        blocks=list(_blocks(advice, commands)),
        notes=list(notes(advice)),
    )


def headline(advice: PastAdvice) -> str:
    """Return a sentence with the number of limits and their meaning."""
    policy, count = advice.policy, sum(limit.recommendation is not None for limit in advice.limits)
    period_words = "of each hour of its active time" if policy.by_hour else "of its active time"
    return (
        f"{counted(count, 'limit')}, below which the rate of an entity stayed for {percent(1 - policy.share)} "
        f"{period_words} on each node, plus {percent(policy.headroom)} of headroom."
    )


def caveats(advice: PastAdvice) -> Iterator[str]:
    """Yield reasons why limits may be too low, or are missing, one sentence or two each."""
    past = advice.past
    yield (f"The samples cover {seconds(past.seconds)} of {counted(len(past.nodes), 'node')}, scraped {past.pace}.")
    gaps = {node: past.coverage(node) for node in past.nodes if past.coverage(node) < 1 - LEAST_GAP}
    reasons = [HELD_BACK_LOGGED] if any(limit.held_back for limit in advice.limits) else []
    if gaps:
        least = min(gaps, key=lambda node: gaps[node])
        reasons.append(
            f"samples of {counted(len(gaps), 'node')} are missing (of node {shown(least)} {percent(1 - gaps[least])} "
            "of the period), and what clients used then is unknown"
        )
    yield from legend_of_bounds(reasons)
    if any(limit.sight is Sight.SPARSE for limit in advice.limits):
        yield (
            f"≈ sparse: scrapes every {past.interval_s:.0f} s see the last 10 to 11 s each. A load in step with them, "
            "or shorter than the time between, may be missed: scrape every 10 s to see all of it."
        )
    bursts = sum(limit.sight is Sight.BURSTS for limit in advice.limits)
    if bursts:
        yield (
            f"≈ bursts: {counted(bursts, 'load')} come in bursts of less than a minute, periodic ones among them, "
            f"whose height scrapes may miss: scrape every {SEEN_BY_S:.0f} s. No command is made of these limits."
        )
    unseen = sum(limit.sight is Sight.UNSEEN for limit in advice.limits)
    if unseen:
        yield (
            f"unseen: {counted(unseen, 'load')} are 0 in every sample, although brokers forget entities that do "
            "nothing for an hour: their limits are unknown."
        )
    if advice.mutations:
        yield (
            f"{counted(len(advice.mutations), 'entity')} mutated partitions. Their limits are unknown: no sample has "
            "the state of the token bucket; quotascope recommend FOLDER finds them in a request log."
        )
    if left_out := past.left_out(advice.shape):
        yield (
            f"{counted(left_out, 'entity')} are left out: brokers measure them without the names that --for asks for. "
            "Without --for, entities are those that brokers measure."
        )
    yield from past.caveats


def notes(advice: PastAdvice) -> Iterator[str]:
    """Yield notes for readers of the figures, one sentence each."""
    yield "Nothing was applied."
    yield (
        "Each broker enforces limits separately: a recommended limit is what the node with the highest demand needs."
    )
    yield (
        "An entity is measured under the names of the quota that applies to it. Rates are the broker's own, in its "
        "window of 10 to 11 s; they are a few percent below those at the requests, which the headroom covers."
    )
    if advice.idle:
        yield f"{counted(advice.idle, 'quota')} of entities without usage are left out."
    if advice.configured is None and any(limit.present.state == "unknown" for limit in advice.limits):
        yield "The configured quotas are unknown here, so that every limit counts as new."


def _blocks(advice: PastAdvice, commands: Commands) -> Iterator[Block]:
    """Yield the tables of limits and of changes, and the commands."""
    if advice.limits:
        yield Rows(
            title="Limits",
            heads=_HEADS,
            rows=[_row(limit) for limit in advice.limits],
            page_only=_HEADS[-3:],
            terminal_rows=_MOST,
        )
    if advice.configured is not None:
        changes = [(change.entity.rule, change_text(change)) for change in advice.changes]
        yield Rows(
            title="What would change",
            heads=("entity", "change"),
            rows=changes,
            empty="nothing",
            terminal_rows=len(changes),
        )
    lines = commands.lines or ("# no command, for the reasons below" if advice.refused else "# nothing to change",)
    left_out = (f"# left out: {sentence}" for sentence in commands.left_out)
    yield Lines(title="Commands, none of which was run", lines=(*lines, *left_out), copied=True)


def _row(limit: PastLimit) -> Sequence[str | Cell]:
    """Return the cells of a limit, in the order of `_HEADS`."""
    kind, recommendation = limit.kind, limit.recommendation
    return (
        name_of(limit.entity),
        spaced(kind.label),
        _now(limit),
        _recommended(limit),
        "unknown" if recommendation is None else rate(kind, recommendation.lowest),
        percent(limit.throttled_share),
        _WORDS[limit.sight],
        shown(limit.node),
        seconds(limit.evidence.active_s),
        percent(limit.coverage),
    )


def _recommended(limit: PastLimit) -> str | Cell:
    """Return the recommended limit, marked if it is uncertain or differs from the limit of today."""
    recommendation, present_limit = limit.recommendation, limit.present.limit
    if recommendation is None:
        return "unknown"
    about = "≈ " if limit.sight is not Sight.WHOLE else ""
    text = lower_bound(f"{about}{rate(limit.kind, recommendation.limit)}", held_back=limit.is_lower_bound, short=True)
    if present_limit is None or present_limit == recommendation.limit:
        return text
    if recommendation.limit > present_limit:
        return Cell(f"▲ {text}", Mark.UP)
    return Cell(f"▼ {text}", Mark.DOWN)


def _now(limit: PastLimit) -> str:
    """Return the limit of today, with the rule that sets it."""
    present = limit.present
    is_finite = present.limit is not None and present.limit != inf
    value = rate(limit.kind, present.limit or 0.0) if is_finite else present.state
    return f"{value} by {shown(present.rule, 100)}" if present.rule else value


def as_csv(advice: PastAdvice) -> str:
    """Return CSV with a row for each limit."""
    return csv_of(_COLUMNS, (_values(limit) for limit in advice.limits))


def document(advice: PastAdvice, commands: Commands) -> dict[str, Any]:
    """Return the whole recommendation for programs: durations in seconds, shares as ratios, names as they are."""
    past, policy = advice.past, advice.policy
    return {
        "prometheus": past.address,
        "selector": past.selector,
        "begin": past.begin,
        "end": past.end,
        "nodes": {
            node: {
                "shortest_scrape_interval_seconds": of_node.shortest_s,
                "scrape_interval_seconds": of_node.longest_s,
                "coverage": past.coverage(node),
            }
            for node, of_node in past.nodes.items()
        },
        "policy": {
            "share": policy.share,
            "headroom": policy.headroom,
            "shape": None if advice.shape is None else advice.shape.value,
            "by_hour": policy.by_hour,
            "floors": {kind.label: floor for kind, floor in policy.floors.items()},
        },
        "recommended": [_values(limit) for limit in advice.limits],
        "mutations": [
            {"user": entity.user, "client_id": entity.client_id, "active_seconds": active_s, "limit": None}
            for entity, active_s in advice.mutations
        ],
        "changes": [
            {"entity": str(change.entity), "key": change.key, "old": change.old, "new": change.new}
            for change in advice.changes
        ],
        "caveats": list(caveats(advice)),
        "commands": commands.lines,
        "left_out": commands.left_out,
    }


def _values(limit: PastLimit) -> dict[str, Any]:
    """Return a limit by the names of `_COLUMNS`."""
    evidence, present, recommendation = limit.evidence, limit.present, limit.recommendation
    return {
        "user": limit.entity.user,
        "client_id": limit.entity.client_id,
        "quota_type": limit.kind.label,
        "key": limit.kind.quota_key,
        "now": present.limit,
        "now_state": present.state,
        "now_rule": present.rule,
        "limit": None if recommendation is None else recommendation.limit,
        "lowest": None if recommendation is None else limit_of(limit.kind, steps_of(limit.kind, recommendation.lowest)),
        "node": limit.node,
        "sight": limit.sight.value,
        "scrape_interval_seconds": limit.interval_s,
        "advised_interval_seconds": None if limit.sight is Sight.WHOLE else _advised(limit.sight),
        "active_seconds": evidence.active_s,
        "seen_seconds": evidence.seen_s,
        "coverage": limit.coverage,
        "throttled_seconds": evidence.throttled_s,
        "throttled_share": limit.throttled_share,
        "held_back": limit.held_back,
        "refused": limit.refusal is not None,
    }


def _advised(sight: Sight) -> float:
    """Return the scrape interval in seconds that would see the load."""
    return 10.0 if sight is Sight.SPARSE else SEEN_BY_S
