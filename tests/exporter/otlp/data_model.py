"""A snapshot in the data model of OpenTelemetry's SDK: the messages that its own encoder makes of it are those of a push, too."""

from __future__ import annotations

from collections.abc import Iterator

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

from quotascope.exporter.exposition.families import series_of
from quotascope.exporter.exposition.rows import Exposed, label_names
from quotascope.exporter.otlp.encoding import scope, unix_ns
from quotascope.exporter.snapshot import Snapshot
from quotascope.metrics.catalog import Family, FamilyType, families
from quotascope.metrics.catalog.otel_names import otel_name
from quotascope.metrics.catalog.units import ucum


def metrics_data(
    snapshot: Snapshot,
    now: float,
    resource: Resource,
    cluster: str | None,
    began_ns: int,
) -> MetricsData:
    """
    The first push of an exporter, everything in one request; a label that is empty is left out.

    Args:
        snapshot: The snapshot.
        now: Unix time in seconds that ages refer to.
        resource: Who sends.
        cluster: One more attribute of every point, as /metrics has it as a label.
        began_ns: When the exporter began to count, Unix time.

    """
    view = Exposed(snapshot, now)
    metrics = [
        _metric(family, points)
        for family in families()
        if (points := list(_points(family, view, cluster, began_ns)))
    ]
    scoped = ScopeMetrics(scope=scope(), metrics=metrics, schema_url="")
    whole = ResourceMetrics(
        resource=resource, scope_metrics=[scoped], schema_url=resource.schema_url
    )
    return MetricsData(resource_metrics=[whole])


def _metric(family: Family, points: list[NumberDataPoint]) -> Metric:
    data: Gauge | Sum = Gauge(data_points=points)
    if family.type is FamilyType.COUNTER:
        data = Sum(
            data_points=points,
            aggregation_temporality=AggregationTemporality.CUMULATIVE,
            is_monotonic=True,
        )
    return Metric(
        name=otel_name(family), description=family.help, unit=ucum(family), data=data
    )


def _points(
    family: Family, view: Exposed, cluster: str | None, began_ns: int
) -> Iterator[NumberDataPoint]:
    at_ns = unix_ns(view.snapshot.taken_at)
    start = began_ns if family.name.startswith("quotascope_") else at_ns
    names = label_names(family, view.snapshot)
    for labels, value in series_of(family, view):
        attributes = dict(zip(names, labels, strict=True))
        if cluster is not None:
            attributes["cluster"] = cluster
        yield NumberDataPoint(
            attributes={name: text for name, text in attributes.items() if text},
            start_time_unix_nano=start if family.type is FamilyType.COUNTER else 0,
            time_unix_nano=at_ns,
            value=float(value),
        )
