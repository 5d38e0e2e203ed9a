"""What a recent sum is divided by."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.metrics.contracts import StatContract, end_of, fed
from tests.strategies import EPOCH_MS, Event, configs, traces

from quotascope.metrics import MetricConfig, Rate, SimpleRate, TimeUnit, WindowedCount
from quotascope.metrics.rate import convert


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

    def test_a_first_value_is_spread_over_the_whole_windows(self) -> None:
        """With a broker's 11 x 1 s a new sensor's first V reads V/10."""
        rate = Rate()
        rate.record(BROKER, 500.0, EPOCH_MS)
        assert rate.measure(BROKER, EPOCH_MS) == 50.0

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

    @pytest.mark.parametrize(
        ("unit", "expected"),
        [
            (TimeUnit.NANOSECONDS, 4e-9),
            (TimeUnit.MICROSECONDS, 4e-6),
            (TimeUnit.MILLISECONDS, 0.004),
            (TimeUnit.SECONDS, 4.0),
            (TimeUnit.MINUTES, 240.0),
            (TimeUnit.HOURS, 14_400.0),
            (TimeUnit.DAYS, 345_600.0),
        ],
    )
    def test_is_per_any_unit(self, unit: TimeUnit, expected: float) -> None:
        """40 in ten seconds are as many per unit."""
        rate = Rate(unit=unit)
        rate.record(BROKER, 40.0, EPOCH_MS)
        assert rate.measure(BROKER, EPOCH_MS) == pytest.approx(expected)

    def test_divides_any_sampled_statistic(self) -> None:
        """Over a count it is events per second."""
        rate = Rate(WindowedCount())
        rate.record(BROKER, 1e9, EPOCH_MS)
        assert rate.measure(BROKER, EPOCH_MS) == 0.1

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
    def test_the_divisor_covers_all_but_one_window(
        self, config: MetricConfig, trace: list[Event], later: int
    ) -> None:
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
