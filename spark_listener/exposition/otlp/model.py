"""The books of jobs in the data model of OpenTelemetry's SDK."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

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
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from quotascope.metrics.catalog import Family, FamilyType, job_families
from quotascope.metrics.catalog.otel_names import otel_name
from quotascope.metrics.catalog.units import ucum

from ...job import JobSnapshot
from ..series import series_of


def resource_of(app_id: str) -> Resource:
    """
    Who sends: one driver.

    `service.instance.id`, which Prometheus calls `instance`, is `spark.app.id`; what `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` say
    goes before ours.
    """
    ours = {"service.name": "quotascope-spark", "service.instance.id": app_id}
    return Resource.create(ours).merge(OTELResourceDetector().detect())


def metrics_data(
    jobs: Iterable[JobSnapshot],
    resource: Resource,
    times_ns: tuple[int, int],
    cluster: str | None,
) -> MetricsData:
    """
    Everything in one request.

    No instrument aggregates anything: all points are of one moment, and no limit of attribute sets folds some of them. A
    label that is empty is left out, which means the same to Prometheus.

    Args:
        jobs: their books.
        resource: who sends.
        times_ns: when the counts began, and when the numbers were read; Unix times.
        cluster: one more attribute of every point.

    """
    more = {} if cluster is None else {"cluster": cluster}
    known = tuple(jobs)
    metrics = [
        _metric(family, points)
        for family in job_families()
        if (points := list(_points(family, known, times_ns, more)))
    ]
    scope = InstrumentationScope("quotascope.spark_listener")
    scoped = ScopeMetrics(scope=scope, metrics=metrics, schema_url="")
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
    family: Family,
    jobs: tuple[JobSnapshot, ...],
    times_ns: tuple[int, int],
    more: Mapping[str, str],
) -> Iterator[NumberDataPoint]:
    began_ns, now_ns = times_ns
    start_ns = began_ns if family.type is FamilyType.COUNTER else 0
    for values, value in series_of(family, jobs).items():
        labels = dict(zip(family.labels, values, strict=True))
        yield NumberDataPoint(
            attributes={
                **{name: text for name, text in labels.items() if text},
                **more,
            },
            start_time_unix_nano=start_ns,
            time_unix_nano=now_ns,
            value=float(value),
        )
