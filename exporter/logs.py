"""Log lines on standard error: structured, one line each whatever the values hold."""

from __future__ import annotations

import contextlib
import logging
import sys
import time
from collections.abc import Callable
from io import StringIO
from typing import Final, TextIO

import structlog
from structlog.typing import EventDict, ExcInfo, Processor, WrappedLogger

from .config import LogConfig, LogFormat
from .untrusted import LONGEST, one_line

_LONGEST_OF = {"exception": 10_000}
_EVERY_SECONDS: Final = 60.0


def configure_logs(config: LogConfig, stream: TextIO | None = None) -> None:
    """Send all log lines, those of libraries included, to ``stream`` (default: standard error)."""
    target = stream or sys.stderr
    level = logging.getLevelNamesMapping()[config.level.value.upper()]
    structlog.configure(
        processors=_processors(config.format, target),
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=lambda *_: _Lines(target),
        cache_logger_on_first_use=False,
    )
    logging.basicConfig(handlers=[_Forward()], level=level, force=True)


def _processors(log_format: LogFormat, stream: TextIO) -> list[Processor]:
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
    """Write a traceback without local variables, which may be secrets, and with what an exception quotes made printable."""
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


class _Lines(structlog.WriteLogger):
    """Writes lines. A disk that is full or a reader that went away costs lines, and no scrape."""

    def msg(self, message: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            super().msg(message)

    log = debug = info = warning = error = critical = exception = msg


class _Forward(logging.Handler):
    """Hands the lines of libraries to structlog."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = structlog.get_logger().bind(logger=record.name)
            line.log(record.levelno, record.getMessage(), exc_info=record.exc_info)
        except Exception:  # noqa: BLE001 - a log line must not end the program
            self.handleError(record)


class RateLimitedLog:
    """
    Logs an event that clients can cause: at once, and then at most once a minute, with how often it happened since.

    Args:
        event: What happened.
        level: Of the log line.
        clock: Steady seconds.

    """

    def __init__(self, event: str, level: str = "warning", clock: Callable[[], float] = time.monotonic) -> None:
        self._event = event
        self._level = level
        self._clock = clock
        self._count = 0
        self._logged_at = float("-inf")

    def add(self, **details: object) -> None:
        """Count the event; ``details`` are of this time, and part of the line if one is logged."""
        self._count += 1
        at = self._clock()
        if at - self._logged_at >= _EVERY_SECONDS:
            log = getattr(structlog.get_logger(), self._level)
            log(self._event, times=self._count, **details)
            self._count, self._logged_at = 0, at
