"""Usage of clients over whole hours, from the samples of a Prometheus server, and its report."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from typing import Any, Final

from quotascope.metrics.kafka.entities import QuotaType, spelled
from quotascope.metrics.kafka.windows import WindowConfig
from quotascope.pages.baseline import legend_of_bounds
from quotascope.pages.report import TERMINAL_ROWS, Report, Rows, csv_of
from quotascope.pages.words import amount, counted, percent, period, seconds, shown, spaced
from quotascope.quotas.team_finder import TeamFinder, team_words

from ..rates import rate
from ..table import Progress
from . import promql
from .evidence import Evidence, Sight, answered, by_node, worst
from .past import Measured, NoSamples, Past

LEAST_GAP: Final = 0.001
"""Part of the period without samples from which on an amount is a lower bound."""
SEEN_BY_S: Final = 1.0
"""Longest scrape interval, in seconds, with which sums of bursts are good: a rate is above 0 for a few scrapes only."""
_OF_BYTES: Final = (QuotaType.PRODUCE, QuotaType.FETCH)
_HEADS: Final = ("entity", "#used", "#share", "#mean", "#active", "#coverage", "samples")
_COLUMNS: Final = (
    *("user", "client_id", "quota_type", "begin", "end", "amount", "unit", "lower_bound", "approximate"),
    *("active_seconds", "seen_seconds", "coverage", "throttled_seconds"),
)
_UNITS: Final = {
    QuotaType.PRODUCE: "bytes",
    QuotaType.FETCH: "bytes",
    QuotaType.REQUEST: "thread_seconds",
    QuotaType.CONTROLLER_MUTATION: "mutations",
}
_PERCENT: Final = 100.0
NOTES: Final = (
    ("The sum of all nodes: each rate times the time until the next scrape. A restart is no jump, as rates are not "
    "counted from one number to the next; Kafka has no counter of bytes by client."),
    ("An entity is measured under the names of the quota that applies to it; where no quota is configured, brokers "
    "measure nothing."),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class PastUsage:
    """Usage of a quota type by an entity, on all nodes."""

    user: str | None
    client_id: str | None
    kind: QuotaType
    evidence: Evidence
    """Sums over all nodes. The amount is in bytes, seconds of a thread, or mutations."""
    sight: Sight
    coverage: float
    """Part of the period with samples, from 0 to 1, of the entity's node with the fewest."""
    team: str | None = None
    """Label of the team, if this is the usage of a team; None for an entity."""

    @property
    def amount(self) -> float | None:
        """Amount; None if it is unknown: no sample shows an active entity, or a sample is NaN or infinite."""
        amount = self.evidence.amount
        return None if self.sight is Sight.UNSEEN or not math.isfinite(amount) else amount

    @property
    def is_lower_bound(self) -> bool:
        """True if samples are missing: the usage of that time is unknown, not zero."""
        return self.coverage < 1 - LEAST_GAP


@dataclass(frozen=True, slots=True, kw_only=True)
class PastUsages:
    """Usage by entity and quota type, the largest first."""

    past: Past
    usages: Sequence[PastUsage]


def find_usage(
    past: Past,
    client: tuple[str | None, str | None] = (None, None),
    *,
    windows: WindowConfig | None = None,
    progress: Sequence[Progress | None] = (),
) -> PastUsages:
    """
    Return the usage of entities in a period, from the samples of a server.

    Args:
        past: samples.
        client: user and client id as brokers measure them; None for any.
        windows: windows of the cluster's client quotas; Kafka's defaults if they are left out.
        progress: two functions that are called with the number of queries that are done, and of all: for rates, and for
            throttle times. Missing ones are not called.

    Raises:
        NoSamples: no client was measured in the period.

    """
    rate_progress, throttle_progress = (*progress, None, None)[:2]  # None for missing ones
    windows = windows or WindowConfig()
    past = replace(past, series=[series for series in past.series if _matches(series, client)])
    if not past.series:
        raise NoSamples(f"{past.address}: no such client was measured in this period")
    queries: dict[str, promql.Query] = {
        "amount": promql.total,
        "seen_s": promql.seen,
        "active_s": promql.active,
        "changes": promql.changes,
    }
    answers = list(answered(past, queries, progress=rate_progress))
    answers += answered(past, {"throttled_s": promql.active}, throttles=True, progress=throttle_progress)
    usages = []
    for (kind, user, client_id), nodes in by_node(answers).items():
        measured = {node: evidence for node, evidence in nodes.items() if evidence.seen_s}
        if not measured:
            continue
        sights = {evidence.sight(past.interval_of(node), windows, SEEN_BY_S) for node, evidence in measured.items()}
        evidence = _sum(nodes.values())
        if kind is QuotaType.REQUEST:
            evidence.amount /= _PERCENT
        usages.append(
            PastUsage(
                user=user,
                client_id=client_id,
                kind=kind,
                evidence=evidence,
                sight=worst(sights),
                coverage=min(past.coverage(node) for node in measured),
            )
        )
    return PastUsages(past=past, usages=_ordered(usages))


def _matches(series: Measured, client: tuple[str | None, str | None]) -> bool:
    """Return whether a series is of a user and client id; None stands for any."""
    user, client_id = client
    return user in {None, series.user} and client_id in {None, series.client_id}


def _sum(addends: Iterable[Evidence]) -> Evidence:
    """Return the sums of the figures that can be added up."""
    total = Evidence()
    for evidence in addends:
        total.amount += evidence.amount
        total.active_s += evidence.active_s
        total.seen_s += evidence.seen_s
        total.throttled_s += evidence.throttled_s
    return total


def _ordered(usages: Sequence[PastUsage]) -> list[PastUsage]:
    """Return usages by quota type, and then by amount, unknown and large ones first."""
    kinds = list(QuotaType)
    return sorted(
        usages,
        key=lambda usage: (
            kinds.index(usage.kind),
            -usage.evidence.amount if math.isfinite(usage.evidence.amount) else -math.inf,
            usage.team or "",
            usage.user or "",
            usage.client_id or "",
        ),
    )


def by_user(answer: PastUsages) -> PastUsages:
    """Return the usage by user, instead of by user and client id; entities without a user stay as they are."""
    groups: dict[tuple[QuotaType, str | None, str | None], list[PastUsage]] = defaultdict(list)
    for usage in answer.usages:
        groups[usage.kind, usage.user, None if usage.user else usage.client_id].append(usage)
    sums = [
        PastUsage(
            user=user,
            client_id=client_id,
            kind=kind,
            evidence=_sum(usage.evidence for usage in group),
            sight=worst({usage.sight for usage in group}),
            coverage=min(usage.coverage for usage in group),
        )
        for (kind, user, client_id), group in groups.items()
    ]
    return replace(answer, usages=_ordered(sums))


def by_team(answer: PastUsages, teams: TeamFinder) -> PastUsages:
    """Return the usage by team; entities without a team are added up, too."""
    groups: dict[tuple[QuotaType, str], list[PastUsage]] = defaultdict(list)
    for usage in answer.usages:
        groups[usage.kind, teams.label(usage.user or "", usage.client_id or "")].append(usage)
    sums = [
        PastUsage(
            user=None,
            client_id=None,
            kind=kind,
            evidence=_sum(usage.evidence for usage in group),
            sight=worst({usage.sight for usage in group}),
            coverage=min(usage.coverage for usage in group),
            team=label,
        )
        for (kind, label), group in groups.items()
    ]
    return replace(answer, usages=_ordered(sums))


def report(answer: PastUsages, zone: tzinfo = UTC, *, limit: int = TERMINAL_ROWS) -> Report:
    """Report usage with a table for each quota type; a terminal shows `limit` rows of it."""
    past = answer.past
    tables = (_table(answer, kind, limit) for kind in QuotaType)
    return Report(
        title="Usage",
        where=period(past.address, 1_000 * past.begin, 1_000 * past.end, zone),
        headline=() if answer.usages else ("No client was measured in this period.",),
        caveats=list(caveats(answer)),
        blocks=[table for table in tables if table is not None],
        notes=NOTES,
    )


def caveats(answer: PastUsages) -> Iterator[str]:
    """Yield the period, and the reasons why amounts are bounds or approximate, a sentence or two each."""
    yield covered(answer)
    yield from legend_of_bounds(reasons_of_bounds(answer))
    yield from marks(answer)


def covered(answer: PastUsages) -> str:
    """Return a sentence about the time that the samples cover."""
    past = answer.past
    return f"The samples cover {seconds(past.seconds)} of {counted(len(past.nodes), 'node')}, scraped {past.pace}."


def reasons_of_bounds(answer: PastUsages) -> Iterator[str]:
    """Yield the reason why amounts are lower bounds, if any, for `legend_of_bounds`."""
    past = answer.past
    gaps = {node: past.coverage(node) for node in past.nodes if past.coverage(node) < 1 - LEAST_GAP}
    if gaps:
        least = min(gaps, key=lambda node: gaps[node])
        missing = f"of node {shown(least)} {percent(1 - gaps[least])} of the period"
        yield f"samples of {counted(len(gaps), 'node')} are missing ({missing}), and what was used then is in no amount"


def marks(answer: PastUsages) -> Iterator[str]:
    """Yield what the marks of amounts mean, other than that of lower bounds, a sentence or two each."""
    if any(usage.sight is not Sight.WHOLE for usage in answer.usages):
        yield (
            "≈ sparse, ≈ bursts: scrapes saw a part of the load, which stands for all of it. Bursts of less than a "
            "minute may be counted too high or too low by half, and more the further scrapes are apart."
        )
    if any(usage.sight is Sight.UNSEEN for usage in answer.usages):
        yield "unseen: entities that are 0 in every sample, although brokers forget those that do nothing for an hour."
    if any(not math.isfinite(usage.evidence.amount) for usage in answer.usages):
        yield "unknown: a sample of the entity is NaN or infinite, so that its amount has no sum."
    yield from answer.past.caveats


_WORDS: Final = {
    Sight.WHOLE: "all seen",
    Sight.SPARSE: "≈ sparse",
    Sight.BURSTS: "≈ bursts",
    Sight.UNSEEN: "unseen",
}
"""Words in the column `samples`."""


def _table(answer: PastUsages, kind: QuotaType, limit: int) -> Rows | None:
    """Return the table of a quota type; None without usage. There are no shares if the total is unknown."""
    usages = [usage for usage in answer.usages if usage.kind is kind]
    if not usages:
        return None
    total = sum(usage.evidence.amount for usage in usages)
    is_known = total > 0 and not any(usage.is_lower_bound or usage.amount is None for usage in usages)
    return Rows(
        title=spaced(kind.label).capitalize(),
        heads=_HEADS if usages[0].team is None else ("team", *_HEADS[1:]),
        rows=[_row(answer.past, usage, total if is_known else None) for usage in usages],
        shares=[usage.evidence.amount / total if is_known else None for usage in usages],
        page_only=("#active",),
        terminal_rows=limit,
    )


def _row(past: Past, usage: PastUsage, total: float | None) -> Sequence[str]:
    """Return the cells of a usage, in the order of `_HEADS`; its share is unknown without a total."""
    kind, used = usage.kind, usage.amount
    if used is None:
        cells = ("unknown", "unknown", "unknown")
    else:
        if kind in _OF_BYTES:
            text = f"{amount(used)}B"
        else:
            text = seconds(used) if kind is QuotaType.REQUEST else f"{used:,.0f} mut"
        mean = rate(kind, used / past.seconds * (_PERCENT if kind is QuotaType.REQUEST else 1.0))
        mark = ("≥ " if usage.is_lower_bound else "") + ("≈ " if usage.sight is not Sight.WHOLE else "")
        cells = (f"{mark}{text}", "unknown" if total is None else percent(used / total), f"{mark}{mean}")
    return (
        spelled(usage.user, usage.client_id) if usage.team is None else team_words(usage.team),
        *cells,
        seconds(usage.evidence.active_s),
        percent(usage.coverage),
        _WORDS[usage.sight],
    )


def document(answer: PastUsages) -> dict[str, Any]:
    """Return all clients for programs. Amounts are bytes, seconds of a thread, or mutations, null if unknown."""
    past = answer.past
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
        "clients": [_values(past, usage) for usage in answer.usages],
        "caveats": list(caveats(answer)),
        "notes": list(NOTES),
    }


def as_csv(answer: PastUsages) -> str:
    """Return CSV with a row for each client, or team, and quota type."""
    columns = _COLUMNS if all(usage.team is None for usage in answer.usages) else ("team", *_COLUMNS[2:])
    return csv_of(columns, (_values(answer.past, usage) for usage in answer.usages))


def _values(past: Past, usage: PastUsage) -> dict[str, Any]:
    """Return a usage by the names of `_COLUMNS`, or with `team` in place of the entity's names."""
    names = {"user": usage.user, "client_id": usage.client_id} if usage.team is None else {"team": usage.team}
    return {
        **names,
        "quota_type": usage.kind.label,
        "begin": past.begin,
        "end": past.end,
        "amount": None if usage.amount is None else round(usage.amount, 3),
        "unit": _UNITS[usage.kind],
        "lower_bound": usage.is_lower_bound,
        "approximate": usage.sight is not Sight.WHOLE,
        "active_seconds": usage.evidence.active_s,
        "seen_seconds": usage.evidence.seen_s,
        "coverage": usage.coverage,
        "throttled_seconds": usage.evidence.throttled_s,
    }
