"""OTLP messages as tests read them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, NumberDataPoint
from prometheus_client import CollectorRegistry

from quotascope.exporter.exposition import SnapshotCollector
from quotascope.exporter.snapshot import Snapshot

Key = tuple[str, tuple[tuple[str, str], ...]]
"""Name and labels, the empty ones left out."""


def metrics(requests: Iterable[ExportMetricsServiceRequest]) -> Iterator[Metric]:
    """All metrics in order."""
    for request in requests:
        for resource in request.resource_metrics:
            for scope in resource.scope_metrics:
                yield from scope.metrics


def points(metric: Metric) -> Iterator[NumberDataPoint]:
    """The points of a metric."""
    yield from (metric.sum if metric.HasField("sum") else metric.gauge).data_points


def attributes(point: NumberDataPoint) -> dict[str, str]:
    """The attributes of a point."""
    return {pair.key: pair.value.string_value for pair in point.attributes}


def pushed(requests: Iterable[ExportMetricsServiceRequest]) -> dict[Key, float]:
    """The series of a push; an assertion that there is none twice."""
    found: dict[Key, float] = {}
    for metric in metrics(requests):
        for point in points(metric):
            key = (metric.name, tuple(sorted(attributes(point).items())))
            assert key not in found
            found[key] = point.as_double
    return found


def scraped(
    snapshot: Snapshot, now: float, cluster: str | None = None
) -> dict[Key, float]:
    """The series of the same snapshot as Prometheus would keep them."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(SnapshotCollector(snapshot, now, cluster))
    return {
        (
            sample.name,
            tuple(sorted((name, text) for name, text in sample.labels.items() if text)),
        ): sample.value
        for metric in registry.collect()
        for sample in metric.samples
    }
