"""What the report shows, as plain values."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..events import Cause
from ..job import JobSnapshot, QueryTotals


@dataclass(slots=True, kw_only=True)
class StageAccount:
    """One attempt of a stage. Times are seconds since 1970."""

    stage: int
    attempt: int
    name: str = ""
    query: str = ""
    """Name of the streaming query that it works for; empty when it is none."""
    tasks: int = 0
    began: float | None = None
    ended: float | None = None
    failed: bool = False
    failures: dict[Cause, int] = field(default_factory=dict)
    throttled_ms: int | None = None
    """What its failed attempts noted; None when none of them left a note."""

    @property
    def failed_attempts(self) -> int:
        """Of all causes."""
        return sum(self.failures.values())

    @property
    def is_hit(self) -> bool:
        """Whether anything went wrong in it, or anybody waited."""
        return self.failed or bool(self.failures) or bool(self.throttled_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedAttempt:
    """One failed try at a task. Times are seconds since 1970."""

    stage: int
    stage_attempt: int
    partition: int
    number: int
    executor: str
    query: str
    """As in StageAccount."""
    cause: Cause
    raised: tuple[str, ...]
    """Classes of the exceptions, outermost first."""
    began: float
    ended: float
    throttled_ms: int | None
    """What it noted; None when it left no note."""
    longest_ms: int | None
    """The longest throttle time of one response that it noted; None when it left no note."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One micro-batch of a streaming query."""

    query: str
    """Its name, else its id."""
    number: int
    began: float
    seconds: float
    rows: int
    max_offsets_behind: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """An application, as its event log tells it."""

    snapshot: JobSnapshot
    app: str
    app_id: str
    began: float
    """The first time that the log has; seconds since 1970."""
    ended: float
    """The last time that the log has."""
    finished: bool
    """Whether the application said that it ended."""
    compacted: bool
    """Whether the History server has removed tasks of jobs that ended."""
    with_summary: bool
    """Whether `throttles` are those that the listener counted; else those of attempts that failed and left a note."""
    throttles: tuple[QueryTotals, ...]
    """Of the clients that reported, also zeros; a job of which none did may have waited all the same."""
    unknown_attempts: int
    """Attempts whose throttle times `throttles` lacks, as in `JobSnapshot`."""
    stages: tuple[StageAccount, ...]
    attempts: tuple[FailedAttempt, ...]
    """Those that failed, in the order in which they ended."""
    batches: tuple[Batch, ...]
    left_out: int
    """Stages, attempts and batches that were counted but are too many to be listed."""

    @property
    def throttled_ms(self) -> int | None:
        """Of all clients; at least so much unless `throttles_complete`. None when nothing is known."""
        found = sum(totals.throttled_ms for _, totals in self.throttles)
        return found if found or self.throttles_complete else None

    @property
    def throttles_complete(self) -> bool:
        """Whether no throttle time of a client that reports is missing, so that 0 means none."""
        return self.with_summary and bool(self.throttles) and not self.unknown_attempts
