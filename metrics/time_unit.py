"""The unit of time that a rate is per."""

from enum import Enum


class TimeUnit(Enum):
    """A unit and its name (Kafka: `java.util.concurrent.TimeUnit` with `MetricsUtils.convert`)."""

    NANOSECONDS = "nanosecond"
    MICROSECONDS = "microsecond"
    MILLISECONDS = "millisecond"
    SECONDS = "second"
    MINUTES = "minute"
    HOURS = "hour"
    DAYS = "day"


_MS_PER_UNIT = {
    TimeUnit.MILLISECONDS: 1.0,
    TimeUnit.SECONDS: 1000.0,
    TimeUnit.MINUTES: 60_000.0,
    TimeUnit.HOURS: 3_600_000.0,
    TimeUnit.DAYS: 86_400_000.0,
}


def convert(ms: int, unit: TimeUnit) -> float:
    """Return milliseconds in the unit, as a double in Kafka's order of operations."""
    if unit is TimeUnit.NANOSECONDS:
        return float(ms) * 1000.0 * 1000.0
    if unit is TimeUnit.MICROSECONDS:
        return float(ms) * 1000.0
    return float(ms) / _MS_PER_UNIT[unit]
