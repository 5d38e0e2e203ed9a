"""Hours of the week: Monday 00h is 0, Sunday 23h is 167."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

import numpy as np
from numpy.typing import NDArray

HOURS: Final = 168
QUARTER_MS: Final = 900_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FARTHEST_MS: Final = 250_000_000_000_000
"""The year 9892: later ones are out of Python's calendar, earlier than its first are not meant either."""
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def hours_of_week(times_ms: NDArray[np.int64], zone: tzinfo) -> NDArray[np.int64]:
    """
    The hour of the week of each moment (ms since 1970) by the clocks of a zone, daylight saving included.

    Every zone is a whole number of quarters of an hour off UTC (today's are), so that one look for each quarter is enough.
    """
    quarters = np.clip(times_ms, 0, _FARTHEST_MS) // QUARTER_MS
    seen, places = np.unique(quarters, return_inverse=True)
    ages = (timedelta(milliseconds=each * QUARTER_MS) for each in seen.tolist())
    moments = [(_EPOCH + age).astimezone(zone) for age in ages]
    hours = np.array([each.weekday() * 24 + each.hour for each in moments], np.int64)
    return hours[places] if hours.size else np.zeros(0, np.int64)


def hour_name(hour: int) -> str:
    """
    An hour of the week.

    >>> hour_name(0), hour_name(167)
    ('Mon 00h', 'Sun 23h')
    """
    return f"{_DAYS[hour // 24]} {hour % 24:02}h"


def seen_hours(times_ms: NDArray[np.int64], zone: tzinfo) -> NDArray[np.bool_]:
    """Which of the 168 hours have any of some moments (ms since 1970)."""
    seen = np.zeros(HOURS, np.bool_)
    seen[hours_of_week(times_ms, zone)] = True
    return seen
