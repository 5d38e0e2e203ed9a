"""Divisors of recent sums, throttle times of rates, and the rate of an early draft of KIP-599."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import EPOCH_MS, Event, configs, traces

from quotascope.metrics.engine.config import MetricConfig
from quotascope.metrics.engine.errors import QuotaViolation, WrongStatistic
from quotascope.metrics.engine.extras.burst_spreading import BurstSpreadingRate
from quotascope.metrics.engine.extras.meter import Meter
from quotascope.metrics.engine.metric_name import MetricName
from quotascope.metrics.engine.quota import Quota
from quotascope.metrics.engine.rate import Rate, TimeUnit, convert
from quotascope.metrics.engine.registry import Registry
from quotascope.metrics.engine.stat import Stat
from quotascope.metrics.engine.throttle_time import (
    bounded_rate_throttle_time_ms,
    narrow,
    rate_throttle_time_ms,
    token_throttle_time_ms,
)
from quotascope.metrics.engine.token_bucket import TokenBucket
from quotascope.metrics.engine.windowed import Max, WindowedCount
from quotascope.metrics.kafka.errors import InvalidConfig
from quotascope.metrics.kafka.numbers import INT_MAX, LONG_MAX
from quotascope.metrics.kafka.windows import WindowConfig


def test_convert() -> None:
    """Times convert as in Kafka, which multiplies by 1000 twice for nanoseconds instead of once by a million."""
    assert {unit: convert(5_400_000, unit) for unit in TimeUnit} == {
        TimeUnit.NANOSECONDS: 5_400_000_000_000.0,
        TimeUnit.MICROSECONDS: 5_400_000_000.0,
        TimeUnit.MILLISECONDS: 5_400_000.0,
        TimeUnit.SECONDS: 5_400.0,
        TimeUnit.MINUTES: 90.0,
        TimeUnit.HOURS: 1.5,
        TimeUnit.DAYS: 0.0625,
    }
    ms = 9_007_199_254_740_992_123
    assert convert(ms, TimeUnit.NANOSECONDS) == float(ms) * 1000.0 * 1000.0


BROKER = MetricConfig(samples=11, time_window_ms=1_000)
THREE_MS = MetricConfig(samples=3, time_window_ms=1)


@pytest.mark.parametrize(
    ("config", "recorded_ms", "read", "now_ms", "window_ms"),
    [
        (MetricConfig(2, 1_000), (0, 900, 1_000, 2_000), None, 2_899, 2_899),
        (BROKER, (0,), None, -999, 9_001),
        (BROKER, (0,), None, -1_000, 10_000),
        (MetricConfig(1, 2**40), (0, 2**31 + 7), THREE_MS, 2**31 + 7, 2 * (2**31 + 1)),
        (THREE_MS, (0,), None, -EPOCH_MS, 1),
    ],
    ids=[
        "an older window that overlaps counts whole, so it can exceed the monitored time",
        "a clock set back: negative time is made up for",
        "by whole windows, truncated toward zero as in Java",
        "Kafka counts windows in 32 bits: past those it jumps to twice the time",
        "set back by decades the overflow leaves the time negative, and the divisor at its least",
    ],
)
def test_divisors(
    config: MetricConfig, recorded_ms: tuple[int, ...], read: MetricConfig | None, now_ms: int, window_ms: int
) -> None:
    """A rate's divisor, in ms, follows from its windows and the elapsed time."""
    rate = Rate()
    for at_ms in recorded_ms:
        rate.record(config, 1.0, EPOCH_MS + at_ms)
    assert rate.window_size(read or config, EPOCH_MS + now_ms) == window_ms


def test_a_read_starts_the_first_window() -> None:
    """Asking a rate that was never recorded has an effect, as in Kafka; peeking has none."""
    measured, peeked = Rate(), Rate()
    measured.measure(BROKER, EPOCH_MS)
    peeked.peek(BROKER, EPOCH_MS)
    for rate in (measured, peeked):
        rate.record(BROKER, 1.0, EPOCH_MS + 999)
    assert [rate.window_size(BROKER, EPOCH_MS + 999) for rate in (measured, peeked)] == [10_999, 10_000]


def test_an_own_window_beats_the_configs() -> None:
    """A rate with a time window of its own ignores the config's, as statistic and divisor."""
    rate = Rate(time_window_ms=10)
    rate.record(BROKER, 5.0, EPOCH_MS)
    assert rate.window_size(BROKER, EPOCH_MS) == 100
    assert [rate.measure(BROKER, EPOCH_MS + ms) for ms in (109, 110)] == [5.0 / 0.109, 0.0]


@given(config=configs, trace=traces(), later=st.integers(0, 100_000))
def test_the_divisor_covers_all_but_one_window(config: MetricConfig, trace: list[Event], later: int) -> None:
    """The divisor is at least `samples - 1` windows, at least 1 ms, and the rate is the sum divided by it."""
    rate, now_ms = Rate(), EPOCH_MS
    for event in trace:
        now_ms = event.at_ms
        rate.record(config, event.value, now_ms)
    now_ms += later
    window_ms = rate.window_size(config, now_ms)
    assert window_ms >= max(1, (config.samples - 1) * config.time_window_ms)
    total = rate.stat.measure(config, now_ms)
    assert rate.measure(config, now_ms) == total / (window_ms / 1000)


def test_a_meter_over_a_count_counts_in_total_too() -> None:
    """Values do not matter to either; the total is registered first. A total of maxima would mean nothing."""
    rate, total = MetricName("rate", "g"), MetricName("total", "g")
    meter = Meter(rate, total, WindowedCount(), TimeUnit.MINUTES)
    for _ in range(3):
        meter.record(MetricConfig(), 1e9, EPOCH_MS)
    measured = [(part.name.name, part.measurable.measure(MetricConfig(), EPOCH_MS)) for part in meter.stats()]
    assert measured == [("total", 3.0), ("rate", 6.0)]
    with pytest.raises(InvalidConfig, match="WindowedSum"):
        Meter(rate, total, Max())


def violated(stat: Stat, value: float, bound: float, now_ms: int) -> QuotaViolation:
    """Return the violation of a sensor that records `value` in `stat` under an upper bound."""
    registry = Registry()
    sensor = registry.sensor("s", now_ms)
    config = MetricConfig(samples=11, time_window_ms=1000, quota=Quota(bound))
    sensor.add(registry.metric_name("m", "g"), stat, config)
    sensor.record(value, now_ms, check_quotas=False)
    with pytest.raises(QuotaViolation) as caught:
        sensor.check_quotas(now_ms)
    return caught.value


def test_rate_violation() -> None:
    """The window is the one the rate was measured over: 10 s for a first value under 11 x 1 s."""
    violation = violated(Rate(), 10_000.0, 500.0, 0)
    assert violation.value == 1000.0
    assert rate_throttle_time_ms(violation, 0) == 10_000
    assert bounded_rate_throttle_time_ms(violation, 1000, 0) == 1000
    assert bounded_rate_throttle_time_ms(violation, 99_999, 0) == 10_000


def test_wrong_statistic() -> None:
    """Each throttle formula refuses the other's statistic, and a violation that was made by hand."""
    by_hand = QuotaViolation(MetricName("m", "g"), 2.0, 1.0)
    with pytest.raises(WrongStatistic, match="is not a rate"):
        rate_throttle_time_ms(by_hand, 0)
    with pytest.raises(WrongStatistic, match="is not a token bucket"):
        token_throttle_time_ms(by_hand)
    with pytest.raises(WrongStatistic, match="is not a rate"):
        rate_throttle_time_ms(violated(TokenBucket.full(0), 115.0, 10.0, 0), 0)
    with pytest.raises(WrongStatistic, match="is not a token bucket"):
        token_throttle_time_ms(violated(Rate(), 10_000.0, 500.0, 0))


@pytest.mark.parametrize(
    ("throttle_time_ms", "longest_ms", "narrowed"),
    [
        (2_999_990_000, None, -1_294_977_296),
        (2_999_999_990_000, None, 2_112_817_392),
        (-(2**31) - 1, INT_MAX, INT_MAX),
    ],
)
def test_narrow_wraps_around(throttle_time_ms: int, longest_ms: int | None, narrowed: int) -> None:
    """
    Throttle times overflow as in Kafka: 34.7 days turn negative, and 94.9 years into 24.5 days.

    Java's cut follows `Math.min`: far below zero a time wraps around all the same, as under a bound below zero.
    """
    assert narrow(throttle_time_ms, *([] if longest_ms is None else [longest_ms])) == narrowed


HUNDRED_SECONDS = WindowConfig(samples=100, window_seconds=1)


def burst() -> BurstSpreadingRate:
    """Return the draft's example: 560 permits at once against 5 per second over 100 s."""
    rate = BurstSpreadingRate(5, HUNDRED_SECONDS)
    assert rate.record(560, EPOCH_MS) == 0
    return rate


def test_a_burst_fills_the_windows_before() -> None:
    """Permits fill 99 windows with 5 each, the current one with 65; a clock set back books none into ended ones."""
    rate = burst()
    assert rate.rate(EPOCH_MS - 50_000) == 5.6
    assert rate.windows(EPOCH_MS) == (5.0,) * 99 + (65.0,)
    assert rate.rate(EPOCH_MS) == 5.6


def test_waits_until_enough_windows_are_gone() -> None:
    """Twelve windows of 5 make 60, which was too much; after all windows have passed nothing is left."""
    rate = burst()
    assert rate.throttle_time_ms(EPOCH_MS) == 12_000
    assert rate.record(1, EPOCH_MS + 11_000) == 1_000
    assert [rate.rate(EPOCH_MS + after_ms) for after_ms in (11_999, 12_000)] == [5.05, 5.0]
    assert [rate.record(1, EPOCH_MS + 12_000) for _ in range(2)] == [0, 200]
    idle = burst()
    assert idle.rate(EPOCH_MS + 100_000) == 0.0
    assert idle.record(10**9, EPOCH_MS + 10**12) == 0


def test_a_refusal_is_never_a_wait_of_zero() -> None:
    """A rate just above its bound waits for 1 ms; a bound of zero admits one mutation, then the wait is endless."""
    rate = BurstSpreadingRate(5, HUNDRED_SECONDS)
    rate.record(500.000001, EPOCH_MS)
    assert rate.record(1, EPOCH_MS) == 1
    nothing = BurstSpreadingRate(0.0)
    assert [nothing.record(1, EPOCH_MS) for _ in range(2)] == [0, LONG_MAX]


@given(st.lists(st.tuples(st.integers(0, 5_000), st.integers(0, 100)), max_size=40), st.integers(1, 12))
@pytest.mark.parametrize("bound", [1.0, 10.0])
def test_books_all_that_it_admits(bound: float, requests: list[tuple[int, int]], samples: int) -> None:
    """Spreading a burst loses no admitted permit, and takes none back."""
    rate = BurstSpreadingRate(bound, WindowConfig(samples=samples))
    now_ms = EPOCH_MS
    for step_ms, permits in requests:
        now_ms += step_ms
        sum_before = sum(rate.windows(now_ms))
        admitted = rate.record(permits, now_ms) == 0
        sum_after = sum(rate.windows(now_ms))
        assert sum_after == pytest.approx(sum_before + permits * admitted)
    assert all(booked >= 0.0 for booked in rate.windows(now_ms))
