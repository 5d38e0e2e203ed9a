"""An application as its event log shows it: stages, failed attempts, micro-batches and throttle times."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from quotascope.pages.words import shown

from ..errors import ReportError, UnreadableSummary
from ..event_log import EventLog, EventLogError
from ..events import (
    ApplicationEnded,
    ApplicationStarted,
    EnvironmentUpdated,
    FailureCause,
    JobEnded,
    JobStarted,
    QueryProgressed,
    QueryStarted,
    Record,
    StageCompleted,
    StageSubmitted,
    TaskEnded,
    TaskStarted,
)
from ..job import ClientKind, Job, JobSnapshot, QueryTotals, read_summary
from ..task.note import Note
from .critical_path import Saving, Slots, critical_seconds

Progress = Callable[[int, int], None]
"""Called with the bytes read so far and the size of the log."""

LIMITED_SHARE = 0.1
"""The share of a query's time from which on a quota is said to limit it: see `Application.limited_share`."""
_BY_QUOTA = (FailureCause.KAFKA_QUOTA, FailureCause.KAFKA_TIMEOUT_THROTTLED)
_MOST_STAGES = 20_000
_MOST_ATTEMPTS = 5_000
_MOST_BATCHES = 5_000


@dataclass(slots=True, kw_only=True)
class StageHistory:
    """One attempt of a stage. Times are seconds since 1970."""

    stage: int
    attempt: int
    name: str = ""
    query: str = ""
    """Name of its streaming query; empty if it belongs to none."""
    tasks: int = 0
    began: float | None = None
    ended: float | None = None
    failed: bool = False
    failures: dict[FailureCause, int] = field(default_factory=dict)
    notes: int = 0
    """Failed attempts that left a note."""
    noted_ms: int = 0
    """Sum of their throttle times."""
    slots: Slots = field(default_factory=Slots)
    """All its attempts of tasks, for the critical path."""

    @property
    def throttled_ms(self) -> int | None:
        """Throttle time of its failed attempts, a lower bound if one left no note; None if it is unknown."""
        known = self.notes and (self.noted_ms or self.notes == self.failed_attempts)
        return self.noted_ms if known else None

    @property
    def failed_attempts(self) -> int:
        """Failed attempts of its tasks, of all causes."""
        return sum(self.failures.values())

    @property
    def is_hit(self) -> bool:
        """Whether it failed, an attempt in it failed, or a throttle time was noted."""
        return self.failed or bool(self.failures) or bool(self.throttled_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedAttempt:
    """A failed attempt of a task. Times are seconds since 1970."""

    stage: int
    stage_attempt: int
    partition: int
    number: int
    executor: str
    query: str
    """As in `StageHistory`."""
    cause: FailureCause
    raised: tuple[str, ...]
    """Classes of the exceptions, outermost first."""
    began: float
    ended: float
    throttled_ms: int | None
    """From its note; None if it left none."""
    longest_ms: int | None
    """The longest throttle time of one response, from its note; None if it left none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroBatch:
    """A micro-batch of a streaming query."""

    query: str
    """Its name, or its id if it has none."""
    number: int
    began: float
    seconds: float
    rows: int


@dataclass(frozen=True, kw_only=True)  # no slots: the shares are computed once
class Application:
    """What an event log shows of an application."""

    snapshot: JobSnapshot
    app: str
    app_id: str
    began: float
    """The first time in the log; seconds since 1970."""
    ended: float
    """The last time in the log."""
    finished: bool
    """Whether the log has the end of the application."""
    compacted: bool
    """Whether the History server has removed tasks of jobs that ended."""
    missing_files: int
    """Rolled files of the log that were not there."""
    with_summary: bool
    """Whether `throttles` come from the listener's summary; otherwise from the notes of failed attempts."""
    throttles: tuple[QueryTotals, ...]
    """Of clients that reported, with zeros; clients that did not report may have been throttled all the same."""
    unknown_attempts: int
    """Attempts missing in `throttles`, as in `JobSnapshot`."""
    seen_clients: tuple[ClientKind, ...]
    """As in `JobSnapshot`."""
    unseen_clients: tuple[ClientKind, ...]
    """Clients that the job may have had, with unknown throttle times: the log shows Python code in tasks, or does not rule out clients of the JVM."""
    listener: bool
    """Whether the log shows that the listener was attached."""
    summary_file: str
    """Where the listener was to write its summary, by the log; empty if the log does not say it."""
    stages: tuple[StageHistory, ...]
    attempts: tuple[FailedAttempt, ...]
    """Failed ones, in the order in which they ended."""
    batches: tuple[MicroBatch, ...]
    left_out: int
    """Stages, attempts and batches that are counted but too many to be listed."""

    @property
    def throttled_ms(self) -> int | None:
        """Sum over all clients, a lower bound unless `throttles_complete`; None if it is unknown."""
        found = sum(totals.throttled_ms for _, totals in self.throttles)
        return found if found or self.throttles_complete else None

    @property
    def throttles_complete(self) -> bool:
        """Whether the throttle times of all reporting clients are in, so that 0 means not throttled."""
        return self.with_summary and bool(self.throttles) and not self.unknown_attempts and not self.unseen_clients

    def critical_seconds(self, query: str | None = None) -> float | None:
        """
        Throttle time on the critical path of stages: by how much the application would be shorter without the quota, at most.

        Notes have the throttle times of failed attempts. Those of the others are known by query only, and are taken as the same share of
        the time of all its attempts; throttle times without a query, of all attempts of the application. The assumptions of
        `critical_path` apply.

        Args:
            query: of this streaming query only (empty: of what belongs to none); None for the whole application.

        Returns:
            Seconds, a lower bound where throttle times are one; None if no throttle time or no attempt is known, or the summary counts
            attempts that the log lacks.

        """
        if self.throttled_ms is None or (self.with_summary and (self.compacted or self.missing_files)):
            return None
        if not any(stage.slots.noted or stage.slots.other for stage in self.stages):
            return None if self.throttled_ms else 0.0
        shares = self._shares
        savings = (
            self._saving(stage, stage.slots.saved(shares.get(stage.query, shares[None])))
            for stage in self.stages
            if query is None or stage.query == query
        )
        return round(critical_seconds(savings), 3)

    @property
    def least_seconds(self) -> float | None:
        """
        How long it would have taken without the quota, at least; None unless all throttle times are known.

        Also None if a quota failed attempts: they took more than their throttle times.
        """
        critical = self.critical_seconds()
        if critical is None or not self.throttles_complete or any(map(self.snapshot.failures.get, _BY_QUOTA)):
            return None
        return max(0.0, self.ended - self.began - critical)

    def limited_share(self, query: str) -> float | None:
        """The share (0 to 1) of the time of a streaming query's stages that is on the critical path and throttled; None if it is unknown."""
        critical = self.critical_seconds(query)
        busy = critical_seconds(self._saving(stage, math.inf) for stage in self.stages if stage.query == query)
        if critical is None or not busy:
            return None
        share = critical / busy
        # a lower bound that is low rules nothing out
        return share if share >= LIMITED_SHARE or self.throttles_complete else None

    def _saving(self, stage: StageHistory, saved: float) -> Saving:
        began = self.ended if stage.began is None else stage.began
        return Saving(began, self.ended if stage.ended is None else stage.ended, saved)

    @cached_property
    def _shares(self) -> dict[str | None, float]:
        """By query, the throttled share of attempts without a note; None is the key for queries without throttle times of their own."""
        queries = {stage.query for stage in self.stages}
        left: dict[str | None, float] = {}
        for query, totals in self.throttles:
            key = query if query and query in queries else None
            left[key] = left.get(key, 0.0) + totals.throttled_ms / 1_000
        other: dict[str | None, float] = {}
        for stage in self.stages:
            key = stage.query if stage.query in left else None
            left[key] = left.get(key, 0.0) - stage.slots.noted
            for each in {stage.query, None}:
                other[each] = other.get(each, 0.0) + stage.slots.other
        shares = {key: max(0.0, seconds) / other[key] if other.get(key) else 0.0 for key, seconds in left.items()}
        of_all = min(1.0, shares.get(None, 0.0))
        return {None: of_all} | {key: min(1.0, share + of_all) for key, share in shares.items() if key}


def read_application(path: Path, summary: Path | None = None, progress: Progress | None = None) -> Application:
    """
    Read an event log as far as it has been written.

    Args:
        path: a file, or a folder, see `EventLog`.
        summary: the listener's summary (`write_summary`), with the throttle times of attempts that succeeded.
        progress: called from time to time.

    Raises:
        EventLogError: the log cannot be read.
        UnreadableSummary: the summary cannot be used, or is of another application.
        ReportError: a file cannot be opened.

    """
    try:
        counted = None if summary is None else read_summary(summary)
        history = ApplicationHistory()
        with EventLog(path, successes=True) as log:
            job = Job("", watcher=history)
            size = log.size()
            log.feed(job, progress and (lambda read: progress(read, size)))
            job.no_event_follows()
            snapshot = job.snapshot()
    except OSError as error:
        where = error.filename or path
        raise ReportError(f"{where}: {error.strerror or error}") from error
    if not snapshot.events:
        raise EventLogError(f"{log.path} holds no event yet")
    if counted is not None and history.app_id and counted.app_id not in ("", history.app_id):
        raise UnreadableSummary(f"{summary} is the summary of {shown(counted.app_id)}, not of {shown(history.app_id)}")
    source = counted or snapshot
    possible: dict[ClientKind, bool] = {
        "jvm": not history.without_java_clients,
        "python": history.runs_python,
    }
    return Application(
        snapshot=snapshot,
        app=history.app,
        app_id=history.app_id,
        began=history.began,
        ended=history.ended,
        finished=history.finished,
        compacted=log.compacted,
        missing_files=log.missing_files,
        with_summary=counted is not None,
        throttles=source.throttles,
        unknown_attempts=source.unknown_attempts,
        seen_clients=source.seen_clients,
        unseen_clients=tuple(
            kind for kind, is_possible in possible.items() if is_possible and kind not in source.seen_clients
        ),
        listener=history.listener,
        summary_file=history.summary_file.replace("{app_id}", history.app_id),
        stages=history.stages(),
        attempts=history.attempts(),
        batches=history.batches(),
        left_out=history.left_out,
    )


_OfQuery = TypeVar("_OfQuery", StageHistory, FailedAttempt, MicroBatch)


class ApplicationHistory:
    """A watcher of a `Job` that lists stages, failed attempts and batches; beyond their limits, it counts them, and keeps the last unharmed ones."""

    def __init__(self) -> None:
        self.app = self.app_id = ""
        self.began = self.ended = 0.0
        self.finished = False
        self.listener = self.runs_python = self.without_java_clients = False
        self.summary_file = ""
        self.left_out = 0
        self._stages: dict[tuple[int, int], StageHistory] = {}
        self._attempts: list[FailedAttempt] = []
        self._batches: deque[MicroBatch] = deque(maxlen=_MOST_BATCHES)
        self._names: dict[str, str] = {}

    def __call__(self, record: Record, note: Note | None) -> None:  # noqa: C901 - one case for each kind of record
        """Remember a record, and the note of the attempt that it ends."""
        match record:
            case ApplicationStarted():
                self.app, self.app_id = record.name, record.app_id
                self._at(record.time)
            case ApplicationEnded():
                self.finished = True
                self._at(record.time)
            case EnvironmentUpdated():  # once more for each file that is added
                self.listener |= record.listener
                self.summary_file = record.summary_file
                self.without_java_clients = record.without_java_clients
            case JobStarted() | JobEnded():
                self._at(record.time)
            case StageSubmitted():
                self._at(record.time)
                stage = self._stage(record.stage, record.attempt)
                stage.name, stage.tasks, stage.query = record.name, record.tasks, record.query
                stage.began = record.time
                self.runs_python |= record.runs_python
            case StageCompleted():
                self._at(record.time)
                stage = self._stage(record.stage, record.attempt)
                stage.name = record.name or stage.name
                stage.began = record.began if stage.began is None else stage.began
                stage.ended, stage.failed = record.time, record.failed
                stage.slots.close()
                self.runs_python |= record.runs_python
            case TaskStarted():
                self._at(record.attempt.began)
            case TaskEnded():
                self._task_ended(record, note)
            case QueryStarted():
                self._named(record.query, record.name)
            case QueryProgressed():
                self._progressed(record)
            case _:
                pass

    def stages(self) -> tuple[StageHistory, ...]:
        """The listed ones, by number."""
        return self._with_names(self._stages[key] for key in sorted(self._stages))

    def attempts(self) -> tuple[FailedAttempt, ...]:
        """The listed ones, in the order in which they ended."""
        return self._with_names(self._attempts)

    def batches(self) -> tuple[MicroBatch, ...]:
        """The listed ones, in the order in which they ended."""
        return self._with_names(self._batches)

    def _with_names(self, found: Iterable[_OfQuery]) -> tuple[_OfQuery, ...]:
        return tuple(replace(each, query=self._names.get(each.query, each.query)) for each in found)

    def _at(self, time: float | None) -> None:
        if time is not None and time > 0:
            self.began = min(self.began or time, time)
            self.ended = max(self.ended, time)

    def _task_ended(self, record: TaskEnded, note: Note | None) -> None:
        self._at(record.time)
        attempt = record.attempt
        stage = self._stage(attempt.stage, attempt.stage_attempt)
        throttled_ms = longest_ms = None
        if note is not None:
            throttled_ms = sum(each.throttled_ms for each in note.whole)
            longest_ms = max((each.longest_ms for each in note.whole), default=0)
        if record.reason != "Resubmitted":  # of an attempt that has ended before
            noted = None if throttled_ms is None else throttled_ms / 1_000
            stage.slots.add(attempt.executor, attempt.began, record.time, noted)
        if record.failure is None:
            return
        if throttled_ms is not None:
            stage.notes += 1
            stage.noted_ms += throttled_ms
        cause = record.failure.cause
        stage.failures[cause] = stage.failures.get(cause, 0) + 1
        if len(self._attempts) >= _MOST_ATTEMPTS:
            self.left_out += 1
            return
        self._attempts.append(
            FailedAttempt(
                stage=attempt.stage,
                stage_attempt=attempt.stage_attempt,
                partition=attempt.partition,
                number=attempt.number,
                executor=attempt.executor,
                query=stage.query,
                cause=cause,
                raised=record.failure.chain,
                began=attempt.began,
                ended=max(record.time, attempt.began),
                throttled_ms=throttled_ms,
                longest_ms=longest_ms,
            )
        )

    def _progressed(self, record: QueryProgressed) -> None:
        self._named(record.query, record.name)
        self._at(record.ended)
        self.runs_python |= record.runs_python
        if record.began is None:
            return
        self.left_out += len(self._batches) == _MOST_BATCHES
        self._batches.append(
            MicroBatch(
                query=record.query,
                number=record.batch,
                began=record.began,
                seconds=record.phases.get("triggerExecution", 0.0),
                rows=record.rows,
            )
        )

    def _stage(self, stage: int, attempt: int) -> StageHistory:
        found = self._stages.get((stage, attempt))
        if found is None:
            if len(self._stages) >= _MOST_STAGES:
                stages = self._stages.items()
                unharmed = (key for key, each in stages if each.ended and not each.is_hit)
                del self._stages[next(unharmed, next(iter(self._stages)))]
                self.left_out += 1
            found = StageHistory(stage=stage, attempt=attempt)
            self._stages[stage, attempt] = found
        return found

    def _named(self, query: str, name: str) -> None:
        if name or query not in self._names:
            self._names[query] = name or query
