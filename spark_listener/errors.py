"""
Errors of the Spark listener and of its report.

::

    SparkListenerError
    ├── InvalidProperty     a setting cannot be used; its default is used
    ├── SourceUnusable      this source cannot bring the events here; the next one is tried
    ├── UnreadableEvent     an event lacks what every version of Spark writes
    ├── EventLogError       an event log cannot be read
    │   ├── NoEventLog          there is none, or the file is something else
    │   ├── CodecUnusable       its compression cannot be read here
    │   └── EventLogDamaged     its bytes are not what the codec writes
    ├── UnreadableSummary   a file is not a summary of a job
    ├── ReportError         a report cannot be made or written
    ├── JarUnavailable      the jar cannot be written, or this installation lacks it
    └── PluginUnreadable    the plugin's answer is not what this version expects

The first three never reach the job: `attach` reports them and continues.
"""

from __future__ import annotations

from quotascope.metrics.errors import QuotascopeError

_LONGEST_REASON = 300


class SparkListenerError(QuotascopeError):
    """An error of the Spark listener; the message says what is wrong, where, and what to do."""


class InvalidProperty(SparkListenerError):
    """A setting cannot be used; the message names it and shows no secret."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{name}: {problem}")
        self.name = name
        self.problem = problem


class SourceUnusable(SparkListenerError):
    """The driver cannot get its events in this way."""

    def __init__(self, source: str, reason: str) -> None:
        super().__init__(f"{source}: {reason}")
        self.source = source
        self.reason = reason


class UnreadableEvent(SparkListenerError):
    """An event lacks what every version of Spark writes."""


class EventLogError(SparkListenerError):
    """An event log cannot be read."""


class NoEventLog(EventLogError):
    """No event log was found."""


class CodecUnusable(EventLogError):
    """An event log cannot be decompressed here."""


class EventLogDamaged(EventLogError):
    """The bytes of an event log are not what the codec writes."""


class UnreadableSummary(SparkListenerError):
    """A file is not a summary of a job."""


class ReportError(SparkListenerError):
    """A report cannot be made or written."""


class JarUnavailable(SparkListenerError):
    """The jar cannot be written, or this installation lacks it."""


class PluginUnreadable(SparkListenerError):
    """The plugin's answer is not what this version expects."""


def brief(error: BaseException) -> str:
    """
    Return one line for a log, without the user's data.

    An error that came through the JVM carries a stack of many lines; its first line names the class and says what was
    wrong.
    """
    java = getattr(error, "java_exception", None)
    try:
        text = str(error if java is None else java.toString())
    except Exception as unprintable:  # noqa: BLE001 - the JVM may be gone, or have any complaint
        text = type(unprintable).__name__
    words = " ".join(text.split())
    if not words:
        return type(error).__name__
    return words if len(words) <= _LONGEST_REASON else words[: _LONGEST_REASON - 1] + "…"
