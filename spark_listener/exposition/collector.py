"""Snapshots of jobs as metric families: for prometheus-client, and as series for OTLP."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from quotascope.clients.accounting import ClientTotals
from quotascope.metrics import catalog
from quotascope.metrics.catalog import Family, FamilyType, job_families

from ..events import FailureCause
from ..job import CatchUp, JobSnapshot, QuerySnapshot

Snapshots = Callable[[], Iterable[JobSnapshot]]
"""Returns the present snapshots of all jobs; called from any thread."""
Series = tuple[tuple[str, ...], float]
"""The values of a family's labels, and the number."""
SeriesReader = Callable[[JobSnapshot], Iterable[Series]]


class JobCollector(Collector):
    """
    Collector of jobs for a registry: `REGISTRY.register(JobCollector(lambda: [job.snapshot()]))`.

    Args:
        snapshots: called once for each scrape, so that all numbers of a page are of one moment.
        cluster: the Kafka cluster that the jobs use, as the exporter calls it: one more label of every series. None for
            none.
        families: families that are shown; those of jobs unless given.
        series: the series of a family in what `snapshots` returns.

    """

    def __init__(
        self,
        snapshots: Callable[[], Iterable[Any]],
        cluster: str | None = None,
        families: Iterable[Family] | None = None,
        series: Callable[[Family, Any], Mapping[tuple[str, ...], float]] | None = None,
    ) -> None:
        self._snapshots = snapshots
        self._cluster = cluster
        self._families = tuple(job_families() if families is None else families)
        self._series = series or series_of

    def describe(self) -> Iterator[Metric]:
        """Yield the families without series."""
        for family in self._families:
            yield _empty(family, family.labels)

    def collect(self) -> Iterator[Metric]:
        """Yield the families that have series."""
        jobs = tuple(self._snapshots())
        cluster_values = () if self._cluster is None else (self._cluster,)
        for family in self._families:
            series = self._series(family, jobs)
            if series:
                labels = (*family.labels, "cluster") if cluster_values else family.labels
                metric = _empty(family, labels)
                for values, value in series.items():
                    metric.add_metric((*values, *cluster_values), value)
                yield metric


def _empty(family: Family, labels: tuple[str, ...]) -> CounterMetricFamily | GaugeMetricFamily:
    """Return a family without series, as prometheus-client has it."""
    if family.type is FamilyType.COUNTER:
        return CounterMetricFamily(family.name, family.help, labels=labels, unit=family.declared_unit)
    return GaugeMetricFamily(family.name, family.help, labels=labels, unit=family.declared_unit)


def series_of(family: Family, jobs: Iterable[JobSnapshot]) -> dict[tuple[str, ...], float]:
    """
    Return the series of a family. Text that UTF-8 cannot encode is escaped.

    Jobs with the same name share their series: counters are added, of gauges the highest is shown.
    """
    series: dict[tuple[str, ...], float] = {}
    adds = family.type is FamilyType.COUNTER
    for job in jobs:
        for labels, value in SERIES[family](job):
            key = tuple(label.encode(errors="backslashreplace").decode() for label in labels)
            of_other_jobs = series.get(key)
            if of_other_jobs is None:
                series[key] = value
            else:
                series[key] = of_other_jobs + value if adds else max(of_other_jobs, value)
    return series


def _by_client(number: Callable[[ClientTotals], float]) -> SeriesReader:
    """Return a reader of a number of each client, by query."""

    def read(job: JobSnapshot) -> Iterator[Series]:
        """Yield the series of a job."""
        for query, totals in job.throttles:
            client = totals.client
            labels = (job.app, query, client.side, client.user, client.client_id)
            yield labels, number(totals)

    return read


def _by_cause(counts: Callable[[JobSnapshot], Mapping[FailureCause, int]]) -> SeriesReader:
    """Return a reader of counts by cause, which are unknown without events of tasks."""
    return lambda job: [((job.app, cause.value), count) for cause, count in counts(job).items() if job.tasks_seen]


def _by_job(number: Callable[[JobSnapshot], float]) -> SeriesReader:
    """Return a reader of a number of the job."""
    return lambda job: [((job.app,), number(job))]


def _of_tasks(number: Callable[[JobSnapshot], float]) -> SeriesReader:
    """
    Return a reader of a number that events of tasks decide.

    If no source has such events, the number is unknown, and there is no series.
    """
    return lambda job: [((job.app,), number(job))] if job.tasks_seen else []


def _by_query(number: Callable[[QuerySnapshot], float | None]) -> SeriesReader:
    """Return a reader of a number of the running queries; a query that has ended has no series."""

    def read(job: JobSnapshot) -> Iterator[Series]:
        """Yield the series of a job."""
        for query in job.queries:
            value = number(query) if query.active else None
            if value is not None:
                yield (job.app, query.name), value

    return read


def _by_catch_up(number: Callable[[CatchUp], float]) -> SeriesReader:
    """Return a reader of a number of the running queries whose backlog is known."""
    return _by_query(lambda query: None if query.catch_up is None else number(query.catch_up))


def _unknown_attempts(job: JobSnapshot) -> Iterator[Series]:
    """Yield the number of attempts without a report, which is known only beside attempts that report."""
    if job.throttles and job.tasks_seen:
        yield (job.app,), job.unknown_attempts


SERIES: Final[Mapping[Family, SeriesReader]] = {
    catalog.SPARK_THROTTLED_SECONDS: _by_client(lambda totals: totals.throttled_ms / 1_000),
    catalog.SPARK_THROTTLED_RESPONSES: _by_client(lambda totals: totals.responses),
    catalog.SPARK_THROTTLE_MAX_SECONDS: _by_client(lambda totals: totals.recent_longest_ms / 1_000),
    catalog.SPARK_ADMIN_QUOTA_RETRIES: lambda job: [
        ((job.app, totals.client.user, totals.client.client_id), totals.quota_retries)
        for _, totals in job.throttles
        if totals.client.side == "admin"
    ],
    catalog.SPARK_UNKNOWN_ATTEMPTS: _unknown_attempts,
    catalog.SPARK_TASK_FAILURES: _by_cause(lambda job: job.failures),
    catalog.SPARK_TASK_RETRIES: _by_cause(lambda job: job.retries),
    catalog.SPARK_STAGE_RETRIES: _of_tasks(lambda job: job.stage_retries),
    catalog.SPARK_EXECUTORS_LOST: _of_tasks(lambda job: job.executors_lost),
    catalog.SPARK_QUERY_RESTARTS: lambda job: [((job.app, query.name), query.restarts) for query in job.queries],
    catalog.SPARK_QUERY_BATCH_DURATION_SECONDS: lambda job: [
        ((job.app, query.name, phase), seconds) for query in job.queries for phase, seconds in query.phases.items()
    ],
    catalog.SPARK_QUERY_PROGRESS_AGE_SECONDS: _by_query(lambda query: query.progress_age_seconds),
    catalog.SPARK_QUERY_TRIGGER_SECONDS: _by_query(lambda query: query.trigger_seconds),
    catalog.SPARK_QUERY_MAX_OFFSETS_BEHIND: _by_query(lambda query: query.max_offsets_behind),
    catalog.SPARK_QUERY_AVG_OFFSETS_BEHIND: _by_query(lambda query: query.avg_offsets_behind),
    catalog.SPARK_QUERY_BACKLOG_OFFSETS: _by_catch_up(lambda catch_up: catch_up.backlog),
    catalog.SPARK_QUERY_READ_OFFSETS_PER_SECOND: _by_catch_up(lambda catch_up: catch_up.read_per_second),
    catalog.SPARK_QUERY_CATCH_UP_SECONDS: _by_catch_up(lambda catch_up: catch_up.seconds),
    catalog.SPARK_LISTENER_EVENTS: _by_job(lambda job: job.events),
    catalog.SPARK_LISTENER_LOST_EVENTS: _by_job(lambda job: job.lost_events),
    catalog.SPARK_LISTENER_PROBLEMS: lambda job: [((job.app, part), count) for part, count in job.problems],
    catalog.SPARK_LISTENER_LAG_SECONDS: _by_job(lambda job: job.lag_seconds),
    catalog.SPARK_LISTENER_SOURCE_INFO: lambda job: [((job.app, source), 1) for source in job.sources],
}
"""Readers of every family of `job_families()`."""
