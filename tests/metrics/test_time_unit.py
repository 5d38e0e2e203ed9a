"""Milliseconds in other units."""

import pytest

from quotascope.metrics import TimeUnit
from quotascope.metrics.time_unit import convert


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
