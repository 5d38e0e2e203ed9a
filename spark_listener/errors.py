"""
What can go wrong with watching a Spark job.

::

    SparkListenerError
    ├── InvalidProperty     a setting cannot be used; its default is used in its place
    └── SourceUnusable      this way of getting at the events does not work here; the next one is tried

None of them reaches the job: `attach` reports them and goes on.
"""

from __future__ import annotations

_LONGEST_REASON = 300


class SparkListenerError(Exception):
    """Something about watching a Spark job went wrong; the message says what, where, and what to do."""


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


def brief(error: BaseException) -> str:
    """
    One line that says what happened: fit for a log, and without the text of the user's data.

    An error that came through the JVM carries a stack of many lines; its first line names the class and says what was wrong.
    """
    java = getattr(error, "java_exception", None)
    text = str(error) if java is None else _java_text(java)
    words = " ".join(text.split())
    if not words:
        return type(error).__name__
    return (
        words if len(words) <= _LONGEST_REASON else words[: _LONGEST_REASON - 1] + "…"
    )


def _java_text(java: object) -> str:
    try:
        return str(java.toString())  # type: ignore[attr-defined]
    except Exception as gone:  # noqa: BLE001 - the JVM may be gone, or have any complaint
        return type(gone).__name__
