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
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from tests.exporter.exposition.oracle import series_of

from quotascope.exporter.exposition import own_version
from quotascope.exporter.exposition.rows import label_names
from quotascope.exporter.otlp.encoding import unix_ns
from quotascope.exporter.snapshot import Snapshot
from quotascope.metrics.catalog import Family, FamilyType, families
from quotascope.metrics.catalog.otel_names import otel_name, ucum

SCOPE = InstrumentationScope("quotascope", own_version())


def metrics_data(snapshot: Snapshot, now: float, resource: Resource, cluster: str | None, began_ns: int) -> MetricsData:
    """
    The first push of an exporter, everything in one request; a label that is empty is left out.

    Args:
        snapshot: The snapshot.
        now: Unix time in seconds that ages refer to.
        resource: Who sends.
        cluster: One more attribute of every point, as /metrics has it as a label.
        began_ns: When the exporter began to count, Unix time.

    """
    series = [(name, dict(labels), value) for (name, labels), value in series_of(snapshot, now, cluster).items()]
    metrics = [
        _metric(family, points)
        for family in families()
        if (points := list(_points(family, series, snapshot, began_ns)))
    ]
    scoped = ScopeMetrics(scope=SCOPE, metrics=metrics, schema_url="")
    whole = ResourceMetrics(resource=resource, scope_metrics=[scoped], schema_url=resource.schema_url)
    return MetricsData(resource_metrics=[whole])


def _metric(family: Family, points: list[NumberDataPoint]) -> Metric:
    data: Gauge | Sum = Gauge(data_points=points)
    if family.type is FamilyType.COUNTER:
        data = Sum(data_points=points, aggregation_temporality=AggregationTemporality.CUMULATIVE, is_monotonic=True)
    return Metric(name=otel_name(family), description=family.help, unit=ucum(family), data=data)


def _points(
    family: Family, series: list[tuple[str, dict[str, str], float]], snapshot: Snapshot, began_ns: int
) -> Iterator[NumberDataPoint]:
    at_ns = unix_ns(snapshot.taken_at)
    start = began_ns if family.name.startswith("quotascope_") else at_ns
    names = *label_names(family, snapshot), "cluster"
    for name, labels, value in series:
        if name == family.name:
            yield NumberDataPoint(
                attributes={each: labels[each] for each in names if labels.get(each)},
                start_time_unix_nano=start if family.type is FamilyType.COUNTER else 0,
                time_unix_nano=at_ns,
                value=value,
            )
