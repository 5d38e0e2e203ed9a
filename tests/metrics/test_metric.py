"""Reading a metric."""

import pytest
from tests.strategies import EPOCH_MS

from quotascope.metrics import (
    CumulativeSum,
    Gauge,
    KafkaMetric,
    Measurable,
    MetricConfig,
    MetricName,
    MetricsReporter,
    NotMeasurable,
    Quota,
    Registry,
)
from quotascope.metrics.locks import Lock

CONFIG = MetricConfig(samples=2, time_window_ms=1_000)
NAME = MetricName("n", "g")


def metric_of(provider: Measurable | Gauge) -> KafkaMetric:
    """Return a metric of its own."""
    return KafkaMetric(Lock(), NAME, provider, CONFIG)


def test_reads_its_statistic() -> None:
    """Value and read are the same number, measured with the config of the moment."""
    stat = CumulativeSum(3.0)
    metric = metric_of(stat)
    assert metric.measurable is stat
    assert metric.value(EPOCH_MS) == metric.read(EPOCH_MS) == metric.peek(EPOCH_MS) == 3.0


def test_a_gauge_is_any_object() -> None:
    """It can be read, but not as a number."""
    metric = metric_of(Gauge(lambda config, now_ms: (config.samples, now_ms)))
    assert metric.read(7) == (2, 7)
    for number in (metric.value, metric.peek):
        with pytest.raises(NotMeasurable) as caught:
            number(7)
        assert caught.value.metric_name is NAME


def test_a_gauge_has_no_violation() -> None:
    """Objects are not compared with bounds."""
    metric = metric_of(Gauge(lambda _config, _now_ms: "high"))
    metric.config = CONFIG.with_quota(Quota(2.0))
    assert metric.violation(EPOCH_MS) is None


def test_need_not_listen_to_anything(caplog: object) -> None:
    """Every event is optional."""
    registry = Registry(reporters=[MetricsReporter()])
    registry.sensor("s", EPOCH_MS).add(MetricName("m", "g"), CumulativeSum())
    registry.remove_sensor("s")
    registry.close()
    assert getattr(caplog, "records", None) == []
