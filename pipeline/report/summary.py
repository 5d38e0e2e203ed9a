"""Results of a replay added up: per candidate, and per group of clients that share a limit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from quotascope.metrics import Level, QuotaType

from .words import who

Row = Mapping[str, Any]
"""A row of `quotascope.pipeline.whatif.results.RESULTS` as Python values."""

_OF_USER: Final = {Level.USER.value, Level.DEFAULT_USER.value}
_OF_CLIENT: Final = {Level.CLIENT.value, Level.DEFAULT_CLIENT.value}
_KINDS: Final = {kind.label: kind for kind in QuotaType}


@dataclass(slots=True, kw_only=True)
class CandidateSummary:
    """What one candidate would have done to all."""

    name: str
    limited: int = 0
    """Pairs of client and quota type that it limits and that used it."""
    hit: int = 0
    """How many of them are throttled at all."""
    muted_ms: int = 0
    throttled_requests: int = 0
    worst_share: float = 0.0
    worst: str = ""
    """Whose time is throttled most."""
    longest_ms: int = 0
    delayed_bytes: int = 0
    rejected_mutations: int = 0
    recovery_ms: int = 0
    late_ms: int = 0
    unsent_requests: int = 0

    def add(self, row: Row) -> None:
        """Count one row of the candidate."""
        self.limited += 1
        self.hit += row["throttled_requests"] > 0
        self.muted_ms += row["muted_ms"]
        self.throttled_requests += row["throttled_requests"]
        self.delayed_bytes += row["delayed_bytes"]
        self.rejected_mutations += row["rejected_mutations"]
        self.unsent_requests += row["unsent_requests"]
        self.longest_ms = max(self.longest_ms, row["longest_throttle_ms"])
        self.recovery_ms = max(self.recovery_ms, row["recovery_ms"])
        self.late_ms = max(self.late_ms, row["late_ms"])
        if row["throttled_share"] > self.worst_share:
            self.worst_share = row["throttled_share"]
            self.worst = who(row["user"], row["client_id"])


@dataclass(frozen=True, slots=True)
class Group:
    """Clients that share a limit of one quota type; None is a dimension that plays no part."""

    kind: QuotaType
    user: str | None
    client_id: str | None


@dataclass(slots=True, kw_only=True)
class GroupSummary:
    """What the candidates allow a group, and what they would do to it."""

    group: Group
    muted_ms: int = 0
    """Of all candidates and clients together: how much there is to be seen."""
    amount: float = 0.0
    limits: dict[str, float] = field(default_factory=dict)
    """By candidate."""


def rows_of(results: pa.Table) -> list[Row]:
    """Rows of the results, those that are throttled longest first; equal ones by name, whoever did the work."""
    return sorted(results.to_pylist(), key=_place)


def _place(row: Row) -> tuple[int, float, str, str, str]:
    names = (row["user"], row["client_id"], row["quota_type"])
    return (-row["muted_ms"], -row["amount"], *names)


def by_candidate(rows: Iterable[Row], names: Sequence[str]) -> list[CandidateSummary]:
    """A summary of each candidate, in the given order."""
    found = {name: CandidateSummary(name=name) for name in names}
    for row in rows:
        found[row["candidate"]].add(row)
    return list(found.values())


def by_group(rows: Iterable[Row]) -> list[GroupSummary]:
    """The groups of all candidates, those that are throttled longest first, then those that use most of their limit."""
    found: dict[Group, GroupSummary] = {}
    for row in rows:
        group = group_of(row)
        summary = found.setdefault(group, GroupSummary(group=group))
        summary.muted_ms += row["muted_ms"]
        summary.amount += row["amount"]
        summary.limits[row["candidate"]] = row["limit"]
    return sorted(found.values(), key=_weight, reverse=True)


def group_of(row: Row) -> Group:
    """Who shares the limit of a row."""
    kind, user, client_id = _KINDS[row["quota_type"]], row["user"], row["client_id"]
    if row["level"] in _OF_USER:
        return Group(kind, user, None)
    if row["level"] in _OF_CLIENT:
        return Group(kind, None, client_id)
    return Group(kind, user, client_id)


def _weight(summary: GroupSummary) -> tuple[int, float]:
    lowest = min(summary.limits.values(), default=0.0)
    return summary.muted_ms, summary.amount / lowest if lowest > 0 else 0.0
