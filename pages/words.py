"""Untrusted names, numbers and times as text, in a terminal, on a page and in CSV."""

from __future__ import annotations

import json
import math
import re
from datetime import UTC, datetime, tzinfo
from typing import Final, Literal

_LENGTHS = ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s"))
_BRIEF = ((3_600, 3_600, "h"), (60, 60, "min"), (1, 1, "s"), (1e-5, 1e-3, "ms"), (0, 1e-6, "µs"))
"""From where on a unit is taken, how long it is, its name."""
_SCALES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_ROUNDED = 0.9995
"""Of a scale: from here on three digits are 1 of it."""
_PRECISE = 10
_LEAST = 0.005
"""Seconds; with two decimals a shorter duration would be shown as zero."""
_NEARLY_ALL = 99
_LEAST_PERCENT = 0.01
_FORMULAS: Final = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""First characters of formulas; the last four are full-width ones, which spreadsheets of some languages accept as well."""
_RIGHT_TO_LEFT: Final = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff"
_NAME: Final = rf'"(?:[^"\\]|\\.)*"?|(?<![^\s"(])[^\s"(]*[{_RIGHT_TO_LEFT}](?:[^\s"]*[^\s":,;.)])?'
_ISOLATED: Final = re.compile(f"((?:{_NAME})(?: (?:{_NAME}))*)")


def shown(text: str, most: int = 60) -> str:
    r"""
    One line that is safe to show: control characters and those that change the direction of writing are escaped; a long text is cut.

    >>> shown("pay\nments")
    'pay\\nments'
    """
    kept = text[: most + 1]
    safe = "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in kept)
    return safe if len(safe) <= most else f"{safe[: most - 1]}…"


def isolated(text: str) -> list[str]:
    r"""
    A text in parts, of which each second one holds names or words from right to left.

    A page isolates them (`bdi`): else numbers and names beside them would take their direction, and a user and a client-id change places.

    >>> isolated("user a, 5 B/s"), isolated("\u05d0 / 7: 5 B/s") == ["", "\u05d0", " / 7: 5 B/s"]
    (['user a, 5 B/s'], True)
    """
    return [text] if text.isascii() else _ISOLATED.split(text)


def seconds(value: float) -> str:
    """
    A duration; a short one is in ms, and not shown as zero.

    >>> seconds(0.0), seconds(0.004), seconds(0.25), seconds(12.0), seconds(192.4), seconds(90_000.0)
    ('0 s', '4 ms', '0.25 s', '12 s', '3 min 12 s', '1 d 1 h')
    """
    if 0 < value < _LEAST:
        return f"{value * 1_000:.0f} ms" if value >= _LEAST / 10 else "<1 ms"
    whole = round(value)
    if value < _PRECISE and value != whole:
        return f"{value:.2f} s"
    for size, name, smaller, rest in _LENGTHS:
        if whole >= size:
            left = whole % size // smaller
            return f"{whole // size} {name}" + (f" {left} {rest}" if left else "")
    return f"{whole} s"


def brief(value: float) -> str:
    """
    A duration in three digits of one unit, short enough for a column of many.

    >>> brief(0.0), brief(9e-7), brief(8e-5), brief(0.0031), brief(0.9997), brief(1.2), brief(1_790.0), brief(9e6)
    ('0 s', '0.9 µs', '0.08 ms', '3.1 ms', '1 s', '1.2 s', '29.8 min', '2,500 h')
    """
    if not value:
        return "0 s"
    _, size, name = next((each for each in _BRIEF if value >= _ROUNDED * each[0]), _BRIEF[-1])
    number = value / size
    return f"{number:.3g} {name}" if number < _ROUNDED * 1_000 else f"{number:,.0f} {name}"


def amount(value: float) -> str:
    """
    A number in three digits, and what its unit needs before it.

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
    A label in words.

    >>> spaced("controller_mutation")
    'controller mutation'
    """
    return label.replace("_", " ")


def counted(count: int, name: str) -> str:
    """
    A number with its noun.

    >>> counted(1, "entity"), counted(2_000, "entity"), counted(0, "request")
    ('1 entity', '2,000 entities', '0 requests')
    """
    if count == 1:
        return f"1 {name}"
    return f"{count:,} {name[:-1]}ies" if name.endswith("y") else f"{count:,} {name}s"


def percent(share: float, sign: Literal["", "+"] = "") -> str:
    """
    A share in percent; only the whole is 100 %. With `+`, a difference always has its sign.

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
    return f"{math.copysign(min(abs(value), 99.9), share):{sign}.1f} %" if abs(share) < 1 else f"{value:{sign}.0f} %"


def moment(time_ms: float, zone: tzinfo = UTC) -> str:
    """
    A time in ms since 1970; the number itself beyond the years of the calendar.

    >>> moment(1_795_280_106_000)
    '2026-11-21 16:55:06 UTC'
    """
    try:
        return datetime.fromtimestamp(time_ms / 1_000, zone).strftime("%Y-%m-%d %H:%M:%S %Z")
    except (ValueError, OverflowError, OSError):
        return str(time_ms)


def period(source: str, begin_ms: float, end_ms: float, zone: tzinfo = UTC) -> str:
    """
    Where figures come from, and from when to when they are, in ms since 1970.

    >>> period("usage", 1_795_280_106_000, 1_795_280_107_000)
    'usage, 2026-11-21 16:55:06 UTC to 2026-11-21 16:55:07 UTC'
    """
    return f"{shown(source, 200)}, {moment(begin_ms, zone)} to {moment(end_ms, zone)}"


def text_cell(text: str) -> str:
    r"""
    A text for CSV, on one line, that no spreadsheet runs as a formula.

    A text with characters that `shown` escapes is a JSON string: many readers of CSV refuse a file with NUL, or take a line end for that of a
    row. A text that begins as a formula gets an apostrophe in front. Texts that begin with a quote are JSON strings, and those that begin with
    an apostrophe get another one, so that a program has the original: it decodes a cell that begins with a quote, and removes an apostrophe
    from the beginning of any other. Numbers are not passed here: a negative one stays a number.

    >>> text_cell("=1+1"), text_cell("alice"), text_cell("'x"), text_cell("")
    ("'=1+1", 'alice', "''x", '')
    >>> text_cell("a\0b"), text_cell('"x"'), text_cell("a\\b")
    ('"a\\u0000b"', '"\\"x\\""', 'a\\b')
    """
    if not text.isprintable() or text.startswith('"'):
        return json.dumps(text)
    return f"'{text}" if text.startswith((*_FORMULAS, "'")) else text
