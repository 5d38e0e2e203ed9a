from __future__ import annotations

import errno
import io
import json
import logging
import os
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
from quotascope.exporter.logs import FailureLog, LogWriter, RateLimitedLog, configure_logs

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
    """
    Logfmt has time, level and message first, with None as an empty value; JSON is one object a line.

    Long values are cut.
    """
    line = written(LogFormat.LOGFMT, "limit changed", old=None, new=1.5, on=True)
    head, _, fields = line.partition(" ")
    assert head.startswith("timestamp=2")
    assert fields == 'level=info msg="limit changed" old= new=1.5 on=true\n'
    record = json.loads(written(LogFormat.JSON, "limit changed", old=None, new=1.5))
    assert record.pop("timestamp").startswith("2")
    assert record == {"msg": "limit changed", "old": None, "new": 1.5, "level": "info"}
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
    """Lines below the level are hidden; lines of libraries have our format and the library's name."""
    stream = log_of(level=LogLevel.WARNING, format=LogFormat.LOGFMT)
    structlog.get_logger().info("no")
    logging.getLogger("some.library").info("no")
    structlog.get_logger().warning("yes")
    logging.getLogger("aiohttp.server").error("bad %s", "\nrequest")
    own_line, library = stream.getvalue().splitlines()
    assert "msg=yes" in own_line
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
    """A traceback for people quotes text from outside escaped and cut."""
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
    """Lines for people have local time, and lines for programs UTC."""
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
    """A stream that fails ends no code that logs."""
    configure_logs(LogConfig(level=LogLevel.DEBUG), FullDisk())
    getattr(structlog.get_logger(), level)("no one reads this")


class Pipe:
    """A pipe whose reader reads when the test says so."""

    def __init__(self) -> None:
        self._reader, writer = os.pipe()
        self.stream = os.fdopen(writer, "w", encoding="utf-8")

    def read(self) -> str:
        return os.read(self._reader, 1 << 20).decode()

    def until(self, text: str) -> str:
        text_so_far = ""
        while text not in text_so_far:
            text_so_far += self.read()
        return text_so_far


@pytest.mark.timeout(60)
def test_a_log_that_is_not_read_holds_nobody_up() -> None:
    """Lines without room are dropped, counted, and reported as soon as there is room; the lines before are whole."""
    pipe = Pipe()
    log = LogWriter(pipe.stream, most_characters=1 << 17)
    configure_logs(LogConfig(format=LogFormat.LOGFMT), log)
    for number in range(5_000):
        structlog.get_logger().info("nobody reads this", number=number)
    log.close(0.01)
    assert log.dropped > 0
    text, dropped = "", 0
    while dropped < log.dropped:  # in several reports, if the pipe had room again meanwhile
        text += pipe.read()
        *lines, _ = text.split("\n")
        dropped = sum(int(line.rpartition("lines=")[2]) for line in lines if "were dropped" in line)
    numbers = [int(line.rpartition("=")[2]) for line in lines if "nobody reads this" in line]
    assert numbers == sorted(set(numbers))
    assert (len(numbers) + dropped, log.dropped) == (5_000, dropped)
    structlog.get_logger().info("read again")
    assert pipe.until("read again")


def test_the_last_lines_are_written_before_the_end() -> None:
    """Lines of a stream that fails are lost, and the wait for them is bounded."""
    stream = io.StringIO()
    for target in (stream, FullDisk()):
        log = LogWriter(target)
        configure_logs(LogConfig(format=LogFormat.LOGFMT), log)
        structlog.get_logger().info("the last line")
        log.close(10)
    assert stream.getvalue().endswith('msg="the last line"\n')


def test_record_that_cannot_be_formatted_ends_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong format string of a library is reported on standard error, not raised."""
    log_of(format=LogFormat.LOGFMT)
    logging.getLogger("lib").error("%d", "x")
    assert "Logging error" in capsys.readouterr().err


def test_a_failure_is_logged_again_when_its_kind_changes() -> None:
    """The first reason is logged at once, and another kind after a minute; other numbers are no other kind."""
    now_seconds = 0.0
    failures = FailureLog("source is down", clock=lambda: now_seconds)
    reasons = {
        0: "no connection to a:1 (refused)",
        10: "no connection to a:2 (refused)",
        20: "HTTP 401: the agent refuses these credentials",
        70: "HTTP 401: the agent refuses these credentials",
        80: "no connection to a:1 (refused)",
        100: "HTTP 401: the agent refuses these credentials",
        300: "HTTP 403: the agent refuses these credentials",
    }
    with capture_logs() as lines:
        for now_seconds, reason in reasons.items():  # noqa: B007 - which the clock returns
            failures.fails(reason, source="a")
        failures.works()
        failures.fails("HTTP 403: the agent refuses these credentials", source="a")
    assert [(line["event"], line["error"][:8]) for line in lines] == [
        ("source is down", "no conne"),
        ("source is down, for another reason", "HTTP 401"),
        ("source is down", "HTTP 403"),
    ]


def test_at_once_and_then_once_a_minute() -> None:
    """A repeated line is logged at once and then once a minute, with the count and the latest details."""
    now_seconds = 0.0
    event = RateLimitedLog("it rains", clock=lambda: now_seconds)
    with capture_logs() as lines:
        for now_seconds in (0.0, 1.0, 59.0, 60.0, 61.0):
            event.add(at=now_seconds)
    assert lines == [
        {"event": "it rains", "log_level": "warning", "times": 1, "at": 0.0},
        {"event": "it rains", "log_level": "warning", "times": 3, "at": 60.0},
    ]
