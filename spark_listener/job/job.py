"""The state of one application, from its events."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import replace
from typing import Any, Protocol

from ..events import (
    ApplicationEnded,
    EnvironmentUpdated,
    ExecutorAdded,
    ExecutorRemoved,
    FailureCause,
    LogStarted,
    QueryIdle,
    QueryProgressed,
    QueryStarted,
    QueryTerminated,
    Record,
    StageCompleted,
    StageSubmitted,
    TaskEnded,
    TaskStarted,
    parse,
)
from ..task import note
from .attempts import AttemptCounts, LostExecutors, StageReader, UnreportedAttempts
from .queries import QueryStates, TriggerReader
from .recent import Recent
from .snapshot import ClientKind, JobSnapshot, QueryTotals
from .throttles import LastRead, ThrottleNotes, ThrottleReader, named, summed

_LOG = logging.getLogger(__name__)
_MOST_PARTS = 50
_MOST_STAGES = 20_000

Watcher = Callable[[Record, note.Note | None], None]
"""Function that is called with each record after it was counted, and with the note of the attempt that it ends."""


class EventSink(Protocol):
    """
    Receiver of a source's events, from any thread.

    `Job` is one; a source may put another one before it, for example to leave events out.
    """

    def handle(self, event: Mapping[str, Any]) -> None:
        """Handle one event."""
        ...

    def passed(self, events: int) -> None:
        """Count events that were left out on purpose."""
        ...

    def lost(self, events: int, *, ends: bool = True) -> None:
        """Count missed events; `ends` is True if ends of attempts, which may have notes, may be among them."""
        ...


class Job:
    """
    The state of one application, from events of any source. All methods may be called from any thread.

    Args:
        app: `spark.app.name`.
        clock: seconds since 1970, as Spark's own events have them.
        watcher: function that is called with one record at a time.
        trigger: asked for the trigger of a streaming query when it starts.

    """

    def __init__(
        self,
        app: str,
        clock: Callable[[], float] = time.time,
        watcher: Watcher | None = None,
        trigger: TriggerReader = lambda _: None,
    ) -> None:
        self._app = app
        self._clock = clock
        self._watcher = watcher
        self._lock = threading.Lock()
        self._reading = threading.Lock()
        self._attempts = AttemptCounts()
        self._executors = LostExecutors()
        self._executors_lost = 0
        """
        Number of lost executors in the last snapshot, below which the count never goes.

        An executor that ends with its application counts as lost until the end of the application is known.
        """
        self._queries = QueryStates(trigger)
        self._unreported = UnreportedAttempts()
        self._notes = ThrottleNotes(clock)
        self._query_of: Recent[int, str] = Recent(_MOST_STAGES)
        """Id of the streaming query by stage."""
        self._readers: tuple[LastRead, ...] = ()
        self._reads_plugin = False
        self._stage_readers: tuple[StageReader, ...] = ()
        self._events = 0
        self._lost = self._lost_ends = 0
        self._lag = 0.0
        self._sources: tuple[str, ...] = ()
        self._past_sources: set[str] = set()
        self._problems: Counter[str] = Counter()

    def handle(self, event: Mapping[str, Any]) -> None:
        """Handle one event as JsonProtocol writes it. Never raises: an event that cannot be read is counted as lost."""
        try:
            record, attempt_note = _read(event)
        except Exception:  # noqa: BLE001 - whatever an event holds, the job continues
            self.lost(1)
            return
        with self._lock:
            self._events += 1
            if record is not None:
                self._take(record, attempt_note)
                if self._watcher is not None:
                    self._watcher(record, attempt_note)

    def passed(self, events: int) -> None:
        """Count events that the source left out on purpose."""
        with self._lock:
            self._events += events

    def lost(self, events: int, *, ends: bool = True) -> None:
        """Count events that were missed; `ends` is True if ends of attempts may be among them."""
        with self._lock:
            self._lost += events
            self._lost_ends += events if ends else 0

    def lag(self, seconds: float) -> None:
        """Set the time by which the source is behind."""
        with self._lock:
            self._lag = seconds

    def source(self, name: str) -> None:
        """Add a source from which events come now."""
        with self._lock:
            self._sources = (*(source for source in self._sources if source != name), name)
            self._past_sources.add(name)

    def source_ended(self, name: str) -> None:
        """Remove a source from which no more events come."""
        with self._lock:
            self._sources = tuple(source for source in self._sources if source != name)

    def problem(self, part: str, text: str) -> None:
        """Count a failure of a part of the listener."""
        _LOG.debug("%s: %r", part, text[:1_000])
        with self._lock:
            if part in self._problems or len(self._problems) < _MOST_PARTS:
                self._problems[part] += 1

    def add_throttles(self, reader: ThrottleReader, kind: ClientKind | None = None) -> None:
        """
        Add a reader of throttle times, which every snapshot calls. If it raises, its last counts stay.

        Args:
            reader: function that returns throttle times.
            kind: kind of the clients of which it returns all throttle times; None if some may be missing.

        """
        with self._lock:
            self._readers += (LastRead(reader, kind),)
            self._reads_plugin |= kind == "jvm"

    def add_scoped_stages(self, reader: StageReader) -> None:
        """Add a reader of the stages with attempts that report throttle times."""
        with self._lock:
            self._stage_readers += (reader,)

    def snapshot(self) -> JobSnapshot:
        """Return the present state."""
        with self._reading:  # no snapshot may have a smaller count than an earlier one
            reader_totals = list(self._read_throttles())
            reporting = list(self._read_stages())
            with self._lock:
                self._unreported.learn(reporting)
                now = self._clock()
                dropped = Counter(queries=self._queries.forgotten)
                totals = (*self._notes.totals(), *reader_totals)
                # events of a log that is only read have no source
                tasks_seen = bool(self._past_sources - {"streaming"}) or (not self._past_sources and self._events > 0)
                seen_kinds = {reader.seen for reader in self._readers if reader.seen}
                if not tasks_seen or self._lost_ends:
                    seen_kinds.discard("python")
                self._executors_lost = max(self._executors_lost, self._executors.count)
                return JobSnapshot(
                    app=self._app,
                    failures={cause: self._attempts.failures[cause] for cause in FailureCause},
                    retries={cause: self._attempts.retries[cause] for cause in FailureCause},
                    stage_retries=self._attempts.stage_retries,
                    executors_lost=self._executors_lost,
                    executors_inferred=self._executors.inferred,
                    queries=self._queries.snapshots(now),
                    throttles=summed(named(totals, self._queries.name)),
                    seen_clients=tuple(sorted(seen_kinds)),
                    tasks_seen=tasks_seen,
                    unknown_attempts=self._unreported.count,
                    events=self._events,
                    lost_events=self._lost,
                    lag_seconds=self._lag,
                    sources=self._sources,
                    problems=tuple(sorted((self._problems + dropped).items())),
                )

    def _read_throttles(self) -> Iterator[QueryTotals]:
        """Yield the counts of all readers."""
        for reader in self._readers:
            if not reader.update():
                self.problem("throttles", "a reader of throttle times failed")
            yield from reader.totals

    def _read_stages(self) -> Iterator[Container[int]]:
        """Yield the stages of all readers that do not fail."""
        for read_stages in self._stage_readers:
            try:
                yield read_stages()
            except Exception as error:  # noqa: BLE001 - a JVM or an executor may be gone
                self.problem("throttles", str(error))

    def _take(self, record: Record, attempt_note: note.Note | None) -> None:  # noqa: C901, PLR0912 - a case each
        """Count a record, and the note of the attempt that it ends."""
        match record:
            case TaskStarted():
                self._attempts.started(record.attempt)
            case TaskEnded():
                self._attempts.ended(record)
                if record.lost_executor:
                    self._executors.failed(record.attempt.executor, record.time)
                elif record.reason != "Resubmitted":  # a second end of an attempt
                    self._executors.busy(record.attempt.executor, record.time)
                self._count_note(record, attempt_note)
            case StageSubmitted():
                if record.query:
                    self._query_of[record.stage] = record.query
                self._attempts.stage_submitted(record)
            case StageCompleted():
                self._attempts.stage_completed(record)
            case LogStarted():
                self._executors.log_started(record)
            case EnvironmentUpdated():
                self._executors.environment(record)
            case ExecutorAdded():
                self._executors.busy(record.executor, record.time)
            case ExecutorRemoved():
                self._executors.removed(record)
            case ApplicationEnded():
                self._executors.ended(record)
            case QueryStarted():
                self._queries.started(record, self._clock())
            case QueryProgressed():
                self._queries.progressed(record, self._clock())
            case QueryIdle():
                self._queries.idle(record, self._clock())
            case QueryTerminated():
                self._queries.terminated(record)

    def _count_note(self, ended: TaskEnded, attempt_note: note.Note | None) -> None:
        """Count the note of an attempt, or count a failed attempt without a note as unreported."""
        stage = ended.attempt.stage
        if attempt_note is not None:
            totals = attempt_note.totals if self._reads_plugin else attempt_note.whole
            self._notes.add(self._query_of.get(stage, "") or attempt_note.query, totals)
            self._unreported.reports(stage)
        elif ended.reason not in ("Success", "Resubmitted"):
            self._unreported.unreported(stage)


def _read(event: Mapping[str, Any]) -> tuple[Record | None, note.Note | None]:
    """
    Return the record of an event, and the note of the attempt that it ends.

    If an attempt failed by a timeout, and its note shows a throttle, the cause is changed to a timeout with a throttle.
    """
    record = parse(event)
    if not isinstance(record, TaskEnded) or not record.text:
        return record, None
    attempt, failure = record.attempt, record.failure
    ids = note.AttemptKey(attempt.stage, attempt.number, attempt.task)
    attempt_note = note.read(record.text, ids)
    if (
        attempt_note is not None
        and failure is not None
        and failure.cause is FailureCause.KAFKA_TIMEOUT
        and any(totals.throttled_ms > 0 for totals in attempt_note.whole)
    ):
        failure = replace(failure, cause=FailureCause.KAFKA_TIMEOUT_THROTTLED)
        return replace(record, failure=failure), attempt_note
    return record, attempt_note
