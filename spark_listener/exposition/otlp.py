"""Pushes snapshots of jobs over OTLP, by the exporters of OpenTelemetry's SDK. Needs the extra `spark-otlp`."""

from __future__ import annotations

import contextlib
import logging
import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit, urlunsplit

import requests
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Metric,
    MetricExporter,
    MetricExportResult,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from quotascope.metrics.catalog import Family, FamilyType, job_families
from quotascope.metrics.catalog.otel_names import otel_name, ucum

from ..errors import InvalidProperty
from ..settings import PROTOCOLS, ListenerSettings
from .collector import series_of
from .repeating import Repeating

_LOG = logging.getLogger(__name__)
FLUSH_SECONDS = 5.0
"""Longest wait for the last push at the end of a job."""
TIMEOUT_SECONDS = 10.0
"""Timeout of one push with all its attempts."""
Series: TypeAlias = Callable[[Family, Any], Mapping[tuple[str, ...], float]]
LOGGERS: Final = (
    "opentelemetry.exporter.otlp.proto.http.metric_exporter",
    "opentelemetry.exporter.otlp.proto.grpc.exporter",
)
_INTERVAL: Final = "OTEL_METRIC_EXPORT_INTERVAL"


class JobPush:
    """
    Thread that pushes at once, after every interval, and a last time when it is closed.

    A receiver that is down costs one line in the log, and one when it is back.

    Args:
        settings: settings; one that is not set comes from OpenTelemetry's environment variables.
        snapshots: called once for each push.
        app_id: `spark.app.id`.
        families: families that are pushed; those of jobs unless given.
        series: the series of a family in what `snapshots` returns.

    Raises:
        InvalidProperty: an environment variable cannot be used.

    """

    def __init__(
        self,
        settings: ListenerSettings,
        snapshots: Callable[[], Iterable[Any]],
        *,
        app_id: str,
        families: Iterable[Family] | None = None,
        series: Series = series_of,
    ) -> None:
        self._families = tuple(job_families() if families is None else families)
        self._series = series
        self._place = _place(settings.otlp_endpoint)
        self._snapshots = snapshots
        self._resource = _resource(app_id)
        self._cluster = settings.cluster
        self._began_ns = time.time_ns()
        self._failing = False
        self._reason = ""
        self._exporter = self._open(settings)
        self._repeating = Repeating(self._push, _interval(settings), "quotascope-otlp", self._push)

    def close(self) -> None:
        """Push the last numbers; give up after five seconds."""
        if not self._repeating.close(FLUSH_SECONDS):
            _LOG.warning("the last metrics did not reach %s in time", self._place)
        with _quiet():
            self._exporter.shutdown()

    def _push(self) -> None:
        """Push the present numbers, and write a line to the log if pushes begin to fail or to succeed."""
        times = (self._began_ns, time.time_ns())
        data = metrics_data(self._snapshots(), self._resource, times, self._cluster, self._families, self._series)
        self._reason = ""
        with _quiet() as codes:
            result = self._exporter.export(data)
        failed = result is not MetricExportResult.SUCCESS
        if failed and not self._failing:
            reason = self._reason or (codes[-1] if codes else "no answer")
            _LOG.warning("metrics cannot be pushed to %s: %s", self._place, reason)
        elif self._failing and not failed:
            _LOG.info("metrics are pushed to %s again", self._place)
        self._failing = failed

    def _note_failure(self, reason: str) -> None:
        """Keep the reason why a request of the present push failed."""
        self._reason = reason

    def _open(self, settings: ListenerSettings) -> MetricExporter:
        """Return the exporter for the protocol of the settings."""
        headers, endpoint = settings.otlp_secret_headers, settings.otlp_endpoint
        if _protocol(settings) == "grpc":
            from opentelemetry.exporter.otlp.proto.grpc import (  # noqa: PLC0415 - one of two
                metric_exporter as grpc,
            )

            return grpc.OTLPMetricExporter(
                endpoint=endpoint, headers=None if headers is None else tuple(headers.items()), timeout=TIMEOUT_SECONDS
            )
        from opentelemetry.exporter.otlp.proto.http import (  # noqa: PLC0415 - one of two
            metric_exporter as http,
        )

        return http.OTLPMetricExporter(
            endpoint=None if endpoint is None else _with_path(endpoint),
            headers=None if headers is None else dict(headers),
            timeout=TIMEOUT_SECONDS,
            session=_QuietSession(self._note_failure),
        )


def _protocol(settings: ListenerSettings) -> str:
    """Return the protocol of the settings, else of the environment. Raises `InvalidProperty`."""
    for name in ("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        protocol = settings.otlp_protocol or os.environ.get(name)
        if protocol in PROTOCOLS:
            return protocol
        if protocol:
            raise InvalidProperty(name, f"expected {' or '.join(PROTOCOLS)}, got {protocol!r}")
    return PROTOCOLS[0]


def _interval(settings: ListenerSettings) -> float:
    """Return the seconds between pushes, by the settings or the environment. Raises `InvalidProperty`."""
    if settings.otlp_interval_seconds is not None:
        return settings.otlp_interval_seconds
    text = os.environ.get(_INTERVAL) or "60000"
    try:
        seconds = float(text) / 1_000
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise InvalidProperty(_INTERVAL, f"expected a time above 0, got {text!r}")
    return seconds


def _with_path(endpoint: str) -> str:
    """Return the URL; one without a path is completed as OpenTelemetry's specification requires."""
    parts = urlsplit(endpoint)
    path = parts.path if parts.path.strip("/") else "/v1/metrics"
    return urlunsplit(parts._replace(path=path))


def _place(endpoint: str | None) -> str:
    """Return the endpoint for messages: without a query, which can hold a key."""
    if endpoint is None:
        return "the endpoint of OTEL_EXPORTER_OTLP_ENDPOINT"
    return urlunsplit(urlsplit(endpoint)._replace(query="", fragment=""))


def _resource(app_id: str) -> Resource:
    """
    Return the resource that sends: one driver.

    `service.instance.id`, which Prometheus calls `instance`, is `spark.app.id`; `OTEL_SERVICE_NAME` and
    `OTEL_RESOURCE_ATTRIBUTES` take precedence.
    """
    ours = {"service.name": "quotascope-spark", "service.instance.id": app_id}
    return Resource.create(ours).merge(OTELResourceDetector().detect())


def metrics_data(
    jobs: Iterable[Any],
    resource: Resource,
    times_ns: tuple[int, int],
    cluster: str | None,
    families: Iterable[Family] | None = None,
    series: Series = series_of,
) -> MetricsData:
    """
    Return all families as one request.

    No instrument aggregates anything: all points are of one moment, and no limit of attribute sets merges some of them.
    An empty label is left out, which means the same to Prometheus.

    Args:
        jobs: their snapshots.
        resource: the sender.
        times_ns: when the counts began, and when the numbers were read; Unix times.
        cluster: one more attribute of every point.
        families: families that are pushed; those of jobs unless given.
        series: the series of a family in the snapshots.

    """
    cluster_labels = {} if cluster is None else {"cluster": cluster}
    snapshots = tuple(jobs)
    metrics = [
        _metric(family, points)
        for family in (job_families() if families is None else families)
        if (points := list(_points(family, series(family, snapshots), times_ns, cluster_labels)))
    ]
    scope = InstrumentationScope("quotascope.spark_listener")
    scoped = ScopeMetrics(scope=scope, metrics=metrics, schema_url="")
    whole = ResourceMetrics(resource=resource, scope_metrics=[scoped], schema_url=resource.schema_url)
    return MetricsData(resource_metrics=[whole])


def _metric(family: Family, points: list[NumberDataPoint]) -> Metric:
    """Return a family with its points as a metric of OpenTelemetry."""
    data: Gauge | Sum = Gauge(data_points=points)
    if family.type is FamilyType.COUNTER:
        data = Sum(data_points=points, aggregation_temporality=AggregationTemporality.CUMULATIVE, is_monotonic=True)
    return Metric(name=otel_name(family), description=family.help, unit=ucum(family), data=data)


def _points(
    family: Family, series: Mapping[tuple[str, ...], float], times_ns: tuple[int, int], extra_labels: Mapping[str, str]
) -> Iterator[NumberDataPoint]:
    """Yield the points of a family; only counters have the time at which they began."""
    began_ns, now_ns = times_ns
    start_ns = began_ns if family.type is FamilyType.COUNTER else 0
    for values, value in series.items():
        labels = zip(family.labels, values, strict=True)
        yield NumberDataPoint(
            attributes={**{name: text for name, text in labels if text}, **extra_labels},
            start_time_unix_nano=start_ns,
            time_unix_nano=now_ns,
            value=float(value),
        )


class _QuietSession(requests.Session):
    """
    Session that reports how a request failed, without the words of a server or of the library.

    That can hold the whole URL.
    """

    def __init__(self, report: Callable[[str], None]) -> None:
        super().__init__()
        self._report = report
        self.auth = lambda request: request  # without it, a .netrc file would replace our headers

    def request(self, *args: Any, **kwargs: Any) -> requests.Response:  # noqa: ANN401 - as requests declares it
        """Send a request as `requests.Session` does, and report a failure."""
        try:
            response = super().request(*args, **kwargs)
        except Exception as error:
            self._report(type(error).__name__)
            raise
        if not response.ok:
            self._report(f"HTTP {response.status_code}")
        return response


@contextlib.contextmanager
def _quiet() -> Iterator[list[str]]:
    """
    Keep what the SDK's exporters log in this thread out of the job's log: it quotes URLs, and repeats with every push.

    Yields the names of gRPC's status codes in it. Other threads of the job may use the same exporters: their records
    pass.
    """
    keeper = _ThreadFilter(threading.get_ident())
    loggers = [logging.getLogger(name) for name in LOGGERS]
    for logger in loggers:
        # before the exporters' own filters, one of which remembers what it has seen
        logger.filters.insert(0, keeper)
    try:
        yield keeper.codes
    finally:
        for logger in loggers:
            logger.removeFilter(keeper)


class _ThreadFilter(logging.Filter):
    """Filter that holds back the records of one thread, and keeps the status codes in them."""

    def __init__(self, thread: int) -> None:
        super().__init__()
        self._thread = thread
        self.codes: list[str] = []

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the record may pass."""
        if record.thread != self._thread:
            return True
        for value in record.args if isinstance(record.args, tuple) else ():
            code = getattr(value, "name", None)
            if isinstance(code, str):
                self.codes.append(code)
        return False
