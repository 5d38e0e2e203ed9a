"""Which way to the events works here."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..errors import SourceUnusable
from ..events import WANTED
from ..foreign import Spark
from ..job import Job
from ..properties import Settings
from .callbacks import CallbackSource
from .event_log import EventLogSource, LogPlace
from .pull import PullSource
from .source import Source
from .streaming import StreamingSource

Report = Callable[[SourceUnusable], None]
_PACKAGES = {
    "SparkListener": "org.apache.spark.scheduler.",
    "StreamingQueryListener": "org.apache.spark.sql.streaming.",
}


class Choice:
    """
    Opens the best sources that work, and reports those that do not.

    Args:
        context: the SparkContext; None under Spark Connect.
        session: the session.
        log: where the event log of this application is, None when that is not known.

    """

    def __init__(
        self,
        *,
        context: Spark | None,
        session: Spark,
        log: LogPlace | None,
        job: Job,
        settings: Settings,
        report: Report,
    ) -> None:
        self._context = context
        self._session = session
        self._log = log
        self._job = job
        self._settings = settings
        self._report = report

    def open(self) -> tuple[Source, ...]:
        """
        One of pull and callbacks; else, or under Spark Connect, the streaming listener and the event log, as far as they are to be had.

        A source that was asked for is tried first, and alone if it works.
        """
        asked = self._settings.source
        if asked != "auto":
            source = self._try(asked)
            if source is not None:
                return (source,)
        return tuple(self._best(but=asked))

    def _best(self, but: str) -> Iterator[Source]:
        if self._context is not None:
            for name in ("pull", "callbacks"):
                source = None if name == but else self._try(name)
                if source is not None:
                    yield source
                    return
        streaming = None if but == "streaming" else self._try("streaming")
        if streaming is not None:
            yield streaming
        if self._log is not None and but != "event_log":
            log = self._try("event_log", queries=streaming is None)
            if log is not None:
                yield log

    def _try(self, name: str, *, queries: bool = True) -> Source | None:
        try:
            return self._open(name, queries=queries)
        except SourceUnusable as unusable:
            self._report(unusable)
            return None

    def _open(self, name: str, *, queries: bool) -> Source:
        wanted = _jvm_names()
        if name == "streaming":
            return StreamingSource(self._session, self._job)
        if name == "event_log":
            return self._event_log(queries=queries)
        if self._context is None:
            raise SourceUnusable(name, "Spark Connect has no way to the driver's JVM")
        if name == "callbacks":
            return CallbackSource(self._context, self._job, wanted=wanted)
        return PullSource(
            self._context,
            self._job,
            wanted=wanted,
            capacity=self._settings.queue_capacity,
            thin=not self._settings.successes,
        )

    def _event_log(self, *, queries: bool) -> Source:
        if self._log is None:
            raise SourceUnusable(
                "event_log", "set spark.quotascope.eventLog to the log to follow"
            )
        return EventLogSource(self._log, self._job, queries=queries)


def _jvm_names() -> tuple[str, ...]:
    return tuple(
        package + name
        for name in WANTED
        for prefix, package in _PACKAGES.items()
        if name.startswith(prefix)
    )
