"""Statistics over all time: they never forget and read 0 when nothing was recorded."""

from .config import MetricConfig
from .native import i64
from .stat import Stat


class CumulativeSum(Stat):
    """Sum of all values (Kafka: `CumulativeSum`)."""

    __slots__ = ("_total",)

    def __init__(self, start: float = 0.0) -> None:
        self._total: float = float(start)

    def record(self, config: MetricConfig, value: float, now_ms: i64) -> None:  # noqa: ARG002 - timeless
        """Add the value."""
        self._total += value

    def measure(self, config: MetricConfig, now_ms: i64) -> float:  # noqa: ARG002 - timeless
        """Return the sum."""
        return self._total


class CumulativeCount(CumulativeSum):
    """Number of all events, whatever their values (Kafka: `CumulativeCount`)."""

    __slots__ = ()

    def record(self, config: MetricConfig, value: float, now_ms: i64) -> None:  # noqa: ARG002 - only the event counts
        """Count the event."""
        self._total += 1.0


class Value(Stat):
    """The last value (Kafka: `Value`)."""

    __slots__ = ("_value",)

    def __init__(self) -> None:
        self._value: float = 0.0

    def record(self, config: MetricConfig, value: float, now_ms: i64) -> None:  # noqa: ARG002 - timeless
        """Keep the value."""
        self._value = float(value)

    def measure(self, config: MetricConfig, now_ms: i64) -> float:  # noqa: ARG002 - timeless
        """Return the value."""
        return self._value
