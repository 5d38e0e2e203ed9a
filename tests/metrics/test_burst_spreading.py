"""The burst-spreading rate of an early draft of KIP-599."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import EPOCH_MS

from quotascope.metrics import LONG_MAX, BurstSpreadingRate, WindowConfig

HUNDRED_SECONDS = WindowConfig(samples=100, window_seconds=1)


def burst() -> BurstSpreadingRate:
    """Return the draft's example: 560 permits at once against 5 per second over 100 s."""
    rate = BurstSpreadingRate(5, HUNDRED_SECONDS)
    assert rate.record(560, EPOCH_MS) == 0
    return rate


def test_a_burst_fills_the_windows_before() -> None:
    """99 of them with 5 each, and the current one with the other 65."""
    rate = burst()
    assert rate.windows(EPOCH_MS) == (5.0,) * 99 + (65.0,)
    assert rate.rate(EPOCH_MS) == 5.6


def test_waits_until_enough_windows_are_gone() -> None:
    """Twelve windows of 5 make 60, which was too much."""
    rate = burst()
    assert rate.throttle_time_ms(EPOCH_MS) == 12_000
    assert rate.record(1, EPOCH_MS + 11_000) == 1_000
    assert rate.rate(EPOCH_MS + 11_999) == 5.05
    assert rate.rate(EPOCH_MS + 12_000) == 5.0
    assert rate.record(1, EPOCH_MS + 12_000) == 0
    assert rate.record(1, EPOCH_MS + 12_000) == 200


def test_idle_windows_are_empty() -> None:
    """After all windows have passed nothing is left."""
    rate = burst()
    assert rate.rate(EPOCH_MS + 100_000) == 0.0
    assert rate.record(10**9, EPOCH_MS + 10**12) == 0


def test_a_clock_set_back_stands_still() -> None:
    """Nothing is booked into windows that are over."""
    rate = burst()
    assert rate.rate(EPOCH_MS - 50_000) == 5.6
    assert rate.windows(EPOCH_MS) == (5.0,) * 99 + (65.0,)


def test_a_refusal_is_never_a_wait_of_zero() -> None:
    """Also when the rate is above its bound by next to nothing."""
    rate = BurstSpreadingRate(5, HUNDRED_SECONDS)
    rate.record(500.000001, EPOCH_MS)
    assert rate.record(1, EPOCH_MS) == 1


def test_a_bound_of_zero_admits_once() -> None:
    """The first mutation comes at a rate of zero; then the wait is endless."""
    rate = BurstSpreadingRate(0.0)
    assert rate.record(1, EPOCH_MS) == 0
    assert rate.record(1, EPOCH_MS) == LONG_MAX


@given(st.lists(st.tuples(st.integers(0, 5_000), st.integers(0, 100)), max_size=40), st.integers(1, 12))
@pytest.mark.parametrize("bound", [1.0, 10.0])
def test_books_all_that_it_admits(bound: float, requests: list[tuple[int, int]], samples: int) -> None:
    """Nothing is lost in spreading, and nothing is taken back."""
    rate = BurstSpreadingRate(bound, WindowConfig(samples=samples))
    now_ms = EPOCH_MS
    for step_ms, permits in requests:
        now_ms += step_ms
        before = sum(rate.windows(now_ms))
        admitted = rate.record(permits, now_ms) == 0
        after = sum(rate.windows(now_ms))
        assert after == pytest.approx(before + permits * admitted)
    assert all(booked >= 0.0 for booked in rate.windows(now_ms))
