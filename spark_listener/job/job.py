"""The books of one application."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from ..events import Cause, Record, TaskEnded, parse
from ..task import note
from .ledger import Ledger
from .snapshot import JobSnapshot, QueryTotals
from .throttles import LastRead, ThrottleReader, named, summed
from .untold import StageReader

_LOG = logging.getLogger(__name__)
_MOST_PARTS = 50

Watcher = Callable[[Record, note.Note | None], None]
"""Is shown each record after it was counted, with the note of the attempt that it ends."""


class Job:
    """
    Keeps the books of one application from its events, whatever source they come from. All methods may be called from any thread.

    Args:
        app: `spark.app.name`.
        clock: seconds since 1970, as Spark's own events have them.
        watcher: is called with what was read, one record at a time.

    """

    def __init__(
        self,
        app: str,
        clock: Callable[[], float] = time.time,
        watcher: Watcher | None = None,
    ) -> None:
        self._app = app
        self._clock = clock
        self._watcher = watcher
        self._lock = threading.Lock()
        self._asking = threading.Lock()
        self._ledger = Ledger(clock)
        self._readers: tuple[LastRead, ...] = ()
        self._stage_readers: tuple[StageReader, ...] = ()
        self._events = 0
        self._lost = 0
        self._lag = 0.0
        self._sources: tuple[str, ...] = ()
        self._problems: Counter[str] = Counter()

    def handle(self, event: Mapping[str, Any]) -> None:
        """Take in one event as JsonProtocol writes it. Never raises: an event that cannot be read is counted as lost."""
        try:
            record, found = _read(event)
        except Exception:  # noqa: BLE001 - whatever an event holds, the job goes on
            self.lost(1)
            return
        with self._lock:
            self._events += 1
            if record is not None:
                self._take(record, found)

    def passed(self, events: int) -> None:
        """Count events that the source left out on purpose."""
        with self._lock:
            self._events += events

    def lost(self, events: int) -> None:
        """Count events that the source missed."""
        with self._lock:
            self._lost += events

    def lag(self, seconds: float) -> None:
        """Say how far the source is behind."""
        with self._lock:
            self._lag = seconds

    def source(self, name: str) -> None:
        """Say that events come from there now, too."""
        with self._lock:
            self._sources = (*(each for each in self._sources if each != name), name)

    def source_ended(self, name: str) -> None:
        """Say that no more events come from there."""
        with self._lock:
            self._sources = tuple(each for each in self._sources if each != name)

    def problem(self, part: str, text: str) -> None:
        """Count that a part of the listener failed."""
        _LOG.debug("%s: %r", part, text[:1_000])
        with self._lock:
            if part in self._problems or len(self._problems) < _MOST_PARTS:
                self._problems[part] += 1

    def add_throttles(self, read: ThrottleReader) -> None:
        """Ask this reader, too, when a snapshot is made; one that raises leaves its last numbers in place."""
        with self._lock:
            self._readers += (LastRead(read),)

    def add_scoped_stages(self, read: StageReader) -> None:
        """Ask this reader, too, in which stages attempts tell what their Kafka clients were told."""
        with self._lock:
            self._stage_readers += (read,)

    def snapshot(self) -> JobSnapshot:
        """What is known now."""
        with self._asking:  # what one snapshot was told, no later one forgets
            told = list(self._told())
            telling = list(self._telling())
            with self._lock:
                self._ledger.untold.learn(telling)
                return self._snapshot(self._clock(), told)

    def _told(self) -> Iterator[QueryTotals]:
        for reader in self._readers:
            if not reader.ask():
                self.problem("throttles", "what the Kafka clients were told")
            yield from reader.totals

    def _telling(self) -> Iterator[Container[int]]:
        for read in self._stage_readers:
            try:
                yield read()
            except Exception as error:  # noqa: BLE001 - as above
                self.problem("throttles", str(error))

    def _take(self, record: Record, found: note.Note | None) -> None:
        self._ledger.take(record, found)
        if self._watcher is not None:
            self._watcher(record, found)

    def _snapshot(self, now: float, told: Iterable[QueryTotals]) -> JobSnapshot:
        ledger = self._ledger
        return JobSnapshot(
            app=self._app,
            failures=_of_every_cause(ledger.attempts.failures),
            retries=_of_every_cause(ledger.attempts.retries),
            stage_retries=ledger.attempts.stage_retries,
            executors_lost=ledger.executors.lost(now),
            queries=ledger.queries.snapshots(now),
            throttles=summed((*ledger.noted(), *named(told, ledger.queries.name))),
            unknown_attempts=ledger.untold.count,
            events=self._events,
            lost_events=self._lost,
            lag_seconds=self._lag,
            sources=self._sources,
            problems=self._all_problems(),
        )

    def _all_problems(self) -> tuple[tuple[str, int], ...]:
        forgotten = Counter(queries=self._ledger.queries.forgotten)
        return tuple(sorted((self._problems + forgotten).items()))


def _read(event: Mapping[str, Any]) -> tuple[Record | None, note.Note | None]:
    record = parse(event)
    if not isinstance(record, TaskEnded) or not record.text:
        return record, None
    attempt = record.attempt
    ids = note.Attempt(stage=attempt.stage, number=attempt.number, task=attempt.task)
    found = note.read(record.text, ids)
    return _with_throttle(record, found), found


def _with_throttle(ended: TaskEnded, found: note.Note | None) -> TaskEnded:
    """The same, and whether the attempt was throttled before it gave up waiting."""
    failure = ended.failure
    if failure is None or failure.cause is not Cause.KAFKA_TIMEOUT or found is None:
        return ended
    if not any(totals.throttled_ms > 0 for totals in found.totals):
        return ended
    throttled = replace(failure, cause=Cause.KAFKA_TIMEOUT_THROTTLED)
    return replace(ended, failure=throttled)


def _of_every_cause(counts: Counter[Cause]) -> dict[Cause, int]:
    return {cause: counts[cause] for cause in Cause}
