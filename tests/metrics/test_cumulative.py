"""Statistics that never forget."""

from hypothesis import given
from tests.metrics.contracts import TEN_SECONDS, StatContract, fed
from tests.strategies import EPOCH_MS, Event, traces

from quotascope.metrics import CumulativeCount, CumulativeSum, Value

A_YEAR_LATER = EPOCH_MS + 365 * 86_400_000


class TestCumulativeSum(StatContract):
    """The sum of all values."""

    make = CumulativeSum
    empty = 0.0

    @given(trace=traces())
    def test_forgets_nothing(self, trace: list[Event]) -> None:
        """Time takes nothing off the sum."""
        stat = fed(CumulativeSum(), TEN_SECONDS, trace)
        assert stat.measure(TEN_SECONDS, A_YEAR_LATER) == sum(
            event.value for event in trace
        )

    def test_starts_anywhere(self) -> None:
        """A sum can go on from an earlier one."""
        stat = CumulativeSum(10)
        stat.record(TEN_SECONDS, 5.0, EPOCH_MS)
        assert stat.measure(TEN_SECONDS, EPOCH_MS) == 15.0


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
        assert stat.measure(TEN_SECONDS, A_YEAR_LATER) == (
            trace[-1].value if trace else 0.0
        )
