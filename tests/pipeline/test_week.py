from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from quotascope.pipeline.week import hour_name, hours_of_week, seen_hours

MONDAY = 1_795_392_000_000
"""2026-11-23 00:00:00 UTC"""
HOUR = 3_600_000
ZONES = ["UTC", "Europe/Berlin", "Asia/Kathmandu", "America/St_Johns"]


@given(times=st.lists(st.integers(0, 4_000_000_000_000), max_size=20), zone=st.sampled_from(ZONES))
def test_hours_are_those_of_the_calendar(times: list[int], zone: str) -> None:
    """Summer time and zones that are not whole hours off included."""
    expected = [
        moment.weekday() * 24 + moment.hour
        for moment in (datetime.fromtimestamp(time / 1_000, ZoneInfo(zone)) for time in times)
    ]
    found = hours_of_week(np.array(times, np.int64), ZoneInfo(zone))
    assert found.tolist() == expected


def test_seen_hours() -> None:
    """Those that any of some moments is in; an hour begins with its first millisecond."""
    times = np.array([MONDAY, MONDAY + HOUR - 1, MONDAY + 2 * HOUR, MONDAY - 1])
    assert np.flatnonzero(seen_hours(times, UTC)).tolist() == [0, 2, 167]
    assert not seen_hours(times[:0], UTC).any()


def test_times_out_of_all_calendars() -> None:
    """A clock that was never set is taken for 1970, one in a far future for the end of time."""
    assert hours_of_week(np.array([-5, 10**17]), UTC).tolist()[0] == 72  # a Thursday


def test_names() -> None:
    """As people write them."""
    assert [hour_name(hour) for hour in (0, 25, 167)] == ["Mon 00h", "Tue 01h", "Sun 23h"]
