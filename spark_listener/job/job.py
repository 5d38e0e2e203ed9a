"""The books of one application."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..events import Cause
from .snapshot import JobSnapshot, QueryTotals

ThrottleReader = Callable[[], Iterable[QueryTotals]]
"""Tells absolute counts, which never go down."""


class Job:
    """
    Keeps the books of one application from its events, whatever source they come from. All methods may be called from any thread.

    Args:
        app: `spark.app.name`.
        clock: seconds since 1970, as Spark's own events have them.

    """

    def __init__(self, app: str, clock: Callable[[], float] = time.time) -> None:
        self._app = app
        self._clock = clock
        self._lock = threading.Lock()
        self._readers: list[ThrottleReader] = []
        self._events = 0
        self._lost = 0
        self._lag = 0.0
        self._sources: tuple[str, ...] = ()

    def handle(self, event: Mapping[str, Any]) -> None:
        """Take in one event as JsonProtocol writes it. Never raises: an event that cannot be read is counted as lost."""
        with self._lock:
            self._events += 1
            self._lost += "Event" not in event

    def lost(self, events: int) -> None:
        """Count events that the source missed."""
        with self._lock:
            self._lost += events

    def lag(self, seconds: float) -> None:
        """Say how far the source is behind."""
        with self._lock:
            self._lag = seconds

    def source(self, *names: str) -> None:
        """Say where events come from now; replaces what was said before, and nothing means that no source is live."""
        with self._lock:
            self._sources = names

    def add_throttles(self, read: ThrottleReader) -> None:
        """Ask this reader, too, when a snapshot is made; one that raises leaves its last numbers in place."""
        with self._lock:
            self._readers.append(read)

    def snapshot(self) -> JobSnapshot:
        """What is known now."""
        with self._lock:
            return JobSnapshot(
                app=self._app,
                failures=dict.fromkeys(Cause, 0),
                retries=dict.fromkeys(Cause, 0),
                stage_retries=0,
                executors_lost=0,
                queries=(),
                throttles=(),
                events=self._events,
                lost_events=self._lost,
                lag_seconds=self._lag,
                sources=self._sources,
            )
