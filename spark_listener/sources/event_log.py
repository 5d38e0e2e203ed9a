"""Source that follows the event log that the application writes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from ..errors import SourceUnusable, brief
from ..event_log import EventLog, EventLogError, NoEventLog, logs_of
from ..job import EventSink
from .source import lateness

_QUERY = "org.apache.spark.sql.streaming.StreamingQueryListener$"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPlace:
    """Present or future place of an application's log."""

    path: Path
    app_id: str | None = None
    """Id that is set when `path` is a folder of many applications' logs (`spark.eventLog.dir`)."""
    attempt: str | None = None
    """Attempt at the application (`spark.app.attempt.id`, on YARN); None where that is not known."""

    def find(self) -> Path:
        """
        Return the log; of several attempts at the application, the log of ours, else of the last.

        Raises `NoEventLog` while there is none, and `OSError`.
        """
        if self.app_id is None:
            return self.path
        candidates = [
            (int(attempt) if attempt.isascii() and attempt.isdecimal() else 0, attempt, log)
            for attempt, log in logs_of(self.path, self.app_id)
            if self.attempt in (None, attempt)
        ]
        if not candidates:
            raise NoEventLog(f"{self.path} holds no event log of {self.app_id}")
        # by number of the attempt: as texts, 10 would come before 9
        _, _, last_log = max(candidates)
        return last_log


def log_place(setting: str | None, properties: Mapping[str, str], app_id: str) -> LogPlace | None:
    """
    Return the log of the setting, or the one that Spark writes.

    Return None if it writes none, or where only Hadoop's clients can read.

    Args:
        setting: `spark.quotascope.eventLog`.
        properties: Spark's.
        app_id: `spark.app.id`.

    """
    if setting is not None:
        path = _local(setting)
        return None if path is None else LogPlace(path=path)
    folder = _local(properties.get("spark.eventLog.dir", ""))
    if properties.get("spark.eventLog.enabled") != "true" or folder is None or not app_id:
        return None
    attempt = properties.get("spark.app.attempt.id") or None
    return LogPlace(path=folder, app_id=app_id, attempt=attempt)


class EventLogSource:
    """
    Source that reads what is new in a growing log.

    Spark writes the ends of tasks when their stage ends or a buffer is full, so that this source is late by as much.

    Args:
        place: the log.
        job: the books.
        queries: pass on the events of streaming queries; False when another source does.

    Raises:
        SourceUnusable: the file is not an event log, or cannot be decompressed here. A log that does not exist yet is
            waited for.

    """

    name = "event_log"

    def __init__(
        self, place: LogPlace, job: EventSink, *, queries: bool = True, clock: Callable[[], float] = time.time
    ) -> None:
        self._place = place
        self._sink = _TimedSink(job, clock, queries=queries)
        self._log: EventLog | None = None
        try:
            self._open()
        except (EventLogError, OSError) as error:
            raise SourceUnusable(self.name, brief(error)) from error

    @property
    def ended(self) -> bool:
        """True if the log has the end of the application."""
        return self._log is not None and self._log.finished

    def collect(self) -> float:
        """Read the new events, and return their delay. Raises `EventLogError` and `OSError`."""
        self._sink.latest = 0.0
        if self._log is None:
            self._open()
        if self._log is not None:
            self._log.feed(self._sink)
        return self._sink.latest

    def close(self) -> None:
        """Read the last events, and close the log. Raises `EventLogError` and `OSError`."""
        try:
            self.collect()
        finally:
            if self._log is not None:
                self._log.close()

    def _open(self) -> None:
        """Open the log, unless it does not exist yet. Raises `EventLogError` and `OSError`."""
        try:
            self._log = EventLog(self._place.find())
        except (NoEventLog, FileNotFoundError):
            if self._place.path.is_file():
                raise


class _TimedSink:
    """Sink that measures the delay of events, and leaves out those of queries where another source has them."""

    def __init__(self, job: EventSink, clock: Callable[[], float], *, queries: bool) -> None:
        self._job = job
        self._clock = clock
        self._queries = queries
        self.latest = 0.0
        self.passed = job.passed
        self.lost = job.lost

    def handle(self, event: Mapping[str, Any]) -> None:
        """Handle one event."""
        if not self._queries and str(event.get("Event")).startswith(_QUERY):
            return
        self.latest = max(self.latest, lateness(event, self._clock()))
        self._job.handle(event)


def _local(text: str) -> Path | None:
    """Return the path of a URI of Hadoop's, if it is on this machine."""
    try:
        parts = urlsplit(text)
    except ValueError:  # a bracket that is no address
        return None
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    return None if parts.scheme or not text else Path(text)
