"""How a range of values is cut into bins."""

import math
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotascope.metrics import BinScheme, ConstantBins, InvalidConfig, LinearBins

REALS = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e9, max_value=1e9)


def test_linear_bins_widen_evenly() -> None:
    """Each bin is as much wider than the one before as the first is wide."""
    bins = LinearBins(4, 60)
    assert [bins.edge(number) for number in range(4)] == [0, 10, 30, 60]
    assert [bins.bin_of(value) for value in (0, 9.9, 10, 29, 30, 59, 60)] == [
        *(0, 0, 1, 1, 2, 2, 3)
    ]


@pytest.mark.parametrize("bins", [ConstantBins(5, -5, 5), LinearBins(5, 5)])
def test_beyond_the_bins_lies_infinity(bins: BinScheme) -> None:
    """Asking for a bin that is not there is answered as Kafka answers it."""
    assert bins.edge(-1) == -math.inf
    assert bins.edge(5) == math.inf


@pytest.mark.parametrize("value", [-5.01, -math.inf, math.nan])
def test_what_is_too_small_falls_into_the_first_constant_bin(value: float) -> None:
    """So does what is no number."""
    assert ConstantBins(5, -5, 5).bin_of(value) == 0


@pytest.mark.parametrize("value", [5.0, 5.01, 1e300, math.inf])
@pytest.mark.parametrize("bins", [ConstantBins(5, -5, 5), LinearBins(5, 5)])
def test_what_is_too_large_falls_into_the_last_bin(
    bins: BinScheme, value: float
) -> None:
    """The range's own end as well."""
    assert bins.bin_of(value) == 4


def test_linear_bins_begin_at_zero() -> None:
    """A negative value is an error of the caller, no number falls into the first bin."""
    bins = LinearBins(5, 5)
    with pytest.raises(InvalidConfig, match="below"):
        bins.bin_of(-1e-300)
    assert bins.bin_of(math.nan) == 0


def test_an_empty_range_can_be_cut() -> None:
    """Kafka does not mind: what is above falls into the last bin, all else into the first."""
    constant = ConstantBins(3, 7, 7)
    assert [constant.bin_of(value) for value in (6, 7, 8)] == [0, 0, 2]
    linear = LinearBins(3, 0)
    assert [linear.bin_of(value) for value in (0, 1)] == [0, 2]


@pytest.mark.parametrize("count", [1, 0, -1])
def test_one_bin_tells_nothing(count: int) -> None:
    """There are at least two."""
    with pytest.raises(InvalidConfig, match="at least 2"):
        ConstantBins(count, 0, 1)
    with pytest.raises(InvalidConfig, match="at least 2"):
        LinearBins(count, 1)


@pytest.mark.parametrize("max_value", [-1.0, math.nan, sys.float_info.max, 5e-324])
def test_linear_bins_that_cannot_be_computed_are_refused(max_value: float) -> None:
    """Rather at once than at every record, as in Kafka."""
    with pytest.raises(InvalidConfig, match="cannot be cut"):
        LinearBins(10, max_value)


@given(value=REALS, count=st.integers(2, 300), width=st.floats(1e-3, 1e6))
def test_a_value_lies_in_its_bin(value: float, count: int, width: float) -> None:
    """It is not below the bin's edge, and below the next one's, up to rounding."""
    for bins in (ConstantBins(count, 0.0, width), LinearBins(count, width)):
        pinned = min(max(value, 0.0), width)
        number = bins.bin_of(pinned)
        assert 0 <= number < count
        assert bins.edge(number) <= pinned * (1 + 1e-9) + 1e-12
        if number < count - 1:
            assert pinned <= bins.edge(number + 1) * (1 + 1e-9)


def test_the_base_class_knows_no_bins() -> None:
    """A subclass that forgets a method is told so."""
    with pytest.raises(NotImplementedError):
        BinScheme(2).bin_of(0.0)
    with pytest.raises(NotImplementedError):
        BinScheme(2).edge(0)
