"""Durations as Prometheus writes them."""

from __future__ import annotations

import re
from typing import Final

from .errors import InvalidSite

_LONGEST: Final = 2**63 // 10**9
"""Seconds that Prometheus cannot count: it counts nanoseconds in 63 bits."""
_UNITS: Final = {"y": 31_536_000, "w": 604_800, "d": 86_400, "h": 3600, "m": 60, "s": 1}
_DURATION: Final = re.compile("".join(rf"(?:(\d{{1,12}}){unit})?" for unit in _UNITS) + r"(?:\d{1,12}ms)?", re.ASCII)


def duration_seconds(text: str) -> int:
    """
    Return the seconds of a duration, without fractions. Raises ``InvalidSite`` if the text is no duration.

    >>> duration_seconds("1h30m")
    5400
    """
    match = _DURATION.fullmatch(text) if text else None
    if match is None:
        raise InvalidSite(f"{text!r} is not a duration of Prometheus such as 90s, 5m or 1h30m")
    parts = zip(match.groups(default="0"), _UNITS.values(), strict=True)
    seconds = sum(int(number) * unit for number, unit in parts)
    if seconds >= _LONGEST:
        raise InvalidSite(f"{text!r} is not a duration of Prometheus: it is longer than 292 years")
    return seconds


def duration_text(seconds: int) -> str:
    """
    Return a number of seconds as the shortest duration, in days and smaller units.

    >>> duration_text(840), duration_text(86_399)
    ('14m', '23h59m59s')
    """
    text = ""
    for unit in "dhms":
        number, seconds = divmod(seconds, _UNITS[unit])
        text += f"{number}{unit}" if number else ""
    return text or "0s"
