"""What a recent sum is divided by, and how long to stay silent when that is too much."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.metrics.contracts import StatContract, end_of, fed
from tests.strategies import EPOCH_MS, Event, configs, traces

from quotascope.metrics import (
    INT_MAX,
    LONG_MAX,
    InvalidConfig,
    Max,
    Meter,
    MetricConfig,
    MetricName,
    Quota,
    QuotaViolation,
    Rate,
    Registry,
    SimpleRate,
    TimeUnit,
    TokenBucket,
    WindowedCount,
    WrongStatistic,
    bounded_rate_throttle_time_ms,
    narrow,
    rate_throttle_time_ms,
    token_throttle_time_ms,
)
from quotascope.metrics.rate import convert
from quotascope.metrics.stat import Stat


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        (TimeUnit.NANOSECONDS, 5_400_000_000_000.0),
        (TimeUnit.MICROSECONDS, 5_400_000_000.0),
        (TimeUnit.MILLISECONDS, 5_400_000.0),
        (TimeUnit.SECONDS, 5_400.0),
        (TimeUnit.MINUTES, 90.0),
        (TimeUnit.HOURS, 1.5),
        (TimeUnit.DAYS, 0.0625),
    ],
)
def test_an_hour_and_a_half(unit: TimeUnit, expected: float) -> None:
    """The same time in every unit."""
    assert convert(5_400_000, unit) == expected


def test_nanoseconds_are_rounded_twice() -> None:
    """Kafka multiplies by 1000 twice, which is not the same as once by a million."""
    ms = 9_007_199_254_740_992_123
    assert convert(ms, TimeUnit.NANOSECONDS) == float(ms) * 1000.0 * 1000.0


BROKER = MetricConfig(samples=11, time_window_ms=1_000)


class TestRate(StatContract):
    """A rate over a sum, per second."""

    make = Rate
    empty = 0.0

    def test_the_divisor_can_exceed_the_monitored_time(self) -> None:
        """An older window that overlaps counts whole, in the sum and in the time."""
        config = MetricConfig(2, 1_000)
        rate = Rate()
        for at_ms in (0, 900, 1_000, 2_000):
            rate.record(config, 1.0, EPOCH_MS + at_ms)
        assert rate.window_size(config, EPOCH_MS + 2_899) == 2_899

    def test_a_read_starts_the_first_window(self) -> None:
        """Asking a rate that was never recorded has an effect, as in Kafka; peeking has none."""
        read, peeked = Rate(), Rate()
        read.measure(BROKER, EPOCH_MS)
        peeked.peek(BROKER, EPOCH_MS)
        for rate in (read, peeked):
            rate.record(BROKER, 1.0, EPOCH_MS + 999)
        assert read.window_size(BROKER, EPOCH_MS + 999) == 10_999
        assert peeked.window_size(BROKER, EPOCH_MS + 999) == 10_000

    def test_own_window_beats_the_configs(self) -> None:
        """A rate with a time window of its own ignores the config's, as statistic and divisor."""
        rate = Rate(time_window_ms=10)
        rate.record(BROKER, 5.0, EPOCH_MS)
        assert rate.window_size(BROKER, EPOCH_MS) == 100
        assert rate.measure(BROKER, EPOCH_MS + 110) == 0.0

    def test_a_clock_set_back_does_not_shrink_the_divisor(self) -> None:
        """Negative elapsed time is made up for by whole windows, truncated toward zero as in Java."""
        rate = Rate()
        rate.record(BROKER, 1.0, EPOCH_MS)
        assert rate.window_size(BROKER, EPOCH_MS - 999) == 9_001
        assert rate.window_size(BROKER, EPOCH_MS - 1_000) == 10_000

    def test_the_number_of_windows_overflows_as_in_java(self) -> None:
        """Kafka counts windows in 32 bits: past those the divisor jumps to twice the time."""
        rate = Rate()
        for at_ms in (0, 2**31 + 7):
            rate.record(MetricConfig(1, 2**40), 1.0, EPOCH_MS + at_ms)
        narrow = MetricConfig(3, 1)
        assert rate.window_size(narrow, EPOCH_MS + 2**31 + 7) == 2 * (2**31 + 1)

    def test_a_clock_set_back_by_decades(self) -> None:
        """Here the overflow leaves the time negative, and the divisor at its least."""
        rate = Rate()
        rate.record(MetricConfig(3, 1), 1.0, EPOCH_MS)
        assert rate.window_size(MetricConfig(3, 1), 0) == 1

    @given(config=configs, trace=traces(), later=st.integers(0, 100_000))
    def test_the_divisor_covers_all_but_one_window(self, config: MetricConfig, trace: list[Event], later: int) -> None:
        """It is at least `samples - 1` windows, at least 1 ms, and the read is the sum over it."""
        rate = Rate()
        fed(rate, config, trace)
        now_ms = end_of(trace) + later
        window_ms = rate.window_size(config, now_ms)
        assert window_ms >= max(1, (config.samples - 1) * config.time_window_ms)
        total = rate.stat.measure(config, now_ms)
        assert rate.measure(config, now_ms) == total / (window_ms / 1000)


class TestSimpleRate(StatContract):
    """A rate over the time since the oldest window began."""

    make = SimpleRate
    empty = 0.0


CONFIG = MetricConfig()
RATE, TOTAL = MetricName("rate", "g"), MetricName("total", "g")


def measured(meter: Meter, now_ms: int) -> dict[str, float]:
    """Return the metrics in their order."""
    return {part.name.name: part.measurable.measure(CONFIG, now_ms) for part in meter.stats()}


def test_the_total_comes_before_the_rate() -> None:
    """Metrics are registered in this order."""
    assert list(measured(Meter(RATE, TOTAL), EPOCH_MS)) == ["total", "rate"]


def test_over_a_count_the_total_counts_too() -> None:
    """Values do not matter to either."""
    meter = Meter(RATE, TOTAL, WindowedCount(), TimeUnit.MINUTES)
    for _ in range(3):
        meter.record(CONFIG, 1e9, EPOCH_MS)
    assert measured(meter, EPOCH_MS) == {"total": 3.0, "rate": 6.0}


def test_is_for_sums_and_counts_only() -> None:
    """A total of maxima would mean nothing."""
    with pytest.raises(InvalidConfig, match="WindowedSum"):
        Meter(RATE, TOTAL, Max())


def violated(stat: Stat, value: float, bound: float, now_ms: int) -> QuotaViolation:
    """What a sensor raises when `value` is recorded in `stat` under an upper bound."""
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
    """Neither formula answers for the other's statistic, nor for a violation made by hand."""
    by_hand = QuotaViolation(MetricName("m", "g"), 2.0, 1.0)
    with pytest.raises(WrongStatistic, match="is not a rate"):
        rate_throttle_time_ms(by_hand, 0)
    with pytest.raises(WrongStatistic, match="is not a token bucket"):
        token_throttle_time_ms(by_hand)
    with pytest.raises(WrongStatistic, match="is not a rate"):
        rate_throttle_time_ms(violated(TokenBucket.full(0), 115.0, 10.0, 0), 0)
    with pytest.raises(WrongStatistic, match="is not a token bucket"):
        token_throttle_time_ms(violated(Rate(), 10_000.0, 500.0, 0))


def test_narrow_wraps_around() -> None:
    """As in Kafka, 34.7 days turn negative and 94.9 years into 24.5 days."""
    assert narrow(2_999_990_000) == -1_294_977_296
    assert narrow(2_999_999_990_000) == 2_112_817_392


@given(st.integers(0, LONG_MAX))
def test_saturation(throttle_time_ms: int) -> None:
    """What stops before it is cut stays long."""
    assert narrow(throttle_time_ms, INT_MAX) == min(throttle_time_ms, INT_MAX)


def test_only_the_upper_end_stops() -> None:
    """Java's cut follows `Math.min`: far below zero a time wraps around all the same, as under a bound below zero."""
    assert narrow(-(2**31) - 1, INT_MAX) == INT_MAX
