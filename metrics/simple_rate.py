"""A rate over the time since the oldest window began."""

from .config import MetricConfig
from .native import i64
from .rate import Rate


class SimpleRate(Rate):
    """
    A per-second rate that does not spread early values over windows to come (Kafka: `SimpleRate`).

    The divisor is the time since the oldest window began, at least one window: a single early value V reads V per
    window during the whole first window. Kafka uses it for replication and tiered storage quotas.
    """

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__()

    def _divisor_ms(self, config: MetricConfig, elapsed_ms: i64) -> i64:
        return max(elapsed_ms, config.time_window_ms)
