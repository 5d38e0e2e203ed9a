"""Where a value or a time is on a drawing, and which of them are written beside it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Final

_HALF: Final = 0.5
_MINUTE, _HOUR, _DAY = 60_000, 3_600_000, 86_400_000
_STEPS: Final = (
    *(each * 1_000 for each in (1, 2, 5, 10, 15, 30)),
    *(each * _MINUTE for each in (1, 2, 5, 10, 15, 30)),
    *(each * _HOUR for each in (1, 2, 3, 6, 12)),
    *(each * _DAY for each in (1, 2, 7, 14, 28, 91, 365)),
)


@dataclass(frozen=True, slots=True)
class Scale:
    """A straight line from values to places."""

    low: float
    high: float
    """The value at `end`; above `low`."""
    begin: float
    end: float

    def __call__(self, value: float) -> float:
        """The place of a value; one outside is at the nearer end."""
        kept = min(max(value, self.low), self.high)
        part = (kept - self.low) / (self.high - self.low)
        return self.begin + part * (self.end - self.begin)


def round_values(high: float, most: int = 6) -> Sequence[float]:
    """
    Round values from 0 to `high`, a few of them.

    >>> round_values(23.0)
    [0.0, 5.0, 10.0, 15.0, 20.0]
    """
    if not (math.isfinite(high) and high > 0):
        return [0.0]
    rough = high / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(
        (each * power for each in (1, 2, 5) if each * power >= rough), 10 * power
    )
    return [step * n for n in range(int(high / step) + 1)]


def round_times(begin_ms: int, end_ms: int, most: int = 8) -> Sequence[int]:
    """Round moments between two, in UTC, at most so many."""
    length = max(1, end_ms - begin_ms)
    step = next((each for each in _STEPS if length / each <= most), length // most)
    first = -(-begin_ms // step) * step
    return range(first, end_ms + 1, step)


def clock(time_ms: int, length_ms: int, zone: tzinfo = UTC) -> str:
    """
    A moment beside an axis of that length.

    >>> clock(1_795_280_106_000, 60_000), clock(1_795_280_106_000, 7 * 86_400_000)
    ('16:55:06', '11-21 16:55')
    """
    form = "%H:%M:%S" if length_ms < _HOUR else "%H:%M" if length_ms < _HALF * _DAY else "%m-%d %H:%M"  # fmt: skip
    try:
        return datetime.fromtimestamp(time_ms / 1_000, zone).strftime(form)
    except (ValueError, OverflowError, OSError):
        return str(time_ms)
