from __future__ import annotations

import errno
import io
import json
import logging
import re
import secrets
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from quotascope.exporter.config import LogConfig, LogFormat, LogLevel
from quotascope.exporter.logs import RateLimitedLog, configure_logs

pytestmark = pytest.mark.usefixtures("logging_restored")

HOSTILE = 'a"b\\c\nlevel=error msg=forged \x1b[31m\r\u2028 = \U0001f600'


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def log_of(**config: Any) -> io.StringIO:
    stream = io.StringIO()
    configure_logs(LogConfig(**config), stream)
    return stream


def written(log_format: LogFormat, text: str, **values: object) -> str:
    stream = log_of(format=log_format)
    structlog.get_logger().info(text, **values)
    return stream.getvalue()


def test_logfmt_and_json() -> None:
    """Time, level and message first, and values as they are, None empty; or one object for each line. Long values are cut."""
    line = written(LogFormat.LOGFMT, "limit changed", old=None, new=1.5, on=True)
    head, _, rest = line.partition(" ")
    assert head.startswith("timestamp=2")
    assert rest == 'level=info msg="limit changed" old= new=1.5 on=true\n'
    found = json.loads(written(LogFormat.JSON, "limit changed", old=None, new=1.5))
    assert found.pop("timestamp").startswith("2")
    assert found == {"msg": "limit changed", "old": None, "new": 1.5, "level": "info"}
    assert len(written(LogFormat.LOGFMT, "x", user="y" * 10_000)) < 1_200


@pytest.mark.parametrize("log_format", [LogFormat.LOGFMT, LogFormat.JSON, LogFormat.HUMAN])
@given(value=st.one_of(st.text(), st.just(HOSTILE)))
def test_no_value_can_break_a_line(log_format: LogFormat, value: str) -> None:
    """Names from outside can neither forge a line nor move a cursor."""
    line = written(log_format, value, user=value)
    assert line.endswith("\n")
    assert line[:-1].isprintable()


def test_auto_is_human_on_a_terminal_and_logfmt_elsewhere() -> None:
    """A person reads colors, a log collector reads keys."""
    terminal = Terminal()
    configure_logs(LogConfig(), terminal)
    structlog.get_logger().info("hello")
    assert "\x1b[" in terminal.getvalue()
    assert "level=info msg=hello" in written(LogFormat.AUTO, "hello")


def test_level_hides_what_is_below() -> None:
    """Debug lines are for those who ask for them; whatever a library logs has our format, and its name."""
    stream = log_of(level=LogLevel.WARNING, format=LogFormat.LOGFMT)
    structlog.get_logger().info("no")
    logging.getLogger("some.library").info("no")
    structlog.get_logger().warning("yes")
    logging.getLogger("aiohttp.server").error("bad %s", "\nrequest")
    own, library = stream.getvalue().splitlines()
    assert "msg=yes" in own
    assert library.endswith('level=error msg="bad \\\\nrequest" logger=aiohttp.server')


@pytest.mark.parametrize("log_format", [LogFormat.LOGFMT, LogFormat.JSON, LogFormat.HUMAN])
def test_exceptions_are_one_line_without_local_variables(log_format: LogFormat) -> None:
    """A traceback shows code, never values: these may be secrets."""
    stream = log_of(format=log_format)
    password = secrets.token_hex()
    try:
        int(f"{len(password)}x")
    except ValueError:
        structlog.get_logger().exception("failed")
    text = stream.getvalue()
    assert "ValueError" in text
    assert password not in text
    if log_format is not LogFormat.HUMAN:
        assert text.count("\n") == 1


def test_no_exception_moves_the_cursor() -> None:
    """A traceback for people may quote what came from outside, but only as text, and not without end."""
    stream = log_of(format=LogFormat.HUMAN)
    try:
        raise ValueError(HOSTILE + "x" * 50_000)  # noqa: TRY301 - what is logged below
    except ValueError:
        structlog.get_logger().exception("failed")
    lines = stream.getvalue().split("\n")
    assert "Traceback (most recent call last):" in lines
    assert all(line.isprintable() for line in lines)
    assert len(stream.getvalue()) < 12_000


def test_people_read_the_time_of_their_clock_and_programs_that_of_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    """A person compares it with a watch, a collector with other machines."""
    monkeypatch.setenv("TZ", "XYZ-05:30")  # half past five hours east of Greenwich
    time.tzset()
    try:
        begun = datetime.now(UTC)
        clock = re.search(r"\d\d:\d\d:\d\d", written(LogFormat.HUMAN, "x"))
        stamps = [
            json.loads(written(LogFormat.JSON, "x"))["timestamp"],
            written(LogFormat.LOGFMT, "x").split()[0].removeprefix("timestamp="),
        ]
        ended = datetime.now(UTC)
    finally:
        monkeypatch.undo()
        time.tzset()
    assert clock is not None
    east = timedelta(hours=5, minutes=30)
    near = [f"{begun + east:%H:%M}", f"{ended + east:%H:%M}"]
    assert clock[0][:5] in near
    for stamp in stamps:
        assert begun <= datetime.fromisoformat(stamp) <= ended


class FullDisk(io.StringIO):
    def write(self, _text: str, /) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("level", ["debug", "info", "warning", "error", "exception"])
def test_stream_that_fails_ends_nothing(level: str) -> None:
    """Anyone who logs goes on: a scrape is worth more than a line about it."""
    configure_logs(LogConfig(level=LogLevel.DEBUG), FullDisk())
    getattr(structlog.get_logger(), level)("no one reads this")


def test_record_that_cannot_be_formatted_ends_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong format string of a library is reported on standard error, not raised."""
    log_of(format=LogFormat.LOGFMT)
    logging.getLogger("lib").error("%d", "x")
    assert "Logging error" in capsys.readouterr().err


def test_at_once_and_then_once_a_minute() -> None:
    """With how often it happened since the last line, and what it was this time."""
    now = 0.0
    event = RateLimitedLog("it rains", clock=lambda: now)
    with capture_logs() as lines:
        for now in (0.0, 1.0, 59.0, 60.0, 61.0):
            event.add(at=now)
    assert lines == [
        {"event": "it rains", "log_level": "warning", "times": 1, "at": 0.0},
        {"event": "it rains", "log_level": "warning", "times": 3, "at": 60.0},
    ]
