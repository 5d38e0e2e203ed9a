"""Untrusted names, numbers and times as text, in a terminal, on a page and in CSV."""

from __future__ import annotations

import json
import math
import re
from datetime import UTC, datetime, tzinfo
from typing import Final, Literal

_LENGTHS = ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s"))
_BRIEF = ((3_600, 3_600, "h"), (60, 60, "min"), (1, 1, "s"), (1e-5, 1e-3, "ms"), (0, 1e-6, "µs"))
"""Least duration of a unit, length of the unit, its name; lengths are in seconds."""
_SCALES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_ROUNDED = 0.9995
"""Share of a scale from which three digits round to 1 of it."""
_PRECISE = 10
_LEAST = 0.005
"""Seconds below which two decimals would be zero."""
_NEARLY_ALL = 99
_LEAST_PERCENT = 0.01
_FORMULAS: Final = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""First characters of formulas; spreadsheets of some languages accept the last four, which are full-width, as well."""
_RIGHT_TO_LEFT: Final = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff"
_NAME: Final = rf'"(?:[^"\\]|\\.)*"?|(?<![^\s"(])[^\s"(]*[{_RIGHT_TO_LEFT}](?:[^\s"]*[^\s":,;.)])?'
_ISOLATED: Final = re.compile(f"((?:{_NAME})(?: (?:{_NAME}))*)")


def shown(text: str, max_length: int = 60) -> str:
    r"""
    Return a text as one line that is safe to show.

    Control characters and those that change the direction of writing are escaped; a long text is cut.

    >>> shown("pay\nments")
    'pay\\nments'
    """
    beginning = text[: max_length + 1]
    safe = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in beginning)
    return safe if len(safe) <= max_length else f"{safe[: max_length - 1]}…"


def isolated(text: str) -> list[str]:
    r"""
    Divide a text into parts; every second part holds names or words from right to left.

    A page isolates them (`bdi`): otherwise numbers and names beside them would take their direction, and a user and a
    client-id would change places.

    >>> isolated("user a, 5 B/s"), isolated("\u05d0 / 7: 5 B/s") == ["", "\u05d0", " / 7: 5 B/s"]
    (['user a, 5 B/s'], True)
    """
    return [text] if text.isascii() else _ISOLATED.split(text)


def seconds(value: float) -> str:
    """
    Return a duration as text; a short one is in ms, and not shown as zero.

    >>> seconds(0.0), seconds(0.004), seconds(0.25), seconds(12.0), seconds(192.4), seconds(90_000.0)
    ('0 s', '4 ms', '0.25 s', '12 s', '3 min 12 s', '1 d 1 h')
    """
    if 0 < value < _LEAST:
        return f"{value * 1_000:.0f} ms" if value >= _LEAST / 10 else "<1 ms"
    whole = round(value)
    if value < _PRECISE and value != whole:
        return f"{value:.2f} s"
    for size, name, smaller, smaller_name in _LENGTHS:
        if whole >= size:
            remainder = whole % size // smaller
            return f"{whole // size} {name}" + (f" {remainder} {smaller_name}" if remainder else "")
    return f"{whole} s"


def brief(value: float) -> str:
    """
    Return a duration as three digits and one unit, for a column of durations.

    >>> brief(0.0), brief(9e-7), brief(8e-5), brief(0.0031), brief(0.9997), brief(1.2), brief(1_790.0), brief(9e6)
    ('0 s', '0.9 µs', '0.08 ms', '3.1 ms', '1 s', '1.2 s', '29.8 min', '2,500 h')
    """
    if not value:
        return "0 s"
    _, length, name = next((unit for unit in _BRIEF if value >= _ROUNDED * unit[0]), _BRIEF[-1])
    number = value / length
    return f"{number:.3g} {name}" if number < _ROUNDED * 1_000 else f"{number:,.0f} {name}"


def amount(value: float) -> str:
    """
    Return a number as three digits and the prefix of its unit.

    >>> amount(0.0), amount(1_500.0), amount(12.345), amount(999_700.0), amount(math.inf)
    ('0 ', '1.5 k', '12.3 ', '1 M', '∞ ')
    """
    if not math.isfinite(value):
        return "∞ " if value > 0 else "? "
    for scale, prefix in _SCALES:
        if abs(value) >= _ROUNDED * scale:
            return f"{value / scale:.3g} {prefix}"
    return f"{value:.3g} "


def spaced(label: str) -> str:
    """
    Return the value of a label in words.

    >>> spaced("controller_mutation")
    'controller mutation'
    """
    return label.replace("_", " ")


def counted(count: int, name: str) -> str:
    """
    Return a number with its noun.

    >>> counted(1, "entity"), counted(2_000, "entity"), counted(0, "request")
    ('1 entity', '2,000 entities', '0 requests')
    """
    if count == 1:
        return f"1 {name}"
    return f"{count:,} {name[:-1]}ies" if name.endswith("y") else f"{count:,} {name}s"


def percent(share: float, sign: Literal["", "+"] = "") -> str:
    """
    Return a share in percent; only 1.0 is 100 %. With `+`, a difference always has its sign.

    >>> percent(0.0), percent(1e-7), percent(0.00123), percent(0.25), percent(0.9996), percent(1.0)
    ('0 %', '<0.01 %', '0.12 %', '25 %', '99.9 %', '100 %')
    >>> percent(0.3, "+"), percent(-0.3, "+"), percent(-1.28)
    ('+30 %', '-30 %', '-128 %')
    """
    value = share * 100
    if 0 < value < _LEAST_PERCENT and not sign:
        return f"<{_LEAST_PERCENT:g} %"
    if abs(value) < _NEARLY_ALL:
        return f"{value:{sign}.2g} %"
    if abs(share) >= 1:
        return f"{value:{sign}.0f} %"
    # a share below 1 is not rounded up to 100 %
    return f"{math.copysign(min(abs(value), 99.9), share):{sign}.1f} %"


def moment(time_ms: float, zone: tzinfo = UTC) -> str:
    """
    Return a time in ms since 1970 as text; beyond the years of the calendar, the number.

    >>> moment(1_795_280_106_000)
    '2026-11-21 16:55:06 UTC'
    """
    try:
        return datetime.fromtimestamp(time_ms / 1_000, zone).strftime("%Y-%m-%d %H:%M:%S %Z")
    except (ValueError, OverflowError, OSError):
        return str(time_ms)


def period(source: str, begin_ms: float, end_ms: float, zone: tzinfo = UTC) -> str:
    """
    Return the origin and the period of figures as text; times are in ms since 1970.

    >>> period("usage", 1_795_280_106_000, 1_795_280_107_000)
    'usage, 2026-11-21 16:55:06 UTC to 2026-11-21 16:55:07 UTC'
    """
    return f"{shown(source, 200)}, {moment(begin_ms, zone)} to {moment(end_ms, zone)}"


def text_cell(text: str) -> str:
    r"""
    Return a text as a cell of CSV, on one line, that no spreadsheet runs as a formula.

    A text with characters that `shown` escapes is a JSON string: many readers of CSV refuse a file with NUL, or take a
    line end for the end of a row. A text that begins as a formula gets an apostrophe in front. Texts that begin with a
    quote are JSON strings, and texts that begin with an apostrophe get another one, so that a program can restore the
    original: it decodes a cell that begins with a quote, and removes an apostrophe from the beginning of any other.
    Numbers do not pass through here: a negative one stays a number.

    >>> text_cell("=1+1"), text_cell("alice"), text_cell("'x"), text_cell("")
    ("'=1+1", 'alice', "''x", '')
    >>> text_cell("a\0b"), text_cell('"x"'), text_cell("a\\b")
    ('"a\\u0000b"', '"\\"x\\""', 'a\\b')
    """
    if not text.isprintable() or text.startswith('"'):
        return json.dumps(text)
    return f"'{text}" if text.startswith((*_FORMULAS, "'")) else text
