from __future__ import annotations

import math
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotascope.pages.words import counted, moment, seconds, shown, text_cell


@given(st.text(st.characters(codec=None, exclude_categories=())))
def test_name_that_is_shown(name: str) -> None:
    """It is one line that any terminal and any file can take, and never long."""
    line = shown(name)
    assert line.isprintable()
    assert len(line) <= 60
    line.encode()


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("x" * 60, "x" * 60),
        ("x" * 61, "x" * 59 + "…"),
        ("x" * 59 + "\n", "x" * 59 + "…"),
        ("a\u202eb", "a\\u202eb"),
    ],
)
def test_long_names_are_cut(name: str, line: str) -> None:
    """Sixty characters, the last of them the mark that there were more; what is spelled out counts as it is shown."""
    assert shown(name) == line
    assert shown(name, 200) == name.replace("\n", "\\n").replace("\u202e", "\\u202e")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0.0, "0 s"),
        (0.0001, "<1 ms"),
        (0.0009, "1 ms"),
        (0.004, "4 ms"),
        (0.25, "0.25 s"),
        (9.999, "10.00 s"),
        (12.0, "12 s"),
        (60.0, "1 min"),
        (192.4, "3 min 12 s"),
        (7_322.0, "2 h 2 min"),
        (90_000.0, "1 d 1 h"),
        (9.0, "9 s"),
        (10.0, "10 s"),
        (10.4, "10 s"),
        (59.0, "59 s"),
        (119.0, "1 min 59 s"),
        (3_599.0, "59 min 59 s"),
        (3_600.0, "1 h"),
        (3_659.0, "1 h"),
        (86_399.0, "23 h 59 min"),
        (86_400.0, "1 d"),
        (176_400.0, "2 d 1 h"),
    ],
)
def test_duration(value: float, words: str) -> None:
    """Two units are enough."""
    assert seconds(value) == words


def test_moment() -> None:
    """It is in UTC or in the zone that is wanted; out of all calendars a number has to do."""
    assert moment(1_700_000_000_000.0) == "2023-11-14 22:13:20 UTC"
    berlin = ZoneInfo("Europe/Berlin")
    assert moment(1_700_000_000_000, berlin) == "2023-11-14 23:13:20 CET"
    assert moment(10**18) == "1000000000000000000"
    assert moment(1e18) == "1e+18"
    assert moment(math.nan) == "nan"


def test_numbers_of_things() -> None:
    """One is not many."""
    assert [counted(n, "retry") for n in (0, 1, 2)] == [
        "0 retries",
        "1 retry",
        "2 retries",
    ]
    assert counted(12_000, "retry") == "12,000 retries"
    assert counted(3, "lost executor") == "3 lost executors"


@pytest.mark.parametrize("first", "=+-@\t\r\n\uff1d\uff0b\uff0d\uff20'")
def test_no_text_is_a_formula(first: str) -> None:
    """An apostrophe goes before each character that begins one, and before an apostrophe, so that it can be removed."""
    assert text_cell(f"{first}1") == f"'{first}1"
    assert text_cell(f"1{first}") == f"1{first}"
    assert text_cell("") == ""
