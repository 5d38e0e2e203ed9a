"""Percentiles of recent values."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.metrics.contracts import TEN_SECONDS, StatContract
from tests.strategies import EPOCH_MS

from quotascope.metrics import (
    BucketSizing,
    HistogramWindows,
    InvalidConfig,
    MetricConfig,
    MetricName,
    Percentile,
    Percentiles,
    Registry,
)
from quotascope.metrics.histogram import ConstantBins

QUARTERS = [
    Percentile(MetricName(f"p{percentile}", "g"), percentile)
    for percentile in (25, 50, 75)
]


def make() -> Percentiles:
    """Return a hundred bins from 0 to 100."""
    return Percentiles(400, 100.0, BucketSizing.CONSTANT, QUARTERS)


def read(percentiles: Percentiles, now_ms: int) -> list[float]:
    """Return the metrics in their order."""
    return [
        each.measurable.measure(TEN_SECONDS, now_ms) for each in percentiles.stats()
    ]


class TestPercentiles(StatContract):
    """The median of a hundred bins."""

    make = make
    empty = math.nan

    def test_tells_quarters(self) -> None:
        """Of the whole numbers up to 100 a quarter is below 25, and so on."""
        percentiles = make()
        for value in range(100):
            percentiles.record(TEN_SECONDS, value, EPOCH_MS)
        assert read(percentiles, EPOCH_MS) == [25.0, 50.0, 75.0]
        assert percentiles.measure(TEN_SECONDS, EPOCH_MS) == 50.0

    def test_forgets(self) -> None:
        """Obsolete windows do not count, and are counted into anew."""
        percentiles = make()
        percentiles.record(TEN_SECONDS, 10.0, EPOCH_MS)
        assert read(percentiles, EPOCH_MS + 9_999) == [10.0] * 3
        assert all(math.isnan(each) for each in read(percentiles, EPOCH_MS + 10_000))
        percentiles.record(TEN_SECONDS, 30.0, EPOCH_MS + 10_001)
        assert read(percentiles, EPOCH_MS + 10_001) == [30.0] * 3

    def test_a_metric_can_be_peeked_at(self) -> None:
        """Looking has no effect: the obsolete window is still there afterwards."""
        percentiles = make()
        percentiles.record(TEN_SECONDS, 10.0, EPOCH_MS)
        median = percentiles.stats()[1].measurable
        assert math.isnan(median.peek(TEN_SECONDS, EPOCH_MS + 10_000))
        assert median.peek(TEN_SECONDS, EPOCH_MS) == 10.0

    def test_the_range_may_begin_anywhere(self) -> None:
        """Of constant bins, that is."""
        percentiles = Percentiles(400, 0.0, BucketSizing.CONSTANT, (), -100.0)
        percentiles.record(TEN_SECONDS, -300.0, EPOCH_MS)
        assert percentiles.measure(TEN_SECONDS, EPOCH_MS) == -100.0
        with pytest.raises(InvalidConfig, match="begin at 0"):
            Percentiles(400, 100.0, BucketSizing.LINEAR, (), 1.0)

    def test_beyond_all_events_is_infinity(self) -> None:
        """More than 100 percent is never counted; more than a negative share is at once."""
        percentiles = make()
        percentiles.record(TEN_SECONDS, 10.0, EPOCH_MS)
        assert percentiles.value(TEN_SECONDS, EPOCH_MS, 1.0) == math.inf
        assert percentiles.value(TEN_SECONDS, EPOCH_MS, math.nan) == math.inf
        assert percentiles.value(TEN_SECONDS, EPOCH_MS, 1e300) == math.inf
        assert percentiles.value(TEN_SECONDS, EPOCH_MS, -0.1) == 0.0

    def test_shares_have_32_bits(self) -> None:
        """A third of the events is not more than a third rounded to 32 bits, but more than one in 64 bits."""
        percentiles = make()
        for value in (1.0, 2.0, 3.0):
            percentiles.record(TEN_SECONDS, value, EPOCH_MS)
        assert percentiles.value(TEN_SECONDS, EPOCH_MS, 1 / 3) == 2.0
        assert percentiles.value(TEN_SECONDS, EPOCH_MS, 1 / 3 - 1e-9) == 2.0

    def test_is_registered_as_its_percentiles(self) -> None:
        """One sensor records, each percentile is a metric."""
        registry = Registry(MetricConfig(10, 1_000))
        sensor = registry.sensor("s", EPOCH_MS)
        sensor.add_compound(make())
        sensor.record(42.0, EPOCH_MS)
        assert [metric.value(EPOCH_MS) for metric in sensor.metrics()] == [42.0] * 3


@given(st.lists(st.integers(0, 99), min_size=1, max_size=60), st.integers(0, 99))
def test_agrees_with_sorting(values: list[int], percent: int) -> None:
    """With a bin for each value the percentile is the first sorted value that more than its share reaches."""
    percentiles = make()
    for value in values:
        percentiles.record(TEN_SECONDS, value, EPOCH_MS)
    ordered = sorted(values)
    above = next(
        value
        for reached, value in enumerate(ordered, start=1)
        if 100 * reached > percent * len(values)
    )
    if 100 * (ordered.index(above)) != percent * len(values):  # a tie is one of 32 bits
        assert percentiles.value(TEN_SECONDS, EPOCH_MS, percent / 100) == above


def test_a_bin_stops_growing_at_16_777_216() -> None:
    """Adding one to a number of 32 bits has no effect from there on, as in Kafka."""
    windows = HistogramWindows(ConstantBins(2, 0.0, 2.0))
    config = MetricConfig()
    windows.record(config, 0.0, EPOCH_MS)
    counts = windows.live(config, EPOCH_MS)[0].counts  # type: ignore[attr-defined]
    counts[0] = 16_777_215.0
    for _ in range(3):
        windows.record(config, 0.0, EPOCH_MS)
    assert counts[0] == 16_777_216.0
