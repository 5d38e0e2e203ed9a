"""Numbers as a line of small bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_BARS: Final = "▁▂▃▄▅▆▇█"
_ASCII: Final = "_.-=+*%#"


def sparkline(parts: Sequence[float | None], *, ascii_only: bool = False) -> str:
    """
    One character for each part of a whole, a full one from 1 on, and a blank where nothing is known.

    >>> sparkline([None, 0.0, 0.5, 0.99, 1.0, 7.0])
    ' ▁▅██'
    """
    bars = _ASCII if ascii_only else _BARS
    return "".join(_bar(part, bars) for part in parts)


def _bar(part: float | None, bars: str) -> str:
    if part is None:
        return " "
    return bars[min(len(bars) - 1, max(0, int(part * (len(bars) - 1))))]
