"""A snapshot in the data model of OpenTelemetry's SDK: what its own encoder makes of it, ours must make, too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource

from quotascope.exporter.otlp.columns import Column
from quotascope.exporter.otlp.identity import scope
from quotascope.metrics.catalog.otel_names import otel_name
from quotascope.metrics.catalog.units import ucum


def metrics_data(
    columns: Iterable[Column], at_ns: int, resource: Resource, cluster: str | None
) -> MetricsData:
    """
    Everything in one request; a label that is empty is left out.

    Args:
        columns: The families.
        at_ns: When the snapshot was taken, Unix time.
        resource: Who sends.
        cluster: One more attribute of every point, as /metrics has it as a label.

    """
    metrics = [_metric(column, at_ns, cluster) for column in columns]
    scoped = ScopeMetrics(scope=scope(), metrics=metrics, schema_url="")
    whole = ResourceMetrics(
        resource=resource, scope_metrics=[scoped], schema_url=resource.schema_url
    )
    return MetricsData(resource_metrics=[whole])


def _metric(column: Column, at_ns: int, cluster: str | None) -> Metric:
    family = column.family
    points = list(_points(column, at_ns, cluster))
    data: Gauge | Sum = Gauge(data_points=points)
    if column.starts_ns is not None:
        data = Sum(
            data_points=points,
            aggregation_temporality=AggregationTemporality.CUMULATIVE,
            is_monotonic=True,
        )
    return Metric(
        name=otel_name(family), description=family.help, unit=ucum(family), data=data
    )


def _points(
    column: Column, at_ns: int, cluster: str | None
) -> Iterator[NumberDataPoint]:
    starts = column.starts_ns or [0] * len(column.series)
    for (values, value), start in zip(column.series, starts, strict=True):
        attributes = dict(zip(column.labels, values, strict=True))
        if cluster is not None:
            attributes["cluster"] = cluster
        yield NumberDataPoint(
            attributes={name: text for name, text in attributes.items() if text},
            start_time_unix_nano=start,
            time_unix_nano=at_ns,
            value=float(value),
        )
