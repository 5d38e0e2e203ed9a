"""A rate with its total."""

import pytest
from tests.strategies import EPOCH_MS

from quotascope.metrics import (
    InvalidConfig,
    Max,
    Meter,
    MetricConfig,
    MetricName,
    TimeUnit,
    WindowedCount,
)

CONFIG = MetricConfig()
RATE, TOTAL = MetricName("rate", "g"), MetricName("total", "g")


def measured(meter: Meter, now_ms: int) -> dict[str, float]:
    """Return the metrics in their order."""
    return {
        part.name.name: part.measurable.measure(CONFIG, now_ms)
        for part in meter.stats()
    }


def test_the_total_comes_before_the_rate() -> None:
    """Metrics are registered in this order."""
    assert list(measured(Meter(RATE, TOTAL), EPOCH_MS)) == ["total", "rate"]


def test_records_into_both() -> None:
    """The rate forgets, the total does not."""
    meter = Meter(RATE, TOTAL)
    meter.record(CONFIG, 60.0, EPOCH_MS)
    assert measured(meter, EPOCH_MS) == {"total": 60.0, "rate": 2.0}
    assert measured(meter, EPOCH_MS + 60_000) == {"total": 60.0, "rate": 0.0}


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
