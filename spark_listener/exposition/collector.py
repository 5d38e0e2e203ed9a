"""The books of jobs as a collector of prometheus-client."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from quotascope.metrics.catalog import Family, FamilyType, job_families

from ..job import JobSnapshot
from .series import series_of

Snapshots = Callable[[], Iterable[JobSnapshot]]
"""Gives the books of all jobs as they are now; is asked from any thread."""


class JobCollector(Collector):
    """
    Shows jobs in a registry: `REGISTRY.register(JobCollector(lambda: [job.snapshot()]))`.

    Args:
        snapshots: asked once for each scrape, so that all numbers of a page are of one moment.
        cluster: the Kafka cluster that the jobs use, as the exporter calls it: one more label of every series. None for none.

    """

    def __init__(self, snapshots: Snapshots, cluster: str | None = None) -> None:
        self._snapshots = snapshots
        self._cluster = cluster

    def describe(self) -> Iterator[Metric]:
        """The families without series."""
        for family in job_families():
            yield _empty(family, family.labels)

    def collect(self) -> Iterator[Metric]:
        """The families that have something to show."""
        jobs = tuple(self._snapshots())
        more = () if self._cluster is None else (self._cluster,)
        for family in job_families():
            series = series_of(family, jobs)
            if series:
                labels = (*family.labels, "cluster") if more else family.labels
                metric = _empty(family, labels)
                for values, value in series.items():
                    metric.add_metric((*values, *more), value)
                yield metric


def _empty(
    family: Family, labels: tuple[str, ...]
) -> CounterMetricFamily | GaugeMetricFamily:
    if family.type is FamilyType.COUNTER:
        return CounterMetricFamily(family.name, family.help, labels=labels)
    return GaugeMetricFamily(family.name, family.help, labels=labels)
