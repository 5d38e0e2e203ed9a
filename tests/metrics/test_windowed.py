"""Sum, count, average, maximum and minimum over windows."""

import math
import struct

from hypothesis import given
from hypothesis import strategies as st
from tests.metrics.contracts import TEN_SECONDS, SampledContract
from tests.strategies import EPOCH_MS

from quotascope.metrics import Avg, Max, Min, WindowedCount, WindowedSum


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


@given(
    trace=st.lists(
        st.tuples(adding_up, st.integers(-500, 3_000), st.booleans()), max_size=40
    )
)
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
