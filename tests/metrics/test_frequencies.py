"""Shares of recent values."""

import pytest
from tests.metrics.contracts import TEN_SECONDS, StatContract
from tests.strategies import EPOCH_MS

from quotascope.metrics import Frequencies, Frequency, InvalidConfig, MetricName

NAMES = [MetricName(f"f{value}", "g") for value in range(5)]
FOUR = [Frequency(NAMES[value], value) for value in (1, 2, 3, 4)]


def make() -> Frequencies:
    """Return the shares of 1 to 4."""
    return Frequencies(4, 1.0, 4.0, FOUR)


def read(frequencies: Frequencies, now_ms: int) -> dict[str, float]:
    """Return the metrics in their order."""
    return {
        each.name.name: each.measurable.measure(TEN_SECONDS, now_ms)
        for each in frequencies.stats()
    }


class TestFrequencies(StatContract):
    """The number of events."""

    make = make
    empty = 0.0

    def test_shares_add_up(self) -> None:
        """Each value counts for the nearest center."""
        frequencies = make()
        for value in (1.0, 1.2, 2.4, 3.9):
            frequencies.record(TEN_SECONDS, value, EPOCH_MS)
        shares = {"f1": 0.5, "f2": 0.25, "f3": 0.0, "f4": 0.25}
        assert read(frequencies, EPOCH_MS) == shares
        assert frequencies.measure(TEN_SECONDS, EPOCH_MS) == 4.0

    def test_are_zero_without_events(self) -> None:
        """Not NaN: a share of nothing is nothing, also after all was forgotten."""
        frequencies = make()
        assert set(read(frequencies, EPOCH_MS).values()) == {0.0}
        frequencies.record(TEN_SECONDS, 1.0, EPOCH_MS)
        assert set(read(frequencies, EPOCH_MS + 10_000).values()) == {0.0}

    def test_a_share_can_be_peeked_at(self) -> None:
        """Looking has no effect: the obsolete window is still there afterwards."""
        frequencies = make()
        frequencies.record(TEN_SECONDS, 1.0, EPOCH_MS)
        share = frequencies.stats()[0].measurable
        assert share.peek(TEN_SECONDS, EPOCH_MS + 10_000) == 0.0
        assert share.peek(TEN_SECONDS, EPOCH_MS) == 1.0

    def test_values_beyond_count_as_the_nearest_end(self) -> None:
        """Nothing is lost."""
        frequencies = make()
        for value in (-1e9, 1e9):
            frequencies.record(TEN_SECONDS, value, EPOCH_MS)
        assert read(frequencies, EPOCH_MS) == {"f1": 0.5, "f2": 0, "f3": 0, "f4": 0.5}

    def test_sums_windows(self) -> None:
        """The share is over all windows together."""
        frequencies = make()
        for second, value in enumerate((1.0, 1.0, 4.0)):
            frequencies.record(TEN_SECONDS, value, EPOCH_MS + second * 1_000)
        assert read(frequencies, EPOCH_MS + 2_000)["f1"] == 2 / 3


def test_one_boolean_is_enough() -> None:
    """The other's share follows from it; without both there is nothing to measure."""
    frequencies = Frequencies.for_boolean_values(None, NAMES[1])
    assert list(read(frequencies, EPOCH_MS)) == ["f1"]
    with pytest.raises(InvalidConfig, match="at least one"):
        Frequencies.for_boolean_values(None, None)


@pytest.mark.parametrize(
    ("buckets", "low", "high", "message"),
    [
        (4, 4.0, 1.0, "no values"),
        (3, 1.0, 4.0, "do not fit"),
        (4, 2.0, 4.0, "1 is not from"),
        (4, 1.0, 3.0, "4 is not from"),
    ],
)
def test_refuses_what_cannot_be_measured(
    buckets: int, low: float, high: float, message: str
) -> None:
    """A metric whose bucket does not exist would always read 0."""
    with pytest.raises(InvalidConfig, match=message):
        Frequencies(buckets, low, high, FOUR)


@pytest.mark.parametrize("buckets", [1, 0])
def test_one_bucket_tells_nothing(buckets: int) -> None:
    """All values would fall into it."""
    with pytest.raises(InvalidConfig, match="at least 2"):
        Frequencies(buckets, 1.0, 4.0, [])


def test_all_values_may_be_one() -> None:
    """The least is the greatest: not refused, as in Kafka, which only refuses a maximum below the minimum."""
    Frequencies(2, 1.0, 1.0, [Frequency(NAMES[1], 1.0)])
