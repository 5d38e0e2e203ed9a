"""The rate of the replication and tiered storage quotas."""

from tests.metrics.contracts import StatContract
from tests.strategies import EPOCH_MS

from quotascope.metrics import MetricConfig, SimpleRate

BROKER = MetricConfig(samples=11, time_window_ms=1_000)


class TestSimpleRate(StatContract):
    """A rate over the time since the oldest window began."""

    make = SimpleRate
    empty = 0.0

    def test_a_first_value_reads_as_one_window(self) -> None:
        """It is not spread over windows to come, as `Rate` does."""
        rate = SimpleRate()
        rate.record(BROKER, 500.0, EPOCH_MS)
        assert rate.measure(BROKER, EPOCH_MS) == 500.0
        assert rate.measure(BROKER, EPOCH_MS + 1_000) == 500.0
        assert rate.measure(BROKER, EPOCH_MS + 2_000) == 250.0
