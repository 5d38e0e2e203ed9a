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
