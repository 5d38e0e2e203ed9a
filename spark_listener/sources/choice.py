"""Choice of the sources of events that work here."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ..errors import SourceUnusable
from ..events import WANTED
from ..foreign import Spark
from ..job import Job
from ..settings import ListenerSettings
from .callbacks import CallbackSource
from .event_log import EventLogSource, LogPlace
from .pull import PullSource
from .source import EventSource
from .streaming import StreamingSource

_Value = TypeVar("_Value")
_PACKAGES = {
    "SparkListener": "org.apache.spark.scheduler.",
    "StreamingQueryListener": "org.apache.spark.sql.streaming.",
}


def open_sources(
    *,
    context: Spark | None,
    session: Spark,
    log: LogPlace | None,
    job: Job,
    settings: ListenerSettings,
    report: Callable[[SourceUnusable], None],
) -> tuple[EventSource, ...]:
    """
    Open pull, or callbacks; where neither works and under Spark Connect, the streaming listener and the event log.

    The source of the settings is tried first, and used alone if it works.

    Args:
        context: the SparkContext; None under Spark Connect.
        session: the session.
        log: place of the event log of this application, None when it is not known.
        job: receives the events.
        settings: settings of the listener.
        report: function that is called with each source that does not work.

    """
    event_names = _jvm_names()
    unreachable = "Spark Connect has no way to the driver's JVM"
    no_log = "set spark.quotascope.eventLog to the log to follow"
    # the argument: whether to pass on the events of streaming queries
    makers: dict[str, Callable[[bool], EventSource]] = {
        "pull": lambda _: PullSource(
            _needed(context, "pull", unreachable),
            job,
            event_names=event_names,
            capacity=settings.queue_capacity,
            thin=not settings.successes,
        ),
        "callbacks": lambda _: CallbackSource(_needed(context, "callbacks", unreachable), job, event_names=event_names),
        "streaming": lambda _: StreamingSource(session, job),
        "event_log": lambda queries: EventLogSource(_needed(log, "event_log", no_log), job, queries=queries),
    }

    def opened(name: str, *, queries: bool = True) -> tuple[EventSource, ...]:
        """Return a source, or none if it does not work here."""
        try:
            return (makers[name](queries),)
        except SourceUnusable as unusable:
            report(unusable)
            return ()

    # first the one of the settings, then those that have all events; the first that works is used alone
    requested = settings.source
    names = [] if requested == "auto" else [requested]
    if context is not None:
        names += [name for name in ("pull", "callbacks") if name != requested]
    for name in names:
        if sources := opened(name):
            return sources
    # then those that have a part of the events each, but for one that was tried above
    sources = () if requested == "streaming" else opened("streaming")
    if log is not None and requested != "event_log":
        sources += opened("event_log", queries=not sources)
    return sources


def _needed(value: _Value | None, name: str, advice: str) -> _Value:
    """Return a value that a source needs. Raises `SourceUnusable` without it."""
    if value is None:
        raise SourceUnusable(name, advice)
    return value


def _jvm_names() -> tuple[str, ...]:
    """Return the full names of the classes of events to request."""
    return tuple(package + name for name in WANTED for prefix, package in _PACKAGES.items() if name.startswith(prefix))
