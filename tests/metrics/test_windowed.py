"""When windows begin, end and are forgotten, and the statistics over them or over all time."""

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.metrics.contracts import TEN_SECONDS, SampledContract, StatContract, fed
from tests.strategies import EPOCH_MS, Event, configs, traces

from quotascope.metrics import (
    Avg,
    CumulativeCount,
    CumulativeSum,
    Max,
    MetricConfig,
    Min,
    Sample,
    SampledStat,
    Value,
    WindowedCount,
    WindowedSum,
)


def starts(stat: SampledStat, config: MetricConfig, now_ms: int) -> list[int]:
    """Return when the windows began, from the beginning of the trace."""
    return [sample.start_ms - EPOCH_MS for sample in stat.view(config, now_ms)]


def test_a_read_lets_obsolete_windows_start_anew() -> None:
    """Kafka's reads have an effect: the next value falls into a window that began with the read."""
    read, unread = WindowedSum(), WindowedSum()
    for stat in (read, unread):
        stat.record(TEN_SECONDS, 1.0, EPOCH_MS)
    read.measure(TEN_SECONDS, EPOCH_MS + 20_000)
    for stat in (read, unread):
        stat.record(TEN_SECONDS, 1.0, EPOCH_MS + 20_500)
    assert starts(read, TEN_SECONDS, EPOCH_MS + 20_500) == [20_000]
    assert starts(unread, TEN_SECONDS, EPOCH_MS + 20_500) == [20_500, 20_500]


def test_a_clock_set_back_keeps_the_window_open() -> None:
    """Nothing guards against it: events pile up in the window that lies in the future."""
    stat = WindowedSum()
    stat.record(TEN_SECONDS, 1.0, EPOCH_MS)
    for second in range(60):
        stat.record(TEN_SECONDS, 1.0, EPOCH_MS - 3_600_000 + second * 1_000)
    assert stat.measure(TEN_SECONDS, EPOCH_MS - 3_540_000) == 61.0
    assert len(stat.view(TEN_SECONDS, EPOCH_MS)) == 1


@given(config=configs, trace=traces())
def test_the_ring_never_grows_beyond_one_more_than_samples(config: MetricConfig, trace: list[Event]) -> None:
    """Memory is bounded by the config, not by the traffic."""
    stat = WindowedSum()
    for event in trace:
        stat.record(config, event.value, event.at_ms)
    assert len(stat.view(config, EPOCH_MS)) <= config.samples + 1


@given(config=configs, trace=traces(), reads=st.lists(st.integers(0, 5_000), max_size=10))
def test_every_recorded_value_counts_until_it_is_obsolete(
    config: MetricConfig, trace: list[Event], reads: list[int]
) -> None:
    """Reading never takes a value away before its window is obsolete."""
    stat = WindowedCount()
    now_ms = EPOCH_MS
    for event, wait in zip(trace, reads, strict=False):
        now_ms = event.at_ms + wait
        stat.record(config, event.value, now_ms)
        assert stat.measure(config, now_ms) >= 1.0
        assert stat.measure(config, now_ms + config.span_ms - 1) >= 1.0


def test_the_base_class_has_no_statistic() -> None:
    """What a window holds is up to the subclass."""
    with pytest.raises(NotImplementedError):
        SampledStat(0.0).record(TEN_SECONDS, 1.0, EPOCH_MS)
    with pytest.raises(NotImplementedError):
        SampledStat(0.0).measure(TEN_SECONDS, EPOCH_MS)


def test_a_sample_can_begin_anew() -> None:
    """A reset leaves nothing of the window before."""
    sample = Sample(-1.0, 5)
    sample.value, sample.event_count, sample.last_event_ms = 9.0, 3, 8
    sample.reset(-1.0, 10)
    assert (
        sample.value,
        sample.event_count,
        sample.start_ms,
        sample.last_event_ms,
    ) == (-1.0, 0, 10, 10)


class TestWindowedSum(SampledContract):
    """The sum of recent values."""

    make = WindowedSum
    empty = 0.0

    @staticmethod
    def expected(live: list[float]) -> float:
        """Add up."""
        return math.fsum(live)


adding_up = st.one_of(
    st.integers(-1_000, 1_000).map(float),
    st.sampled_from([0.1, -0.0, 1e16, 2.0**51, 2.0**50, 0.5, math.inf, math.nan]),
    st.floats(),
)


@given(trace=st.lists(st.tuples(adding_up, st.integers(-500, 3_000), st.booleans()), max_size=40))
def test_a_sum_is_that_in_ring_order(trace: list[tuple[float, int, bool]]) -> None:
    """Whether windows hold whole numbers or not, a read is to the last bit what adding them up one by one gives."""
    stat, now_ms = WindowedSum(), EPOCH_MS
    for value, step_ms, whole in trace:
        now_ms += step_ms
        stat.record(TEN_SECONDS, float(len(trace)) if whole else value, now_ms)
        one_by_one = stat.peek(TEN_SECONDS, now_ms)
        read = stat.measure(TEN_SECONDS, now_ms)
        assert struct.pack("d", read) == struct.pack("d", one_by_one)


class TestWindowedCount(SampledContract):
    """The number of recent events."""

    make = WindowedCount
    empty = 0.0

    @staticmethod
    def expected(live: list[float]) -> float:
        """Count."""
        return float(len(live))


class TestAvg(SampledContract):
    """The mean of recent values."""

    make = Avg
    empty = math.nan

    @staticmethod
    def expected(live: list[float]) -> float:
        """Divide."""
        return math.fsum(live) / len(live) if live else math.nan


class TestMax(SampledContract):
    """The largest recent value."""

    make = Max
    empty = math.nan

    @staticmethod
    def expected(live: list[float]) -> float:
        """Take the largest."""
        return max(live, default=math.nan)

    def test_nan_wins(self) -> None:
        """One NaN spoils the window it is in, as in Java's `Math.max`."""
        stat = Max()
        for value in (1.0, math.nan, 2.0):
            stat.record(TEN_SECONDS, value, EPOCH_MS)
        assert math.isnan(stat.measure(TEN_SECONDS, EPOCH_MS))


class TestMin(SampledContract):
    """The smallest recent value."""

    make = Min
    empty = math.nan

    @staticmethod
    def expected(live: list[float]) -> float:
        """Take the smallest."""
        return min(live, default=math.nan)

    def test_infinity_reads_as_the_largest_double(self) -> None:
        """Kafka starts from the largest finite double, so nothing larger is ever the minimum."""
        stat = Min()
        stat.record(TEN_SECONDS, math.inf, EPOCH_MS)
        assert stat.measure(TEN_SECONDS, EPOCH_MS) == 1.7976931348623157e308


A_YEAR_LATER = EPOCH_MS + 365 * 86_400_000


class TestCumulativeSum(StatContract):
    """The sum of all values."""

    make = CumulativeSum
    empty = 0.0

    @given(trace=traces())
    def test_forgets_nothing(self, trace: list[Event]) -> None:
        """Time takes nothing off the sum."""
        stat = fed(CumulativeSum(), TEN_SECONDS, trace)
        assert stat.measure(TEN_SECONDS, A_YEAR_LATER) == sum(event.value for event in trace)


class TestCumulativeCount(StatContract):
    """The number of all events."""

    make = CumulativeCount
    empty = 0.0

    @given(trace=traces())
    def test_counts_whatever_the_values(self, trace: list[Event]) -> None:
        """An event counts one, also with a value of zero or less."""
        stat = fed(CumulativeCount(), TEN_SECONDS, trace)
        assert stat.measure(TEN_SECONDS, A_YEAR_LATER) == len(trace)


class TestValue(StatContract):
    """The last value."""

    make = Value
    empty = 0.0

    @given(trace=traces())
    def test_is_the_last_one(self, trace: list[Event]) -> None:
        """Each value replaces the one before."""
        stat = fed(Value(), TEN_SECONDS, trace)
        assert stat.measure(TEN_SECONDS, A_YEAR_LATER) == (trace[-1].value if trace else 0.0)
