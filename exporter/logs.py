"""Log lines on standard error: structured, one line each whatever the values hold."""

from __future__ import annotations

import contextlib
import logging
import re
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from io import StringIO
from typing import Final, TextIO, cast

import structlog
from structlog.typing import EventDict, ExcInfo, Processor, WrappedLogger

from .config import LogConfig, LogFormat
from .untrusted import LONGEST, one_line

_LONGEST_OF = {"exception": 10_000}
"""Longest text, in characters, by key of a log line; ``LONGEST`` for all other keys."""
_EVERY_SECONDS: Final = 60.0
_NUMBER: Final = re.compile(r"\d+")


def configure_logs(config: LogConfig, stream: TextIO | LogWriter | None = None) -> None:
    """Send all log lines, those of libraries included, to ``stream`` (default: standard error)."""
    target = stream or sys.stderr
    level = logging.getLevelNamesMapping()[config.level.value.upper()]
    structlog.configure(
        processors=_processors(config.format, target),
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=lambda *_: _Lines(cast("TextIO", target)),
        cache_logger_on_first_use=False,
    )
    logging.basicConfig(handlers=[_Forward()], level=level, force=True)


def _processors(log_format: LogFormat, stream: TextIO | LogWriter) -> list[Processor]:
    """Return the steps that make a line in a format, the last of which returns its text."""
    if log_format is LogFormat.AUTO:
        log_format = LogFormat.HUMAN if stream.isatty() else LogFormat.LOGFMT
    level = structlog.processors.add_log_level
    if log_format is LogFormat.HUMAN:
        clock = structlog.processors.TimeStamper(fmt="%H:%M:%S", utc=False)
        console = structlog.dev.ConsoleRenderer(colors=stream.isatty(), exception_formatter=_traceback)
        return [level, clock, tame, console]
    renderer: Processor = structlog.processors.JSONRenderer()
    if log_format is LogFormat.LOGFMT:
        renderer = structlog.processors.LogfmtRenderer(
            key_order=["timestamp", "level", "msg"], drop_missing=True, bool_as_flag=False
        )
    return [
        level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        structlog.processors.EventRenamer("msg"),
        tame,
        renderer,
    ]


def _traceback(stream: TextIO, info: ExcInfo) -> None:
    """
    Write a traceback without local variables, which may be secrets.

    The message of the exception is made printable.
    """
    plain = StringIO()
    structlog.dev.plain_traceback(plain, info)
    longest = _LONGEST_OF["exception"]
    lines = plain.getvalue()[:longest].splitlines()
    stream.write("\n" + "\n".join(map(one_line, lines)))


def tame(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Make every text one printable line of bounded length: no value can forge a line or move a cursor."""
    for key, value in event.items():
        if isinstance(value, str):
            event[key] = one_line(value, _LONGEST_OF.get(key, LONGEST))
    return event


class LogWriter:
    """
    A stream that writes in a thread of its own, so that a scrape does not wait for a log that is not read.

    Texts without room are dropped and counted, and a line says so once there is room again.

    Args:
        stream: The stream that gets the text; it may block.
        most_characters: Longest text that may wait.

    """

    def __init__(self, stream: TextIO, most_characters: int = 1 << 22) -> None:
        self._stream = stream
        self._most = most_characters
        self._waiting: deque[str] = deque()
        self._length = 0
        self._unreported = 0
        self._changed = threading.Condition()
        self.dropped = 0
        """Texts dropped since the start, a line each."""
        self._thread = threading.Thread(target=self._write_all, name="quotascope-log", daemon=True)
        self._thread.start()

    def write(self, text: str) -> int:
        """Hand the text over; never blocks."""
        with self._changed:
            # the thread's own line about a loss always has room, or the number in it would be lost
            if self._length + len(text) > self._most and threading.current_thread() is not self._thread:
                self.dropped += 1
                self._unreported += 1
            else:
                self._waiting.append(text)
                self._length += len(text)
                self._changed.notify_all()
        return len(text)

    def flush(self) -> None:
        """Do nothing: each text is flushed once it is written."""

    def isatty(self) -> bool:
        """Return whether a person reads the stream."""
        return self._stream.isatty()

    def close(self, seconds: float) -> None:
        """Wait for at most ``seconds`` until all texts are written. Later texts are written, too."""
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting, seconds)

    def _write_all(self) -> None:
        """Write the waiting texts, one after the other, for ever; then log how many were dropped meanwhile."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting)
                text = self._waiting[0]
            with contextlib.suppress(OSError, ValueError):
                self._stream.write(text)
                self._stream.flush()
            with self._changed:
                self._waiting.popleft()
                self._length -= len(text)
                unreported, self._unreported = self._unreported, 0
                self._changed.notify_all()
            if unreported:
                structlog.get_logger().warning(
                    "log lines were dropped: the log is not read fast enough", lines=unreported
                )


class _Lines(structlog.WriteLogger):
    """Writes lines. A disk that is full or a reader that went away costs lines, and no scrape."""

    def msg(self, message: str) -> None:
        """Write a line, or drop it if the stream fails."""
        with contextlib.suppress(OSError, ValueError):
            super().msg(message)

    log = debug = info = warning = error = critical = exception = msg


class _Forward(logging.Handler):
    """Hands the lines of libraries to structlog."""

    def emit(self, record: logging.LogRecord) -> None:
        """Log a line of a library with the name of its logger."""
        try:
            line = structlog.get_logger().bind(logger=record.name)
            line.log(record.levelno, record.getMessage(), exc_info=record.exc_info)
        except Exception:  # noqa: BLE001 - a log line must not end the program
            self.handleError(record)


class FailureLog:
    """
    Logs when failures begin, and later a reason of another kind, at most once a minute.

    Reasons that differ in numbers only, such as ports and durations, are of one kind.

    Args:
        event: Text about the failure.
        clock: Steady seconds.

    """

    def __init__(self, event: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._event = event
        self._clock = clock
        self._kind: str | None = None
        self._logged_at = float("-inf")

    def fails(self, reason: str, **details: object) -> None:
        """Log the reason of a failure if it is the first one or of another kind; ``details`` are part of the line."""
        kind, now_seconds = _NUMBER.sub("#", reason), self._clock()
        is_first = self._kind is None
        if is_first or (kind != self._kind and now_seconds - self._logged_at >= _EVERY_SECONDS):
            event = self._event if is_first else f"{self._event}, for another reason"
            structlog.get_logger().warning(event, error=reason, **details)
            self._kind, self._logged_at = kind, now_seconds

    def works(self) -> None:
        """Note a success: the next failure is logged again."""
        self._kind = None


class RateLimitedLog:
    """
    Logs an event that clients can cause: at once, and then at most once a minute, with how often it happened since.

    Args:
        event: Text about the event.
        level: Level of the log line.
        clock: Steady seconds.

    """

    def __init__(self, event: str, level: str = "warning", clock: Callable[[], float] = time.monotonic) -> None:
        self._event = event
        self._level = level
        self._clock = clock
        self._count = 0
        self._logged_at = float("-inf")

    def add(self, **details: object) -> None:
        """Count the event, and log it if the last line is a minute old; ``details`` are part of the line."""
        self._count += 1
        now_seconds = self._clock()
        if now_seconds - self._logged_at >= _EVERY_SECONDS:
            log = getattr(structlog.get_logger(), self._level)
            log(self._event, times=self._count, **details)
            self._count, self._logged_at = 0, now_seconds
