"""Our metrics as text; the counterpart of `java/Figures.java`."""

from collections.abc import Iterable

from tests.differential.comparison import Twin
from tests.differential.shapes import EPOCH_MS
from tests.differential.wire import bits, quote

from quotascope.metrics.engine.config import MetricConfig
from quotascope.metrics.engine.errors import QuotaViolation
from quotascope.metrics.engine.metric import KafkaMetric
from quotascope.metrics.engine.metric_name import MetricName
from quotascope.metrics.engine.registry import Registry
from quotascope.metrics.kafka.release import NEWEST_RELEASE, KafkaRelease


def name(metric: MetricName) -> str:
    tags = [f"{quote(key)}={quote(value)}" for key, value in metric.tags.items()]
    return "/".join((quote(metric.group), quote(metric.name), *tags))


def everything(metrics: Iterable[KafkaMetric], now_ms: int) -> str:
    """Write every metric, its value now and its bound if it has one, sorted by name."""
    lines = [f"{name(metric.name)}:{bits(metric.value(now_ms))}:{_bound(metric)}" for metric in metrics]
    return f"[{','.join(sorted(lines))}]"


def _bound(metric: KafkaMetric) -> str:
    quota = metric.config.quota
    return "-" if quota is None else bits(quota.bound)


def violation(error: QuotaViolation) -> str:
    return f"violation {name(error.metric_name)} {bits(error.value)} {bits(error.bound)}"


class NodeTwin(Twin):
    """Base of the twins of a node's parts: a clock, and a registry that is written and expires."""

    def __init__(self, release: KafkaRelease = NEWEST_RELEASE) -> None:
        super().__init__(EPOCH_MS)
        self._registry = Registry(MetricConfig(release=release))

    def _op_expire(self) -> None:
        self._registry.expire_sensors(self._now_ms)

    def _op_dump(self) -> str:
        """Write all sensors and all metrics, but for the number of metrics."""
        sensors = sorted(self._registry.sensors())
        metrics = [metric for metric in self._registry.metrics().values() if metric.name.group != "kafka-metrics-count"]
        return f"[{','.join(map(quote, sensors))}] {everything(metrics, self._now_ms)}"
