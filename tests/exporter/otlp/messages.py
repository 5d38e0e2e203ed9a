"""OTLP messages as tests read them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, NumberDataPoint
from tests.exporter.exposition.oracle import samples

from quotascope.exporter.snapshot import Snapshot

Key = tuple[str, tuple[tuple[str, str], ...]]
"""Name and labels, the empty ones left out."""


def metrics(requests: Iterable[ExportMetricsServiceRequest]) -> Iterator[Metric]:
    for request in requests:
        for resource in request.resource_metrics:
            for scope in resource.scope_metrics:
                yield from scope.metrics


def points(metric: Metric) -> Iterator[NumberDataPoint]:
    yield from (metric.sum if metric.HasField("sum") else metric.gauge).data_points


def attributes(point: NumberDataPoint) -> dict[str, str]:
    return {pair.key: pair.value.string_value for pair in point.attributes}


def translated(name: str, unit: str, *, counts: bool) -> str:
    """
    Return the name that Prometheus's translation with its default strategy gives (its otlptranslator 1.0).

    A real Collector runs that library over what it gets in test_collector.py.
    """
    main, _, per = (re.sub(r"\{\w*\}", "", part) for part in unit.partition("/"))
    tokens = re.findall(r"[A-Za-z0-9:]+", name)
    suffix = {"By": "bytes", "s": "seconds"}.get(main)
    if suffix and suffix not in tokens:
        tokens.append(suffix)
    if per:
        tokens.append({"s": "per_second"}[per])
    if counts:
        tokens = [token for token in tokens if token != "total"] + ["total"]
    elif unit == "1":
        tokens = [token for token in tokens if token != "ratio"] + ["ratio"]
    return "_".join(tokens)


def pushed(requests: Iterable[ExportMetricsServiceRequest]) -> dict[Key, float]:
    """Return the series of a push by their names in Prometheus; assert that there are no duplicates."""
    series: dict[Key, float] = {}
    for metric in metrics(requests):
        name = translated(metric.name, metric.unit, counts=metric.HasField("sum"))
        for point in points(metric):
            key = (name, tuple(sorted(attributes(point).items())))
            assert key not in series
            series[key] = point.as_double
    return series


def scraped(snapshot: Snapshot, now_seconds: float, cluster: str | None = None) -> dict[Key, float]:
    """Return the series of the same snapshot as Prometheus would keep them."""
    return {
        (name, tuple((label, text) for label, text in labels if text)): value
        for name, labels, value in samples(snapshot, now_seconds, cluster)
    }
