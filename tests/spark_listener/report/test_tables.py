from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console
from rich.text import Text
from tests.spark_listener.report.throttled import HOSTILE, log

from quotascope.spark_listener.report import read_account, tables


def drawn(path: Path, width: int = 120) -> str:
    """What a terminal shows."""
    console = Console(file=io.StringIO(), width=width, force_terminal=True)
    console.print(tables(read_account(path)))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [40, 120])
def test_names_do_not_move_the_cursor(tmp_path: Path, width: int) -> None:
    """Escape sequences and marks of direction are spelt out, and markup is none."""
    text = drawn(log(tmp_path / "app-1", HOSTILE), width)
    assert "\x1b[31m" not in text
    assert "\u202e" not in text
    assert "\ud800" not in text
    if width > 100:
        assert "[red]" in text


def test_tables_tell_all(tmp_path: Path) -> None:
    """Who waited, why attempts failed, where, and for how long."""
    text = drawn(log(tmp_path / "app-1"))
    for words in (
        "nightly",
        "billing",
        "kafka_timeout_throttled",
        "foreachPartition",
        "clicks",
        "9,000",
        "4.00 s",
        "--summary",
        "not ended",
    ):
        assert (words in text) == (words not in ("4.00 s", "not ended"))


def test_figures_are_those_of_the_log(tmp_path: Path) -> None:
    """What each attempt noted, how long it took, and the sums of that; ms are told as seconds."""
    text = Text.from_ansi(drawn(log(tmp_path / "app-1"))).plain
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert lines[1] == "app-1, from 2023-11-14 22:13:20 UTC for 1 min"
    assert lines[2] == "Throttled at least 5.50 s, 4 failed attempts, 1 retry, 0 stage retries, 0 lost executors"  # fmt: skip
    for row in (
        "alice billing write 4 s 4 2 s 1",
        "clicks alice clicks-reader read 1.50 s 4 0.75 s 1",
        "kafka_quota 1 0",
        "kafka_timeout_throttled 2 1",
        "executor_lost 1 0",
        "0.0 foreachPartition 1 kafka_timeout_throttled 4 s",
        "2.0 start clicks 1 kafka_timeout_throttled 1.50 s",
        "clicks 0 8 s 9,000 2,500",
        "0.0 0, 0 kafka_timeout_throttled 4 s 7 s",
        "2.0 0, 0 kafka_timeout_throttled clicks 1.50 s 5 s",
    ):
        assert lines.count(row) == 1, row


def test_long_tables_are_cut(tmp_path: Path) -> None:
    """How many rows are left out is said."""
    path = log(tmp_path / "app-1")
    lines = path.read_text().splitlines()
    stage = [line for line in lines if '"Stage ID":0' in line and "Finish" in line]
    more = [
        line.replace('"Stage ID":0', f'"Stage ID":{number}')
        for number in range(50, 70)
        for line in stage
    ]
    path.write_text("\n".join([*lines, *more]) + "\n")
    assert "and 7 more" in drawn(path)


@pytest.mark.parametrize("width", [70, 80, 120])
def test_causes_are_not_broken(tmp_path: Path, width: int) -> None:
    """They are words to search for: one among the causes, two each of stages and of waits; names give way."""
    text = drawn(log(tmp_path / "app-1", "-" + "x" * 60), width)
    assert text.count("kafka_timeout_throttled") == 5
