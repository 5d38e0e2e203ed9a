"""A reporter that overrides nothing."""

from tests.strategies import EPOCH_MS

from quotascope.metrics import CumulativeSum, MetricName, MetricsReporter, Registry


def test_need_not_listen_to_anything(caplog: object) -> None:
    """Every event is optional."""
    registry = Registry(reporters=[MetricsReporter()])
    registry.sensor("s", EPOCH_MS).add(MetricName("m", "g"), CumulativeSum())
    registry.remove_sensor("s")
    registry.close()
    assert getattr(caplog, "records", None) == []
