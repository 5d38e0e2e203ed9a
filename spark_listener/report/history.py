"""History of an application for a report: its stages, failed attempts, micro-batches and failed queries."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from quotascope.pages.words import shown

from ..errors import EventLogError
from ..events import (
    ApplicationEnded,
    ApplicationStarted,
    EnvironmentUpdated,
    ExecutorAdded,
    ExecutorRemoved,
    FailureCause,
    JobEnded,
    JobStarted,
    QueryIdle,
    QueryProgressed,
    QueryStarted,
    QueryTerminated,
    Record,
    StageCompleted,
    StageSubmitted,
    TaskEnded,
    TaskStarted,
)
from ..task.note import Note
from .critical_path import Slots

_MOST_STAGES = 20_000
_MOST_ATTEMPTS = 5_000
_MOST_BATCHES = 5_000
_MOST_ENDS = 1_000


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
    canceled: bool = False
    """True if it failed because it, or its job, was canceled."""
    failures: dict[FailureCause, int] = field(default_factory=dict)
    """Number of failed attempts of tasks by cause."""
    notes: int = 0
    """Number of failed attempts with a note."""
    noted_ms: int = 0
    """Sum of the throttle times in these notes."""
    slots: Slots = field(default_factory=Slots)
    """All attempts of its tasks, for the critical path."""

    @property
    def throttled_ms(self) -> int | None:
        """Throttle time of failed attempts, a lower bound if one has no note; None if it is unknown."""
        is_known = self.notes and (self.noted_ms or self.notes == self.failed_attempts)
        return self.noted_ms if is_known else None

    @property
    def failed_attempts(self) -> int:
        """Number of failed attempts of its tasks."""
        return sum(self.failures.values())

    @property
    def is_hit(self) -> bool:
        """True if the stage failed and was not canceled, an attempt of a task failed, or a throttle time was noted."""
        return (self.failed and not self.canceled) or bool(self.failures) or bool(self.throttled_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedAttempt:
    """A failed attempt of a task. Times are seconds since 1970."""

    stage: int
    stage_attempt: int
    partition: int
    number: int
    executor: str
    query: str
    """Name of its streaming query, as in `StageHistory`."""
    cause: FailureCause
    raised: tuple[str, ...]
    """Classes of the exceptions, outermost first."""
    began: float
    ended: float
    throttled_ms: int | None
    """Throttle time from its note; None if it left none."""
    longest_ms: int | None
    """The longest throttle time of one response, from its note; None if it left none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroBatch:
    """A micro-batch of a streaming query."""

    query: str
    """Name of the query, or its id if it has none."""
    number: int
    began: float
    seconds: float
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryFailure:
    """A run of a streaming query that ended by an exception, in an attempt or in the driver."""

    query: str
    """Name of the query, as in `MicroBatch`."""
    cause: FailureCause
    raised: tuple[str, ...]
    """Classes of the exceptions, as in `FailedAttempt`."""


_OfQuery = TypeVar("_OfQuery", StageHistory, FailedAttempt, MicroBatch, QueryFailure)


class ApplicationHistory:
    """
    A watcher of a `Job` that lists stages, failed attempts and micro-batches.

    If there are too many, some are only counted (`left_out`). It raises `EventLogError` at the events of a second
    application.
    """

    def __init__(self) -> None:
        self.app = self.app_id = ""
        self.began = self.ended = 0.0
        self.finished = False
        self.listener = self.plugin = self.runs_python = False
        self.without_java_clients: bool | None = None
        """True if no reported environment has clients of the JVM; None if no environment was reported."""
        self.summary_file = ""
        self._started: float | None = None
        self._succeeded: dict[int, set[tuple[int, int]]] = {}
        """Attempt and partition of tasks that succeeded since their stage last failed, or was complete; by stage."""
        self._short: dict[int, int] = {}
        """Number of tasks by successful stage, if the ends of some tasks have no line yet."""
        self._failed_queries: list[QueryFailure] = []
        self.left_out = 0
        self._stages: dict[tuple[int, int], StageHistory] = {}
        self._attempts: list[FailedAttempt] = []
        self._batches: deque[MicroBatch] = deque(maxlen=_MOST_BATCHES)
        self._names: dict[str, str] = {}
        """Names of streaming queries by id."""

    def __call__(self, record: Record, note: Note | None) -> None:  # noqa: C901, PLR0912 - a case for each kind
        """Remember a record, and the note of the attempt that it ends."""
        match record:
            case ApplicationStarted():
                if self._started is not None and (record.app_id, record.time) != (self.app_id, self._started):
                    raise EventLogError(
                        f"the log holds two applications, {shown(self.app_id)} and {shown(record.app_id)}: "
                        "give the log of one"
                    )
                self.app, self.app_id, self._started = record.name, record.app_id, record.time
                self._at(record.time)
            case ApplicationEnded():
                self.finished = True
                self._at(record.time)
            case EnvironmentUpdated():  # reported again for each file that is added
                self.listener |= record.listener
                self.plugin |= record.plugin
                self.summary_file = record.summary_file or self.summary_file
                self.without_java_clients = record.without_java_clients and self.without_java_clients is not False
            case JobStarted() | JobEnded() | ExecutorAdded() | ExecutorRemoved() | QueryIdle():
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
                stage.ended, stage.failed, stage.canceled = record.time, record.failed, record.canceled
                # the smaller of both numbers; 0 stands for an unknown one
                stage.tasks = min(stage.tasks, record.tasks) or stage.tasks or record.tasks
                stage.slots.close()
                self._completed(stage)
                self.runs_python |= record.runs_python
            case TaskStarted():
                self._at(record.attempt.began)
            case TaskEnded():
                self._task_ended(record, note)
            case QueryStarted():
                self._named(record.query, record.name)
                self._at(record.time)
            case QueryTerminated() if record.failure is not None and len(self._failed_queries) < _MOST_ENDS:
                failure = record.failure
                self._failed_queries.append(QueryFailure(query=record.query, cause=failure.cause, raised=failure.chain))
            case QueryProgressed():
                self._progressed(record)
            case _:
                pass

    @property
    def short(self) -> int:
        """Number of attempts without a line of their end that must have succeeded, as their stages did."""
        return sum(max(0, tasks - len(self._succeeded.get(stage, ()))) for stage, tasks in self._short.items())

    def stages(self) -> tuple[StageHistory, ...]:
        """Return the listed stages, by number."""
        return self._with_names(self._stages[key] for key in sorted(self._stages))

    def attempts(self) -> tuple[FailedAttempt, ...]:
        """Return the listed attempts, in the order in which they ended."""
        return self._with_names(self._attempts)

    def batches(self) -> tuple[MicroBatch, ...]:
        """Return the listed batches, in the order in which they ended."""
        return self._with_names(self._batches)

    def failed_queries(self) -> tuple[QueryFailure, ...]:
        """Return the listed queries that failed, in the order in which they ended."""
        return self._with_names(self._failed_queries)

    def _with_names(self, entries: Iterable[_OfQuery]) -> tuple[_OfQuery, ...]:
        """Return entries with the id of the query replaced by its name."""
        return tuple(replace(entry, query=self._names.get(entry.query, entry.query)) for entry in entries)

    def _at(self, time: float | None) -> None:
        """Extend the time of the application to a time of an event."""
        if time is not None and time > 0:
            self.began = min(self.began or time, time)
            self.ended = max(self.ended, time)

    def _completed(self, stage: StageHistory) -> None:
        """
        Remember a successful stage if the ends of some of its tasks have no line yet; forget the tasks of other stages.

        A repeated stage has only the tasks that still had to be done.
        """
        succeeded = self._succeeded.get(stage.stage, ())
        if not stage.failed and len(succeeded) < stage.tasks:
            self._short[stage.stage] = stage.tasks
        else:
            self._succeeded.pop(stage.stage, None)
            self._short.pop(stage.stage, None)

    def _task_ended(self, record: TaskEnded, note: Note | None) -> None:
        """Remember the end of an attempt in its stage, and list the attempt if it failed."""
        self._at(record.attempt.began)
        self._at(record.time)
        attempt = record.attempt
        if record.reason == "Success":
            self._succeeded.setdefault(attempt.stage, set()).add((attempt.stage_attempt, attempt.partition))
        stage = self._stage(attempt.stage, attempt.stage_attempt)
        throttled_ms = longest_ms = None
        if note is not None:
            throttled_ms = sum(totals.throttled_ms for totals in note.whole)
            longest_ms = max((totals.longest_ms for totals in note.whole), default=0)
        if record.reason != "Resubmitted":  # a second end of an attempt
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
        """Remember the end of a micro-batch."""
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
        """Return the history of an attempt of a stage; if there are too many, forget one, best without failures."""
        history = self._stages.get((stage, attempt))
        if history is None:
            if len(self._stages) >= _MOST_STAGES:
                stages = self._stages.items()
                unharmed = (key for key, candidate in stages if candidate.ended and not candidate.is_hit)
                del self._stages[next(unharmed, next(iter(self._stages)))]
                self.left_out += 1
            history = StageHistory(stage=stage, attempt=attempt)
            self._stages[stage, attempt] = history
        return history

    def _named(self, query: str, name: str) -> None:
        """Remember the name of a query; without a name, its id stands for it."""
        if name or query not in self._names:
            self._names[query] = name or query
