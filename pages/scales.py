"""Positions of values and times in a drawing, and the round ones that label its axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Final

_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
_STEPS: Final = (
    *(base / parts for parts in (1_000, 100, 10) for base in (1, 2, 5)),
    *(base * unit for unit in (1, _MINUTE) for base in (1, 2, 5, 10, 15, 30)),
    *(base * _HOUR for base in (1, 2, 3, 6, 12)),
    *(base * _DAY for base in (1, 2, 7, 14, 28, 91, 365, 3_650)),
)
"""Seconds between labels of a time axis: divisors of a second, a minute, an hour, a day."""


@dataclass(frozen=True, slots=True)
class LinearScale:
    """A linear mapping from values to positions."""

    low: float
    high: float
    """The value at `end`; above `low`."""
    begin: float
    end: float

    def __call__(self, value: float) -> float:
        """The position of a value; a value outside of the scale is at the nearer end."""
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
    """Round UTC times in ms from `begin_ms` to `end_ms`, at least a second and at most `most` steps apart."""
    step = 1_000 * max(1, round(_step(max(1, end_ms - begin_ms) / 1_000, most)))
    return range(-(-begin_ms // step) * step, end_ms + 1, step)


def round_seconds(length: float, most: int = 8) -> Sequence[float]:
    """Round durations from 0 to `length`, in seconds, in at most `most` steps."""
    step = _step(length, most)
    return [step * n for n in range(int(length / step) + 1)]


def _step(length: float, most: int) -> float:
    return next((step for step in _STEPS if length / step <= most), length / most)


def clock(time_ms: int, length_ms: int, zone: tzinfo = UTC) -> str:
    """
    The label of a time on an axis of that length.

    >>> clock(1_795_280_106_000, 60_000), clock(1_795_280_106_000, 7 * 86_400_000)
    ('16:55:06', '11-21 16:55')
    """
    seconds = length_ms / 1_000
    form = "%H:%M:%S" if seconds < _HOUR else "%H:%M" if seconds < _DAY / 2 else "%m-%d %H:%M"  # fmt: skip
    try:
        return datetime.fromtimestamp(time_ms / 1_000, zone).strftime(form)
    except (ValueError, OverflowError, OSError):
        return str(time_ms)
