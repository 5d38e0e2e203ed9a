"""Bins of a range of values; percentiles and shares of recent values."""

import math
import sys
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.metrics.examples import TEN_SECONDS, make_frequencies, make_percentiles, same
from tests.strategies import EPOCH_MS

from quotascope.metrics.engine.config import MetricConfig
from quotascope.metrics.engine.extras.frequencies import Frequencies, Frequency
from quotascope.metrics.engine.extras.histogram import BinScheme, ConstantBins, HistogramWindows, LinearBins
from quotascope.metrics.engine.extras.percentiles import BucketSizing, Percentiles
from quotascope.metrics.engine.metric_name import MetricName
from quotascope.metrics.kafka.errors import InvalidConfig

REALS = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e9, max_value=1e9)


def test_linear_bins_widen_evenly() -> None:
    """Each bin is as much wider than the one before as the first is wide."""
    bins = LinearBins(4, 60)
    assert [bins.edge(number) for number in range(4)] == [0, 10, 30, 60]
    assert [bins.bin_of(value) for value in (0, 9.9, 10, 29, 30, 59, 60)] == [*(0, 0, 1, 1, 2, 2, 3)]


@pytest.mark.parametrize("bins", [ConstantBins(5, -5, 5), LinearBins(5, 5)])
def test_beyond_the_bins_lies_infinity(bins: BinScheme) -> None:
    """A missing bin is answered as in Kafka; the end of the range and larger values are in the last bin."""
    assert (bins.edge(-1), bins.edge(5)) == (-math.inf, math.inf)
    assert [bins.bin_of(value) for value in (5.0, 5.01, 1e300, math.inf)] == [4] * 4


def test_what_is_too_small_falls_into_the_first_constant_bin() -> None:
    """A value that is too small, or NaN, falls into the first constant bin."""
    assert [ConstantBins(5, -5, 5).bin_of(value) for value in (-5.01, -math.inf, math.nan)] == [0] * 3


def test_linear_bins_begin_at_zero() -> None:
    """Linear bins begin at zero: a negative value is an error of the caller, and NaN falls into the first bin."""
    bins = LinearBins(5, 5)
    with pytest.raises(InvalidConfig, match="below"):
        bins.bin_of(-1e-300)
    assert bins.bin_of(math.nan) == 0


def test_an_empty_range_can_be_cut() -> None:
    """An empty range is accepted, as in Kafka: higher values are in the last bin, all others in the first."""
    constant = ConstantBins(3, 7, 7)
    assert [constant.bin_of(value) for value in (6, 7, 8)] == [0, 0, 2]
    linear = LinearBins(3, 0)
    assert [linear.bin_of(value) for value in (0, 1)] == [0, 2]


@pytest.mark.parametrize("count", [1, 0, -1])
def test_one_bin_reports_nothing(count: int) -> None:
    """Fewer than two bins are refused."""
    with pytest.raises(InvalidConfig, match="at least 2"):
        ConstantBins(count, 0, 1)
    with pytest.raises(InvalidConfig, match="at least 2"):
        LinearBins(count, 1)


@pytest.mark.parametrize("max_value", [-1.0, math.nan, sys.float_info.max, 5e-324])
def test_linear_bins_that_cannot_be_computed_are_refused(max_value: float) -> None:
    """Bins are refused at once, and not at every record as in Kafka."""
    with pytest.raises(InvalidConfig, match="cannot be cut"):
        LinearBins(10, max_value)


@given(value=REALS, count=st.integers(2, 300), width=st.floats(1e-3, 1e6))
def test_a_value_lies_in_its_bin(value: float, count: int, width: float) -> None:
    """A value is at or above its bin's edge and below the next one's, up to rounding."""
    for bins in (ConstantBins(count, 0.0, width), LinearBins(count, width)):
        pinned = min(max(value, 0.0), width)
        number = bins.bin_of(pinned)
        assert 0 <= number < count
        assert bins.edge(number) <= pinned * (1 + 1e-9) + 1e-12
        if number < count - 1:
            assert pinned <= bins.edge(number + 1) * (1 + 1e-9)


def test_the_base_class_knows_no_bins() -> None:
    """A subclass that forgets a method is refused."""
    with pytest.raises(NotImplementedError):
        BinScheme(2).bin_of(0.0)
    with pytest.raises(NotImplementedError):
        BinScheme(2).edge(0)


def recorded(*values: float) -> Percentiles:
    """A hundred bins from 0 to 100 with these values."""
    percentiles = make_percentiles()
    for value in values:
        percentiles.record(TEN_SECONDS, value, EPOCH_MS)
    return percentiles


@pytest.mark.parametrize(("make", "empty", "value"), [(make_percentiles, math.nan, 10.0), (make_frequencies, 0.0, 1.0)])
def test_a_metric_can_be_peeked_at(make: Callable[[], Percentiles | Frequencies], empty: float, value: float) -> None:
    """Looking has no effect: the obsolete window is still there afterwards."""
    stat = make()
    stat.record(TEN_SECONDS, value, EPOCH_MS)
    part = stat.stats()[0].measurable
    assert same(part.peek(TEN_SECONDS, EPOCH_MS + 10_000), empty)
    assert part.peek(TEN_SECONDS, EPOCH_MS) == value


def test_the_range_may_begin_anywhere() -> None:
    """The range of constant bins may begin below 0, that of linear bins begins at 0."""
    percentiles = Percentiles(400, 0.0, BucketSizing.CONSTANT, (), -100.0)
    percentiles.record(TEN_SECONDS, -300.0, EPOCH_MS)
    assert percentiles.measure(TEN_SECONDS, EPOCH_MS) == -100.0
    with pytest.raises(InvalidConfig, match="begin at 0"):
        Percentiles(400, 100.0, BucketSizing.LINEAR, (), 1.0)


@pytest.mark.parametrize(
    ("values", "share", "percentile"),
    [
        ((10.0,), 1.0, math.inf),
        ((10.0,), math.nan, math.inf),
        ((10.0,), 1e300, math.inf),
        ((10.0,), -0.1, 0.0),
        ((1.0, 2.0, 3.0), 1 / 3, 2.0),
        ((1.0, 2.0, 3.0), 1 / 3 - 1e-9, 2.0),
    ],
)
def test_shares_at_the_edges(values: tuple[float, ...], share: float, percentile: float) -> None:
    """
    A share beyond all events is at infinity, and a negative one at the first bin.

    Shares have 32 bits: a third of the events is not more than a third rounded to these, but more than one in 64 bits.
    """
    assert recorded(*values).value(TEN_SECONDS, EPOCH_MS, share) == percentile


@given(st.lists(st.integers(0, 99), min_size=1, max_size=60), st.integers(0, 99))
def test_agrees_with_sorting(values: list[int], percent: int) -> None:
    """With a bin for each value, a percentile is the value that a sorted list has there."""
    percentiles = recorded(*values)
    ordered = sorted(values)
    above = next(value for reached, value in enumerate(ordered, start=1) if 100 * reached > percent * len(values))
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


NAMES = [MetricName(f"f{value}", "g") for value in range(5)]
FOUR = [Frequency(NAMES[value], value) for value in (1, 2, 3, 4)]


def test_one_boolean_is_enough() -> None:
    """The frequency of one boolean is enough, since the other's follows; without both there is nothing to measure."""
    assert [part.name for part in Frequencies.for_boolean_values(None, NAMES[1]).stats()] == [NAMES[1]]
    with pytest.raises(InvalidConfig, match="at least one"):
        Frequencies.for_boolean_values(None, None)


@pytest.mark.parametrize(
    ("buckets", "low", "high", "message"),
    [
        (4, 4.0, 1.0, "no values"),
        (3, 1.0, 4.0, "do not fit"),
        (4, 2.0, 4.0, "1 is not from"),
        (4, 1.0, 3.0, "4 is not from"),
        (1, 1.0, 4.0, "at least 2"),
        (0, 1.0, 4.0, "at least 2"),
    ],
)
def test_refuses_what_cannot_be_measured(buckets: int, low: float, high: float, message: str) -> None:
    """A metric whose bucket does not exist would always read 0; all values would fall into a single one."""
    with pytest.raises(InvalidConfig, match=message):
        Frequencies(buckets, low, high, FOUR if buckets > 1 else [])


def test_all_values_may_be_one() -> None:
    """The least is the greatest: not refused, as in Kafka, which only refuses a maximum below the minimum."""
    Frequencies(2, 1.0, 1.0, [Frequency(NAMES[1], 1.0)])
