"""Scrape intervals that change: what a sample stands for, what is marked, and what counts as seen."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.pipeline.prometheus.scraped import Usage, every, past_of

from quotascope.pipeline.prometheus.backtest import Backtest
from quotascope.pipeline.prometheus.backtest import caveats as caveats_of_backtest
from quotascope.pipeline.prometheus.evidence import Sight
from quotascope.pipeline.prometheus.intervals import Hour, intervals_of
from quotascope.pipeline.prometheus.past import Pace, Past
from quotascope.pipeline.prometheus.promql import HOUR_S
from quotascope.pipeline.prometheus.usage import PastUsage, document, find_usage, report

RATE = 1e6
"""Bytes/s of the load of each test."""
ONE = Usage()


def usage_of(past: Past) -> PastUsage:
    (usage,) = find_usage(past).usages
    return usage


def amount_of(usage: PastUsage) -> float:
    assert usage.amount is not None
    return usage.amount


@pytest.mark.parametrize("intervals", [(30, 10), (10, 30), (10, 10), (60, 5, 15), (10, 30, 10, 30)])
def test_an_interval_that_changed_with_an_hour(intervals: Sequence[int]) -> None:
    """Each sample stands for the time to the next one when the interval changes; marks are by the longest interval."""
    hours = len(intervals)
    times = [
        at for hour, interval_s in enumerate(intervals) for at in every(interval_s, hour * HOUR_S, (hour + 1) * HOUR_S)
    ]
    past = past_of(hours, {ONE: times})
    usage = usage_of(past)
    assert amount_of(usage) == pytest.approx(hours * HOUR_S * RATE)
    assert usage.evidence.seen_s == pytest.approx(hours * HOUR_S)
    assert (usage.is_lower_bound, usage.coverage) == (False, 1.0)
    assert (past.nodes["1"].shortest_s, past.nodes["1"].longest_s) == (min(intervals), max(intervals))
    assert usage.sight is (Sight.SPARSE if max(intervals) > 10 else Sight.WHOLE)


def test_intervals_are_shown_as_a_range() -> None:
    """Reports and documents have the shortest and the longest interval."""
    past = past_of(2, {ONE: [*every(30, 0, HOUR_S), *every(10, HOUR_S, 2 * HOUR_S)]})
    usages = find_usage(past)
    assert "scraped every 10 to 30 s." in next(iter(report(usages).caveats))
    assert "scraped every 10 to 30 s." in next(iter(caveats_of_backtest(Backtest(past=past, results=()))))
    node = document(usages)["nodes"]["1"]
    assert (node["shortest_scrape_interval_seconds"], node["scrape_interval_seconds"]) == (10.0, 30.0)
    steady = past_of(1, {ONE: every(10, 0, HOUR_S)})
    assert steady.pace == "every 10 s"


@pytest.mark.parametrize("changed_at", [0.1, 0.5, 0.9])
@pytest.mark.parametrize(("before", "after"), [(30, 10), (10, 30)])
def test_an_interval_that_changed_within_an_hour(before: int, after: int, changed_at: float) -> None:
    """The amount is never above the real usage, and is marked where it is below."""
    change = (1 + changed_at) * HOUR_S
    usage = usage_of(past_of(3, {ONE: [*every(before, 0, change), *every(after, change, 3 * HOUR_S)]}))
    assert amount_of(usage) <= 3.01 * HOUR_S * RATE
    assert usage.is_lower_bound or amount_of(usage) == pytest.approx(3 * HOUR_S * RATE, rel=0.01)
    assert usage.coverage == pytest.approx(amount_of(usage) / (3 * HOUR_S * RATE), rel=0.01)


@settings(deadline=None)
@given(
    interval_s=st.sampled_from([5, 7, 10, 15, 22, 30, 45, 60]),
    gaps=st.lists(st.tuples(st.integers(0, 4 * HOUR_S), st.integers(1, 2 * HOUR_S)), max_size=4),
)
def test_a_gap_is_no_longer_interval(interval_s: int, gaps: Sequence[tuple[int, int]]) -> None:
    """Time without scrapes is in no amount, and lowers the coverage by as much, wherever gaps are."""
    times = [
        at for at in every(interval_s, 0, 5 * HOUR_S) if not any(begin <= at < begin + length for begin, length in gaps)
    ]
    # one hour is whole: the interval of a node that was never seen for an hour is a guess
    times += every(interval_s, 5 * HOUR_S, 6 * HOUR_S)
    usage = usage_of(past_of(6, {ONE: times}))
    seen_s = len(times) * interval_s
    assert amount_of(usage) <= 1.005 * seen_s * RATE
    assert usage.coverage <= 1.005 * seen_s / (6 * HOUR_S)
    assert amount_of(usage) >= 0.9 * seen_s * RATE


def test_nodes_have_their_own_intervals() -> None:
    """A node that is scraped less often, or whose interval changed, is counted by its own interval."""
    steady, changed = Usage(node="1"), Usage(node="2")
    times = {steady: every(60, 0, 2 * HOUR_S), changed: [*every(30, 0, HOUR_S), *every(10, HOUR_S, 2 * HOUR_S)]}
    past = past_of(2, times)
    assert amount_of(usage_of(past)) == pytest.approx(2 * 2 * HOUR_S * RATE)
    assert past.nodes["1"].paces == {"": [Pace(2 * HOUR_S, 60)]}
    assert past.nodes["2"].paces == {"": [Pace(HOUR_S, 30), Pace(2 * HOUR_S, 10)]}
    assert (past.interval_of("1"), past.interval_of("2"), past.interval_s, past.step_s) == (60, 30, 60, 10)


def test_servers_have_their_own_intervals() -> None:
    """Where the faster of two servers of a node stops, the samples of the slower one count fully."""
    slow, fast = Usage(replica="a"), Usage(replica="b")
    past = past_of(3, {slow: every(60, 0, 3 * HOUR_S), fast: every(15, 0, HOUR_S)})
    usage = usage_of(past)
    assert amount_of(usage) == pytest.approx(3 * HOUR_S * RATE)
    assert usage.coverage == 1.0
    assert (past.nodes["1"].shortest_s, past.nodes["1"].longest_s) == (15, 60)


@pytest.mark.parametrize("interval_s", [1, 2, 2.5, 5, 7, 10, 11, 13, 15, 20, 22, 30, 45, 60, 90, 120])
def test_an_interval_is_exact_whatever_its_length(interval_s: float) -> None:
    """An interval is exact even if ten minutes or an hour are no multiple of it."""
    usage = usage_of(past_of(4, {ONE: every(interval_s, 0, 4 * HOUR_S, phase_s=0.3)}))
    assert amount_of(usage) == pytest.approx(4 * HOUR_S * RATE, rel=0.005)
    assert usage.coverage > 0.995


def test_missed_scrapes_are_gaps() -> None:
    """Missed scrapes are gaps, and their hours have the interval of the others."""
    hours = [Hour(60, 360), Hour(60, 340), Hour(59, 350), Hour(18, 18), Hour(20, 120), Hour(60, 359)]
    assert intervals_of(hours) == [10, 10, 10, 10, 30, 10]
    assert intervals_of([Hour(18, 20)]) == [pytest.approx(600 / 18)]
    assert intervals_of([]) == []
