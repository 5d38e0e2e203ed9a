from __future__ import annotations

import math
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.pipeline.report.results import MONDAY, seconds, usages

from quotascope.metrics import QuotaType
from quotascope.pipeline.rates import PIECES, LimitGroup, curve_of, hour_name, hours_of_week, peaks, seen_hours

ALICE = LimitGroup(QuotaType.PRODUCE, "alice", None)


def test_peak_is_the_mean_over_eleven_seconds() -> None:
    """A burst of one second is spread, as a broker spreads it; what is older than its windows is gone. Thread time is in percent of a thread."""
    starts = np.array([0, 5_000, 20_000])
    amounts = np.array([11_000, 11_000, 1_100])
    assert peaks(QuotaType.PRODUCE, starts, amounts).tolist() == [1_000, 2_000, 100]
    assert peaks(QuotaType.REQUEST, np.arange(11) * 1_000, np.full(11, 1_000_000))[-1] == 100.0


def test_long_histories_are_drawn_in_pieces() -> None:
    """A piece has the mean over all of it, and its highest peak."""
    starts = MONDAY + np.arange(0, 7 * 86_400) * 1_000
    amounts = np.where(np.arange(starts.size) == 1_000, 11_000, 11)
    drawn = curve_of(QuotaType.PRODUCE, starts, amounts, (MONDAY, int(starts[-1]) + 1_000))
    assert len(drawn.times_ms) <= PIECES
    assert max(drawn.peak) > 1_000
    assert all(abs(mean - 11) < 10 for mean in drawn.mean)
    assert drawn.piece_ms % 1_000 == 0


def test_clients_of_a_group_are_added_up_broker_by_broker() -> None:
    """The broker with the highest peak is drawn; seconds may come in several rows; of a group without usage nothing is."""
    rows = [
        *seconds([(0, 110), (0, 110)], client_id="app1"),
        *seconds([(0, 110)], client_id="app2"),
        *seconds([(0, 220)], broker="2"),
        *seconds([(0, 9_999)], user="bob"),
        *seconds([(0, 9_999)], quota_type="fetch"),
    ]
    found = usages(rows, [ALICE, LimitGroup(QuotaType.PRODUCE, "carol", None)])
    assert [(group, each.broker, [*each.usage.peak]) for group, each in found.items()] == [(ALICE, "1", [30.0])]


def test_hours_that_were_not_seen_are_distinguished_from_idle_ones() -> None:
    """One hour used, one in which only others sent requests, and the rest of the week unknown, also where the log has a gap."""
    rows = [*seconds([(0, 1_100)]), *seconds([(5_000, 9), (5 * 3_600, 9)], user="bob")]
    hours = usages(rows, [ALICE], length_ms=6 * 3_600_000)[ALICE].by_hour
    assert list(hours[:2]) == [100.0, 0.0]
    assert hours[5] == 0.0
    assert all(math.isnan(hour) for hour in [*hours[2:5], *hours[6:]])


def test_pieces_stand_at_their_times() -> None:
    """From the whole second before the span on; seconds without usage are missing."""
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
    found = hours_of_week(np.array(times, np.int64), ZoneInfo(zone))
    assert found.tolist() == expected


def test_seen_hours() -> None:
    """Those that any of some moments is in; an hour begins with its first millisecond."""
    times = np.array([MONDAY, MONDAY + HOUR - 1, MONDAY + 2 * HOUR, MONDAY - 1])
    assert np.flatnonzero(seen_hours(times, UTC)).tolist() == [0, 2, 167]
    assert not seen_hours(times[:0], UTC).any()


def test_hours_have_names() -> None:
    """As people write them; a clock that was never set is taken for 1970, one in a far future for the end of time."""
    assert hours_of_week(np.array([-5, 10**17]), UTC).tolist()[0] == 72  # a Thursday
    assert [hour_name(hour) for hour in (0, 25, 167)] == ["Mon 00h", "Tue 01h", "Sun 23h"]
