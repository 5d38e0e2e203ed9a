"""The results of a replay added up: by candidate, and by group of clients that share a limit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from quotascope.metrics import Level, QuotaType

from ..followed import Followed
from ..replay import Mode
from .words import who

Row = Mapping[str, Any]
"""A row of `quotascope.pipeline.replay.RESULTS` as Python values."""

_OF_USER: Final = {Level.USER.value, Level.DEFAULT_USER.value}
_OF_CLIENT: Final = {Level.CLIENT.value, Level.DEFAULT_CLIENT.value}
_KINDS: Final = {kind.label: kind for kind in QuotaType}
_NAMES: Final = ("user", "client_id", "quota_type")
_MEANINGS: Final = {
    Mode.OPEN_LOOP: "Open loop: requests arrive as logged, whatever the throttles. Real clients slow down, so these figures are upper bounds.",
    Mode.CLOSED_LOOP: "Closed loop: a throttled connection sends its next request later, as a muted channel makes it. A delayed request counts when it arrives.",
}
_NOTES: Final = (
    "Each broker enforces limits separately; a chart shows the broker with the highest peak.",
    "The area is the highest mean over 11 s, which is about what a broker compares with its limit; the line is the mean.",
    "Where a chart is empty, no request was logged: the client was idle, or the log has a gap.",
    "A client's share is the time in which it was throttled, as a part of the time in which it was active or throttled.",
)


@dataclass(slots=True, kw_only=True)
class CandidateSummary:
    """What one candidate would have done to all clients."""

    name: str
    limited: int = 0
    """Pairs of client and quota type that it limits and that used it."""
    hit: int = 0
    """How many of them are throttled at all."""
    muted_ms: int = 0
    throttled_requests: int = 0
    worst_share: float = 0.0
    worst: str = ""
    """The client that is throttled for the largest share of its time."""
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
class LimitGroup:
    """Clients that share a limit of one quota type; None is a dimension that plays no part."""

    kind: QuotaType
    user: str | None
    client_id: str | None


@dataclass(slots=True, kw_only=True)
class GroupSummary:
    """The limits that candidates set for a group, and what they would do to it."""

    group: LimitGroup
    muted_ms: int = 0
    """Of all candidates and clients together."""
    amount: float = 0.0
    limits: dict[str, float] = field(default_factory=dict)
    """By candidate."""

    def weight(self) -> tuple[int, float]:
        """Throttled time, and usage as a part of the lowest limit: which groups are shown first."""
        lowest = min(self.limits.values(), default=0.0)
        return self.muted_ms, self.amount / lowest if lowest > 0 else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySummary:
    """What the report on a replay shows, as plain values."""

    source: str
    """Where the history is."""
    span_ms: tuple[int, int]
    """Its first and last decision: ms since 1970."""
    mode: Mode
    kafka: Followed
    """The release that throttle times follow."""
    candidates: Sequence[CandidateSummary]
    groups: Sequence[GroupSummary]
    """Clients that share a limit, those that are throttled longest first."""
    rows: Sequence[Row]
    """Of the results, in the same order."""

    @property
    def closed(self) -> bool:
        """Whether throttled clients send later."""
        return self.mode is Mode.CLOSED_LOOP

    @property
    def mode_name(self) -> str:
        """The mode in words."""
        return self.mode.value.replace("_", " ")

    @property
    def notes(self) -> Sequence[str]:
        """What a reader must know about these figures, one sentence or two each."""
        return (_MEANINGS[self.mode], self.kafka.note, *_NOTES)


def summary_of(
    results: pa.Table,
    names: Sequence[str],
    source: str,
    span_ms: tuple[int, int],
    mode: Mode,
    kafka: Followed,
) -> ReplaySummary:
    """
    Add up the results of a replay.

    Args:
        results: `quotascope.pipeline.replay.RESULTS`, brokers added up.
        names: of the candidates, in their order.
        source: where the history is.
        span_ms: its first and last decision.
        mode: of the replay.
        kafka: the release that throttle times follow.

    """
    # Those that are throttled longest first; equal ones by name, whatever engine did the work.
    rows = sorted(
        results.to_pylist(),
        key=lambda row: (
            -row["muted_ms"],
            -row["amount"],
            *(row[name] for name in _NAMES),
        ),
    )
    candidates = {name: CandidateSummary(name=name) for name in names}
    for row in rows:
        candidates[row["candidate"]].add(row)
    return ReplaySummary(
        source=source,
        span_ms=span_ms,
        mode=mode,
        kafka=kafka,
        candidates=list(candidates.values()),
        groups=_by_group(rows),
        rows=rows,
    )


def _by_group(rows: Iterable[Row]) -> list[GroupSummary]:
    """The groups of all candidates, those that are throttled longest first, then those that use most of their limit."""
    found: dict[LimitGroup, GroupSummary] = {}
    for row in rows:
        group = group_of(row)
        summary = found.setdefault(group, GroupSummary(group=group))
        summary.muted_ms += row["muted_ms"]
        summary.amount += row["amount"]
        summary.limits[row["candidate"]] = row["limit"]
    return sorted(found.values(), key=GroupSummary.weight, reverse=True)


def group_of(row: Row) -> LimitGroup:
    """The clients that share the limit of a row."""
    kind, user, client_id = _KINDS[row["quota_type"]], row["user"], row["client_id"]
    if row["level"] in _OF_USER:
        return LimitGroup(kind, user, None)
    if row["level"] in _OF_CLIENT:
        return LimitGroup(kind, None, client_id)
    return LimitGroup(kind, user, client_id)
