"""Names of strangers and numbers, as a person reads them."""

from __future__ import annotations

from datetime import UTC, datetime

_UNITS = ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s"))
_PRECISE = 10


def shown(text: str, most: int = 60) -> str:
    r"""
    One line that is safe to show: whatever moves a cursor or turns the direction of writing is spelt out, and long ones are cut.

    >>> shown("pay\nments")
    'pay\\nments'
    """
    kept = text[: most + 1]
    safe = "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode()
        for each in kept
    )
    return safe if len(safe) <= most else f"{safe[: most - 1]}…"


def seconds(value: float) -> str:
    """
    A duration.

    >>> seconds(0.0), seconds(0.25), seconds(12.0), seconds(192.4), seconds(7_322.0), seconds(90_000.0)
    ('0 s', '0.25 s', '12 s', '3 min 12 s', '2 h 2 min', '1 d 1 h')
    """
    whole = round(value)
    if value < _PRECISE and value != whole:
        return f"{value:.2f} s"
    for size, name, smaller, rest in _UNITS:
        if whole >= size:
            left = whole % size // smaller
            return f"{whole // size} {name}" + (f" {left} {rest}" if left else "")
    return f"{whole} s"


def counted(count: int, name: str) -> str:
    """
    A number of things.

    >>> counted(1, "retry"), counted(2, "retry"), counted(0, "executor")
    ('1 retry', '2 retries', '0 executors')
    """
    if count == 1:
        return f"1 {name}"
    return f"{count} {name[:-1]}ies" if name.endswith("y") else f"{count} {name}s"


def moment(value: float) -> str:
    """
    A time since 1970 in UTC; a number where it is out of all calendars.

    >>> moment(1_795_280_106.0)
    '2026-11-21 16:55:06 UTC'
    """
    try:
        return datetime.fromtimestamp(value, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return f"{value:g}"
