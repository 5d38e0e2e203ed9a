"""Further statistics over all time, of which quotas need none."""

from ..config import MetricConfig
from ..cumulative import CumulativeSum
from ..native import i64
from ..stat import Stat


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
