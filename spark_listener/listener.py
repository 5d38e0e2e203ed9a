"""The listener of one application: a thread that fetches from its sources, and ends with the application."""

from __future__ import annotations

import atexit
import logging
import os
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from .errors import brief
from .job import Job, JobSnapshot
from .sources.source import EventSource

if TYPE_CHECKING:
    from .task import JobThrottles

_LOG = logging.getLogger("quotascope.spark_listener")
_MOST_PROBLEMS = 50
_MOST_FAILURES = 3
"""Number of failed fetches in a row after which a source is removed."""
_LAST_WAIT_SECONDS = 10.0
"""Longest time to wait for the last fetch."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A part that does not work; the job continues."""

    part: str
    """The part of the listener: attach, properties, the name of a source, throttles, reporting or summary."""
    text: str


class Listener:
    """
    Watcher of an application until it ends or `close` is called, returned by `attach`.

    Nothing here raises because of Spark.

    As a context manager it is closed at the end of the block.
    """

    def __init__(self, job: Job, interval_seconds: float = 1.0) -> None:
        self.job = job
        self.throttles: JobThrottles | None = None
        """The throttle times of the Python clients of this application, None when they cannot be counted."""
        self.url: str | None = None
        """The page for Prometheus, None when there is none."""
        self._interval_seconds = interval_seconds
        self._sources: list[EventSource] = []
        self._failures: Counter[str] = Counter()
        """Number of failed fetches in a row, by source."""
        self._problems: list[Problem] = []
        self._at_end: list[tuple[str, Callable[[], None]]] = []
        self._stop = threading.Event()
        self._is_over: Callable[[], bool] = lambda: False
        self._lock = threading.RLock()
        self._thread: threading.Thread | None = None
        self._holders = 0
        self._pid = os.getpid()

    @property
    def source(self) -> str:
        """Present sources of events: pull, callbacks, streaming, event_log, two of them with a + between, or none."""
        return "+".join(source.name for source in self._sources) or "none"

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Problems, each once; the log has them as well."""
        return tuple(self._problems)

    @property
    def ended(self) -> bool:
        """True if the application has ended or the listener was closed; the numbers stay."""
        return self._stop.is_set()

    def snapshot(self) -> JobSnapshot:
        """Return the state as of the last fetch."""
        return self.job.snapshot()

    def collect(self) -> JobSnapshot:
        """Fetch new events now, without waiting for the interval, and return the state."""
        with self._lock:
            delay_seconds = 0.0
            for source in tuple(self._sources):
                delay_seconds = max(delay_seconds, self._collect(source))
            self.job.lag(delay_seconds)
        return self.job.snapshot()

    def throttle_scope(self) -> AbstractContextManager[Any]:
        """
        Count the throttle times of the driver's own Kafka clients within the block, such as those of `foreachBatch`.

        A listener cannot be sent to tasks; what runs there takes `throttle_scope` from
        `quotascope.spark_listener.task`.
        """
        from .task import throttle_scope  # noqa: PLC0415 - only who uses it needs it

        return throttle_scope() if self.throttles is None else self.throttles.scope()

    def close(self) -> None:
        """
        Fetch the last events, detach from Spark, and report for the last time.

        After `attach` was called several times for an application, only the last of as many calls does so. Further
        calls do nothing.
        """
        with self._lock:
            self._holders -= 1
            if self._holders > 0:
                return
        self.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def hold(self) -> Self:
        """Let `close` be called once more before it closes."""
        with self._lock:
            self._holders += 1
        return self

    def start(self, sources: tuple[EventSource, ...], stopped: Callable[[], bool] = lambda: False) -> None:
        """
        Watch by these sources, from a thread of its own.

        Without sources, throttle times are still reported, until the application has `stopped`.
        """
        self._sources.extend(sources)
        self._is_over = stopped
        if sources:
            self._is_over = lambda: all(source.ended for source in self._sources)
        for source in sources:
            self.job.source(source.name)
        self._thread = threading.Thread(target=self._run, name="quotascope-listener", daemon=True)
        self._thread.start()
        atexit.register(self.end)

    def at_end(self, part: str, call: Callable[[], None]) -> None:
        """Add a function that is called when everything was fetched; functions are called in the order given."""
        self._at_end.append((part, call))

    def problem(self, part: str, text: str, *, logged: bool = False) -> None:
        """Record a problem: a warning in the log when it is new, unless it was `logged`, and counted each time."""
        self.job.problem(part, text)
        problem = Problem(part, text)
        if problem not in self._problems and len(self._problems) < _MOST_PROBLEMS:
            self._problems.append(problem)
            if not logged:
                _LOG.warning("watching this job, %s: %s", part, text)

    def attempt(self, part: str, call: Callable[[], object]) -> None:
        """Call a function; an error becomes one of the problems."""
        try:
            call()
        except Exception as error:  # noqa: BLE001 - a job must not suffer from being watched
            self.problem(part, brief(error))

    def end(self) -> None:
        """
        Close at once, even if further calls of `close` are due.

        Does nothing in a process that was forked from the driver: Spark belongs to the parent.
        """
        atexit.unregister(self.end)
        if os.getpid() != self._pid:
            return
        self._detach()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(_LAST_WAIT_SECONDS)
        with self._lock:
            calls, self._at_end = self._at_end, []
        for part, call in calls:
            self.attempt(part, call)

    def _run(self) -> None:
        """
        Fetch until the application ends, or the program does.

        A program that is over waits for its threads before it calls what `atexit` holds, and Spark Connect's streaming
        listener has such a thread: it ends when the listener is removed.
        """
        while not self._stop.wait(self._interval_seconds):
            self.attempt("attach", self.collect)
            if self._is_over() or not threading.main_thread().is_alive():
                self._detach()

    def _detach(self) -> None:
        """
        Close the sources after reading the events that they still hold.

        The page stays until the end, so that the last numbers can be scraped.
        """
        with self._lock:
            self._stop.set()
            sources, self._sources = self._sources, []
            for source in sources:
                self._close(source)
            self.job.lag(0.0)

    def _collect(self, source: EventSource) -> float:
        """Return the delay of a source's events in seconds; remove a source that fails three times in a row."""
        try:
            delay_seconds = source.collect()
        except Exception as error:  # noqa: BLE001 - whatever py4j and gRPC raise when Spark is gone
            self.problem(source.name, brief(error))
            self._failures[source.name] += 1
            if self._failures[source.name] >= _MOST_FAILURES:
                self._sources.remove(source)
                self._close(source)
            return 0.0
        self._failures[source.name] = 0
        return delay_seconds

    def _close(self, source: EventSource) -> None:
        """Close a source; an error is one of the problems."""
        self.attempt(source.name, source.close)
        self.job.source_ended(source.name)
