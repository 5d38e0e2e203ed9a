from __future__ import annotations

import json
import math
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from quotascope.pages.words import counted, moment, seconds, shown, text_cell


@given(st.text(st.characters(codec=None, exclude_categories=())))
def test_name_that_is_shown(name: str) -> None:
    """A name is shown as one short line that any terminal and any file can take."""
    line = shown(name)
    assert line.isprintable()
    assert len(line) <= 60
    line.encode()


def test_long_names_are_cut() -> None:
    """Names are cut to sixty characters, with a mark as the last; escaped characters count as they are shown."""
    lines = {"x" * 60: "x" * 60, "x" * 61: "x" * 59 + "…", "x" * 59 + "\n": "x" * 59 + "…", "a\u202eb": "a\\u202eb"}
    assert {name: shown(name) for name in lines} == lines
    assert shown("x" * 61 + "\n\u202e", 200) == "x" * 61 + "\\n\\u202e"


def test_duration() -> None:
    """Durations have at most two units."""
    words = {0.0: "0 s", 0.0001: "<1 ms", 0.0009: "1 ms", 0.004: "4 ms", 0.25: "0.25 s"}
    words |= {9.0: "9 s", 9.999: "10.00 s", 10.0: "10 s", 10.4: "10 s", 12.0: "12 s", 59.0: "59 s"}
    words |= {60.0: "1 min", 119.0: "1 min 59 s", 192.4: "3 min 12 s", 3_599.0: "59 min 59 s"}
    words |= {3_600.0: "1 h", 3_659.0: "1 h", 7_322.0: "2 h 2 min", 86_399.0: "23 h 59 min"}
    words |= {86_400.0: "1 d", 90_000.0: "1 d 1 h", 176_400.0: "2 d 1 h"}
    assert {value: seconds(value) for value in words} == words


def test_moment() -> None:
    """A time is in UTC or in the zone of the reader; beyond the calendar it is a number."""
    assert moment(1_700_000_000_000.0) == "2023-11-14 22:13:20 UTC"
    berlin = ZoneInfo("Europe/Berlin")
    assert moment(1_700_000_000_000, berlin) == "2023-11-14 23:13:20 CET"
    assert moment(10**18) == "1000000000000000000"
    assert moment(1e18) == "1e+18"
    assert moment(math.nan) == "nan"


def test_numbers_of_things() -> None:
    """Nouns are singular or plural as their number says."""
    words = {0: "0 retries", 1: "1 retry", 2: "2 retries", 12_000: "12,000 retries"}
    assert {number: counted(number, "retry") for number in words} == words
    assert counted(3, "lost executor") == "3 lost executors"


def test_no_text_is_a_formula() -> None:
    """An apostrophe precedes characters that begin formulas, and an apostrophe, so that it can be removed."""
    for character in "=+-@\uff1d\uff0b\uff0d\uff20'":
        assert [text_cell(f"{character}1"), text_cell(f"1{character}")] == [f"'{character}1", f"1{character}"]
    assert text_cell("") == ""


@given(st.text() | st.text("=+'\"\\nu0\0\r\n\t\u2028"))
def test_a_cell_is_one_line_that_has_the_text(text: str) -> None:
    """A program that reads it takes a quote at the beginning for JSON, and removes an apostrophe there."""
    cell = text_cell(text)
    assert cell.isprintable()
    assert (json.loads(cell) if cell.startswith('"') else cell.removeprefix("'")) == text
