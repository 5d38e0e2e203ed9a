"""Usage of clients over whole hours, from the samples of a Prometheus server, and its report."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from typing import Any, Final

from quotascope.metrics.kafka.entities import QuotaType, spelled
from quotascope.metrics.kafka.windows import WindowConfig
from quotascope.pages.report import TERMINAL_ROWS, Report, Rows, csv_of
from quotascope.pages.words import amount, counted, percent, period, seconds, shown, spaced
from quotascope.quotas.team_finder import TeamFinder, team_words

from ..rates import rate
from ..table import Progress
from . import promql
from .evidence import Evidence, Sight, answered, by_node, worst
from .past import NoSamples, Past

LEAST_GAP: Final = 0.001
"""Part of the period without samples from which on an amount is a lower bound."""
SEEN_BY_S: Final = 1.0
"""Scrape interval in seconds that sums up bursts: a rate is above 0 for 11 s, in a whole number of scrapes."""
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
    """Sums of all nodes: amounts are bytes, seconds of a thread, or mutations."""
    sight: Sight
    coverage: float
    """Part of the period with samples of its nodes, from 0 to 1: that of the node with fewest."""
    team: str | None = None
    """Label of a team, of which this is the sum; None for an entity."""

    @property
    def amount(self) -> float | None:
        """Amount; None if no sample shows any of an active entity, or a sample is no number (NaN or infinite)."""
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
    Add up the samples of a server.

    Args:
        past: the samples.
        client: user and client id as brokers measure them, None for any.
        windows: windows of the cluster's client quotas; Kafka's unless given.
        progress: called with the number of queries that are done, and of all: for rates, and for throttle times.

    Raises:
        NoSamples: no client was measured in the period.

    """
    of_rates, of_throttles = (*progress, None, None)[:2]
    windows = windows or WindowConfig()
    past = replace(past, series=[one for one in past.series if _is_of(one.user, one.client_id, client)])
    if not past.series:
        raise NoSamples(f"{past.address}: no such client was measured in this period")
    queries: dict[str, promql.Query] = {
        "amount": promql.total,
        "seen_s": promql.seen,
        "active_s": promql.active,
        "changes": promql.changes,
    }
    answers = list(answered(past, queries, progress=of_rates))
    answers += answered(past, {"throttled_s": promql.active}, throttles=True, progress=of_throttles)
    usages = []
    for (kind, user, client_id), nodes in by_node(answers).items():
        measured = {node: evidence for node, evidence in nodes.items() if evidence.seen_s}
        if not measured:
            continue
        sights = {evidence.sight(past.interval_of(node), windows, SEEN_BY_S) for node, evidence in measured.items()}
        evidence = _sum(nodes)
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


def _is_of(user: str, client_id: str, client: tuple[str | None, str | None]) -> bool:
    return all(wanted is None or name == wanted for name, wanted in zip((user, client_id), client, strict=True))


def _sum(nodes: Mapping[str, Evidence]) -> Evidence:
    total = Evidence()
    for evidence in nodes.values():
        total.amount += evidence.amount
        total.active_s += evidence.active_s
        total.seen_s += evidence.seen_s
        total.throttled_s += evidence.throttled_s
    return total


def _ordered(usages: Sequence[PastUsage]) -> list[PastUsage]:
    order = list(QuotaType)
    return sorted(
        usages,
        key=lambda one: (
            order.index(one.kind),
            -one.evidence.amount if math.isfinite(one.evidence.amount) else -math.inf,
            one.team or "",
            one.user or "",
            one.client_id or "",
        ),
    )


def by_user(answer: PastUsages) -> PastUsages:
    """Return the same with the client ids of each user added up; entities without a user stay as they are."""
    groups: dict[tuple[QuotaType, str | None, str | None], list[PastUsage]] = defaultdict(list)
    for one in answer.usages:
        groups[one.kind, one.user, None if one.user else one.client_id].append(one)
    sums = [
        PastUsage(
            user=user,
            client_id=client_id,
            kind=kind,
            evidence=_sum({str(place): one.evidence for place, one in enumerate(group)}),
            sight=worst({one.sight for one in group}),
            coverage=min(one.coverage for one in group),
        )
        for (kind, user, client_id), group in groups.items()
    ]
    return replace(answer, usages=_ordered(sums))


def by_team(answer: PastUsages, teams: TeamFinder) -> PastUsages:
    """Return the same with the entities of each team added up; those without a team are one row."""
    groups: dict[tuple[QuotaType, str], list[PastUsage]] = defaultdict(list)
    for one in answer.usages:
        groups[one.kind, teams.label(one.user or "", one.client_id or "")].append(one)
    sums = [
        PastUsage(
            user=None,
            client_id=None,
            kind=kind,
            evidence=_sum({str(place): one.evidence for place, one in enumerate(group)}),
            sight=worst({one.sight for one in group}),
            coverage=min(one.coverage for one in group),
            team=label,
        )
        for (kind, label), group in groups.items()
    ]
    return replace(answer, usages=_ordered(sums))


def report(answer: PastUsages, zone: tzinfo = UTC, *, limit: int = TERMINAL_ROWS) -> Report:
    """Report the clients of each quota type, of which a terminal shows `limit`."""
    past = answer.past
    return Report(
        title="Usage",
        where=period(past.address, 1_000 * past.begin, 1_000 * past.end, zone),
        headline=() if answer.usages else ("No client was measured in this period.",),
        caveats=list(caveats(answer)),
        blocks=[block for kind in QuotaType if (block := _table(answer, kind, limit)) is not None],
        notes=NOTES,
    )


def caveats(answer: PastUsages) -> Iterator[str]:
    """Yield reasons why amounts are bounds or approximate, one sentence or two each."""
    past = answer.past
    yield (f"The samples cover {seconds(past.seconds)} of {counted(len(past.nodes), 'node')}, scraped {past.pace}.")
    gaps = {node: past.coverage(node) for node in past.nodes if past.coverage(node) < 1 - LEAST_GAP}
    if gaps:
        least = min(gaps, key=lambda node: gaps[node])
        yield (
            f"≥: of {counted(len(gaps), 'node')} samples are missing, of node {shown(least)} "
            f"{percent(1 - gaps[least])} of the period. What was used then is unknown, and in no amount."
        )
    if any(one.sight is not Sight.WHOLE for one in answer.usages):
        yield (
            "≈ sparse, ≈ bursts: scrapes saw a part of the load, which stands for all of it. Bursts of less than a "
            "minute may be counted too high or too low by half, and more the further scrapes are apart."
        )
    if any(one.sight is Sight.UNSEEN for one in answer.usages):
        yield "unseen: entities that are 0 in every sample, although brokers forget those that do nothing for an hour."
    if any(not math.isfinite(one.evidence.amount) for one in answer.usages):
        yield "unknown: a sample of the entity is NaN or infinite, so that its amount has no sum."
    yield from past.caveats


_WORDS: Final = {
    Sight.WHOLE: "all seen",
    Sight.SPARSE: "≈ sparse",
    Sight.BURSTS: "≈ bursts",
    Sight.UNSEEN: "unseen",
}


def _table(answer: PastUsages, kind: QuotaType, limit: int) -> Rows | None:
    usages = [one for one in answer.usages if one.kind is kind]
    if not usages:
        return None
    total = sum(one.evidence.amount for one in usages)
    known = total > 0 and not any(one.is_lower_bound or one.amount is None for one in usages)
    return Rows(
        title=spaced(kind.label).capitalize(),
        heads=_HEADS if usages[0].team is None else ("team", *_HEADS[1:]),
        rows=[_row(answer.past, one, total if known else None) for one in usages],
        shares=[one.evidence.amount / total if known else None for one in usages],
        page_only=("#active",),
        terminal_rows=limit,
    )


def _row(past: Past, one: PastUsage, total: float | None) -> Sequence[str]:
    kind, used = one.kind, one.amount
    if used is None:
        cells = ("unknown", "unknown", "unknown")
    else:
        text = f"{amount(used)}B" if kind in _OF_BYTES else f"{used:,.0f} mut"
        text = seconds(used) if kind is QuotaType.REQUEST else text
        mean = rate(kind, used / past.seconds * (_PERCENT if kind is QuotaType.REQUEST else 1.0))
        mark = ("≥ " if one.is_lower_bound else "") + ("≈ " if one.sight is not Sight.WHOLE else "")
        cells = (f"{mark}{text}", "unknown" if total is None else percent(used / total), f"{mark}{mean}")
    return (
        spelled(one.user, one.client_id) if one.team is None else team_words(one.team),
        *cells,
        seconds(one.evidence.active_s),
        percent(one.coverage),
        _WORDS[one.sight],
    )


def document(answer: PastUsages) -> dict[str, Any]:
    """Return all clients for programs: bytes, seconds of a thread, or mutations; null when unknown."""
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
        "clients": [_values(past, one) for one in answer.usages],
        "caveats": list(caveats(answer)),
        "notes": list(NOTES),
    }


def as_csv(answer: PastUsages) -> str:
    """Write a row for each client and quota type."""
    columns = _COLUMNS if all(one.team is None for one in answer.usages) else ("team", *_COLUMNS[2:])
    return csv_of(columns, (_values(answer.past, one) for one in answer.usages))


def _values(past: Past, one: PastUsage) -> dict[str, Any]:
    names = {"user": one.user, "client_id": one.client_id} if one.team is None else {"team": one.team}
    return {
        **names,
        "quota_type": one.kind.label,
        "begin": past.begin,
        "end": past.end,
        "amount": None if one.amount is None else round(one.amount, 3),
        "unit": _UNITS[one.kind],
        "lower_bound": one.is_lower_bound,
        "approximate": one.sight is not Sight.WHOLE,
        "active_seconds": one.evidence.active_s,
        "seen_seconds": one.evidence.seen_s,
        "coverage": one.coverage,
        "throttled_seconds": one.evidence.throttled_s,
    }
