"""Sums of histograms, which never go back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotascope.exporter.join.usage import HistogramSums


def test_mean_times_count_is_a_whole_number_of_milliseconds() -> None:
    """Recorded: 1.5485176828311835 ms over 165,754 requests."""
    assert HistogramSums().sum_ms("Produce", 1.5485176828311835, 165754) == 256673


@given(st.lists(st.integers(0, 30_000), min_size=1, max_size=50))
def test_the_total_is_the_exact_sum(throttles: list[int]) -> None:
    """The division for the mean and the multiplication lose nothing."""
    sums = HistogramSums()
    for count in range(1, len(throttles) + 1):
        mean = sum(throttles[:count]) / count
        assert sums.sum_ms("Produce", mean, count) == sum(throttles[:count])


def test_requests_between_the_two_readings_do_not_make_it_go_back() -> None:
    """Mean of ten, count of eleven: too high, and kept until the truth has caught up."""
    sums = HistogramSums()
    assert sums.sum_ms("Fetch", 100.0, 11) == 1_100
    assert sums.sum_ms("Fetch", 1_000 / 11, 11) == 1_100
    assert sums.sum_ms("Fetch", 100.0, 12) == 1_200


def test_a_restart_starts_again() -> None:
    """Recognized by the node's start time, or by a count that went back."""
    sums = HistogramSums()
    sums.began(1.0)
    assert sums.sum_ms("Fetch", 100.0, 10) == 1_000
    sums.began(1.0)
    assert sums.sum_ms("Fetch", 1.0, 3) == 3
    assert sums.sum_ms("Fetch", 100.0, 10) == 1_000
    sums.began(2.0)
    assert sums.sum_ms("Fetch", 1.0, 20) == 20


@pytest.mark.parametrize("request_name", ["Produce", "Fetch"])
def test_requests_are_counted_apart(request_name: str) -> None:
    """One request's total says nothing about another's."""
    sums = HistogramSums()
    sums.sum_ms("Metadata", 10.0, 10)
    assert sums.sum_ms(request_name, 1.0, 5) == 5


def test_names_that_never_end_are_forgotten() -> None:
    """An agent may make names up; those that came first go first."""
    sums = HistogramSums()
    for number in range(2_000):
        sums.sum_ms(str(number), 1.0, 10.0)
    assert len(sums._sums) == 1_000
    assert sums.sum_ms("1999", 1.0, 10.0) == 10
    assert len(sums._sums) == 1_000
