from __future__ import annotations

import math
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.pipeline.report.results import MONDAY, seconds, usages

from quotascope.metrics.kafka.entities import QuotaType
from quotascope.pipeline.rates import (
    PIECES,
    LimitGroup,
    LoggedThrottle,
    curve_of,
    hour_name,
    hours_of_week,
    peaks,
    seen_hours,
)

ALICE = LimitGroup(QuotaType.PRODUCE, "alice", None)


def test_peak_is_the_mean_over_eleven_seconds() -> None:
    """A peak is the mean over eleven seconds, as a broker measures a burst. Thread time is in percent of a thread."""
    starts = np.array([0, 5_000, 20_000])
    amounts = np.array([11_000, 11_000, 1_100])
    assert peaks(QuotaType.PRODUCE, starts, amounts).tolist() == [1_000, 2_000, 100]
    assert peaks(QuotaType.REQUEST, np.arange(11) * 1_000, np.full(11, 1_000_000))[-1] == 100.0


def test_long_histories_are_drawn_in_pieces() -> None:
    """Each piece of a long history has its mean and its highest peak."""
    starts = MONDAY + np.arange(0, 7 * 86_400) * 1_000
    amounts = np.where(np.arange(starts.size) == 1_000, 11_000, 11)
    drawn = curve_of(QuotaType.PRODUCE, starts, amounts, (MONDAY, int(starts[-1]) + 1_000))
    assert len(drawn.times_ms) <= PIECES
    assert max(drawn.peak) > 1_000
    assert all(abs(mean - 11) < 10 for mean in drawn.mean)
    assert drawn.piece_ms % 1_000 == 0


def test_clients_of_a_group_are_added_up_broker_by_broker() -> None:
    """
    Clients of a group are added up by broker, and the broker with the highest peak is drawn.

    A group without usage has no chart.
    """
    rows = [
        *seconds([(0, 110), (0, 110)], client_id="app1"),
        *seconds([(0, 110)], client_id="app2"),
        *seconds([(0, 220)], broker="2"),
        *seconds([(0, 9_999)], user="bob"),
        *seconds([(0, 9_999)], quota_type="fetch"),
    ]
    result = usages(rows, [ALICE, LimitGroup(QuotaType.PRODUCE, "carol", None)])
    assert [(group, each.broker, [*each.usage.peak]) for group, each in result.items()] == [(ALICE, "1", [30.0])]


def test_hours_that_were_not_seen_are_distinguished_from_idle_ones() -> None:
    """A map has an hour of usage, an hour in which only others sent requests, and unknown hours."""
    rows = [*seconds([(0, 1_100)]), *seconds([(5_000, 9), (5 * 3_600, 9)], user="bob")]
    hours = usages(rows, [ALICE], length_ms=6 * 3_600_000)[ALICE].by_hour
    assert list(hours[:2]) == [100.0, 0.0]
    assert hours[5] == 0.0
    assert all(math.isnan(hour) for hour in [*hours[2:5], *hours[6:]])


def test_pieces_stand_at_their_times() -> None:
    """Pieces begin at the whole second before the span; seconds without usage are missing."""
    starts = MONDAY + np.array([0, 3_000, 4_000])
    amounts = np.array([1_100, 2_200, 0])
    span = (MONDAY + 250, MONDAY + 10_000)
    drawn = curve_of(QuotaType.PRODUCE, starts, amounts, span)
    assert (drawn.begin_ms, drawn.end_ms, drawn.piece_ms) == (MONDAY, MONDAY + 10_000, 1_000)
    assert [*drawn.times_ms] == [MONDAY, MONDAY + 3_000, MONDAY + 4_000]
    assert ([*drawn.peak], [*drawn.mean]) == ([100.0, 300.0, 300.0], [])


HOUR = 3_600_000
ZONES = ["UTC", "Europe/Berlin", "Asia/Kathmandu", "America/St_Johns"]


@given(times=st.lists(st.integers(0, 4_000_000_000_000), max_size=20), zone=st.sampled_from(ZONES))
def test_hours_are_those_of_the_calendar(times: list[int], zone: str) -> None:
    """Summer time and zones that are not whole hours off included."""
    expected = [
        moment.weekday() * 24 + moment.hour
        for moment in (datetime.fromtimestamp(time / 1_000, ZoneInfo(zone)) for time in times)
    ]
    result = hours_of_week(np.array(times, np.int64), ZoneInfo(zone))
    assert result.tolist() == expected


def test_seen_hours() -> None:
    """An hour is seen if any moment is in it; it begins with its first millisecond."""
    times = np.array([MONDAY, MONDAY + HOUR - 1, MONDAY + 2 * HOUR, MONDAY - 1])
    assert np.flatnonzero(seen_hours(times, UTC)).tolist() == [0, 2, 167]
    assert not seen_hours(times[:0], UTC).any()


def test_hours_have_names() -> None:
    """
    Hours are named as people write them.

    A clock that was never set is taken for 1970, one in a far future for the end of time.
    """
    assert hours_of_week(np.array([-5, 10**17]), UTC).tolist()[0] == 72  # a Thursday
    assert [hour_name(hour) for hour in (0, 25, 167)] == ["Mon 00h", "Tue 01h", "Sun 23h"]


@pytest.mark.parametrize(
    ("replayed_ms", "sentence"),
    [
        (1_000, "1 s (0.50 times that). If that is what was in force"),
        (2_480, "2.48 s (1.24 times that). If that is what was in force"),
        (4_000, "4 s (2.00 times that). If that is what was in force"),
        (999, "1.00 s. They are too far apart to compare"),
        (4_001, "4.00 s. They are too far apart to compare"),
        (363_720, "6 min 4 s. They are too far apart to compare"),
        (0, "0 s. They are too far apart to compare"),
    ],
)
def test_calibration_has_a_ratio_where_it_can_be_one(replayed_ms: int, sentence: str) -> None:
    """A candidate that was not in force has no ratio as a calibration on the page; JSON has it all the same."""
    logged = LoggedThrottle(requests=3, throttle_ms=2_000)
    text = logged.against(replayed_ms, 0)
    assert f"the log has 2 s of throttle time for 3 requests; the replay of the first candidate has {sentence}" in text
    assert "Request quotas" not in text
    assert logged.values(replayed_ms, 0)["ratio"] == replayed_ms / 2_000


def test_calibration_names_the_part_of_request_quotas() -> None:
    """The share of request quotas in the ratio is named, as the log lacks part of their thread time."""
    logged = LoggedThrottle(requests=3, throttle_ms=2_000)
    assert "(1.00 times that)" in logged.against(2_000, 1_500)
    assert "Request quotas imposed 1.50 s of it" in logged.against(2_000, 1_500)
    assert logged.values(2_000, 1_500)["replayed_request_throttle_seconds"] == 1.5
