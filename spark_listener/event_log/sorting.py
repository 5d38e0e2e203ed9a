"""Sorting of the events of a log into the order in which Spark wrote them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from ..errors import EventLogDamaged
from ..job import EventSink
from .log import EventLog, event_of
from .order import sort_key

_MOST_BYTES: Final = 512 * 1024 * 1024
"""Largest number of bytes of events that are held in memory to be sorted."""


class TooLarge(Exception):
    """The events of a log do not fit into memory."""


def in_order(log: EventLog, job: EventSink, progress: Callable[[int], None] | None = None) -> None:
    """
    Pass the new events of a log to a job, sorted by time.

    Raises:
        TooLarge: the events do not fit into memory.
        EventLogError: as `EventLog.feed`, after the events that could be read were passed on.
        OSError: as `EventLog.feed`.

    """
    gathered = _Gathered(job)
    try:
        log.feed(gathered, progress)
    except EventLogDamaged:
        gathered.pass_on()
        raise
    gathered.pass_on()


class _Gathered:
    """Sink that holds all events until `pass_on`."""

    def __init__(self, job: EventSink) -> None:
        self._job = job
        self._events: list[tuple[tuple[float, int, int], int, bytes]] = []
        """Key of each event (`sort_key`), its place in the log, which decides between equal keys, and its JSON."""
        self._bytes = 0
        self.passed = job.passed
        self.lost = job.lost

    def handle(self, event: Mapping[str, Any]) -> None:
        """Hold one event."""
        try:
            text = orjson.dumps(event)
        except TypeError:  # orjson refuses halves of surrogate pairs and numbers of more than 64 bits
            text = json.dumps(event).encode()
        self._bytes += len(text)
        if self._bytes > _MOST_BYTES:
            raise TooLarge
        self._events.append((sort_key(event), len(self._events), text))

    def pass_on(self) -> None:
        """Pass on the events by time."""
        self._events.sort()
        for _, _, text in self._events:
            event = event_of(text)
            if event is not None:
                self._job.handle(event)
        self._events = []
