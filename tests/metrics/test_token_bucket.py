"""Credit that accrues and is spent."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.metrics.contracts import StatContract
from tests.strategies import EPOCH_MS, Event, configs, traces

from quotascope.metrics import LONG_MAX, MetricConfig, Quota, TokenBucket

KAFKAS = MetricConfig(samples=10, time_window_ms=2_000, quota=Quota(5.0))
"""The config of Kafka's own tests: a burst of 100."""


class TestTokenBucket(StatContract):
    """A bucket that starts as Kafka's does."""

    make = TokenBucket
    empty = 50.0

    @given(config=configs, trace=traces())
    def test_never_above_the_burst(self, config: MetricConfig, trace: list[Event]) -> None:
        """Neither time nor tokens given back fill it beyond."""
        bucket = TokenBucket()
        burst = config.samples * (config.time_window_ms / 1000) * (config.quota or Quota(0.0)).bound
        for event in trace:
            bucket.record(config, event.value, event.at_ms)
            assert bucket.measure(config, event.at_ms) <= burst

    @given(trace=traces())
    def test_a_token_is_never_spent_twice(self, trace: list[Event]) -> None:
        """What is taken while tokens last is at most the burst and what accrued in the time."""
        bucket = TokenBucket()
        taken = 0.0
        for event in trace:
            if bucket.measure(KAFKAS, event.at_ms) >= abs(event.value):
                bucket.record(KAFKAS, abs(event.value), event.at_ms)
                taken += abs(event.value)
        seconds = (trace[-1].at_ms - EPOCH_MS) / 1000 if trace else 0.0
        assert taken <= (100.0 + 5.0 * seconds) * (1 + 1e-12)

    def test_recovers_at_the_pace_of_the_quota(self) -> None:
        """KIP-599's example: 560 against 5/s and 100 x 1 s is paid back after 12 s."""
        config = MetricConfig(100, 1_000, quota=Quota(5.0))
        bucket = TokenBucket()
        bucket.record(config, 560.0, EPOCH_MS)
        assert bucket.measure(config, EPOCH_MS + 11_999) < 0.0
        assert bucket.measure(config, EPOCH_MS + 12_000) == pytest.approx(0.0)

    def test_without_a_quota_there_is_no_limit(self) -> None:
        """Nothing is recorded, whatever is taken."""
        config = MetricConfig()
        bucket = TokenBucket()
        bucket.record(config, 1e30, EPOCH_MS)
        assert bucket.measure(config, EPOCH_MS) == bucket.peek(config, EPOCH_MS) == float(LONG_MAX)

    def test_acceptable_down_to_zero(self) -> None:
        """Bound and direction of the quota play no part, and NaN passes, as in Kafka."""
        bucket = TokenBucket()
        accepted = [bucket.acceptable(Quota(5.0), value) for value in (100.0, 0.0, -0.0, math.nan, -1e-9)]
        assert accepted == [True, True, True, True, False]


class TestStart:
    """How a bucket begins."""

    @given(now_ms=st.integers(0, 10_000))
    def test_full_is_full_by_any_clock(self, now_ms: int) -> None:
        """An explicit start does not need the epoch."""
        assert TokenBucket.full(now_ms).measure(KAFKAS, now_ms) == 100.0

    def test_starts_with_what_it_is_given(self) -> None:
        """A bucket can go on from a known state, and accrues from that time."""
        bucket = TokenBucket(tokens=10, at_ms=5_000)
        assert bucket.measure(KAFKAS, 5_000) == 10.0
        assert bucket.measure(KAFKAS, 6_000) == 15.0

    def test_a_clock_set_back_takes_tokens_away(self) -> None:
        """As in Kafka: they come back as the clock catches up."""
        bucket = TokenBucket.full(EPOCH_MS)
        bucket.measure(KAFKAS, EPOCH_MS)
        assert bucket.measure(KAFKAS, EPOCH_MS - 60_000) == -200.0
        assert bucket.measure(KAFKAS, EPOCH_MS) == 100.0
