"""Our metrics as text; the counterpart of `java/Figures.java`."""

from collections.abc import Iterable

from tests.differential.wire import bits, quote

from quotascope.metrics import KafkaMetric, MetricName, QuotaViolation


def name(metric: MetricName) -> str:
    """Write group, name and tags in their order."""
    tags = [f"{quote(key)}={quote(value)}" for key, value in metric.tags.items()]
    return "/".join((quote(metric.group), quote(metric.name), *tags))


def everything(metrics: Iterable[KafkaMetric], now_ms: int) -> str:
    """Write every metric, its value now and its bound if it has one, sorted by name."""
    lines = [
        f"{name(metric.name)}:{bits(metric.value(now_ms))}:{_bound(metric)}"
        for metric in metrics
    ]
    return f"[{','.join(sorted(lines))}]"


def _bound(metric: KafkaMetric) -> str:
    quota = metric.config.quota
    return "-" if quota is None else bits(quota.bound)


def violation(error: QuotaViolation) -> str:
    """Write what was violated, by how much."""
    return (
        f"violation {name(error.metric_name)} {bits(error.value)} {bits(error.bound)}"
    )
