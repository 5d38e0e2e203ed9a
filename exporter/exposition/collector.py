"""A snapshot as a collector of prometheus_client."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from quotascope.metrics.catalog import Family, FamilyType, families

from ..snapshot import Snapshot
from . import callback, limits, neighbours, nodes, own, peaks, push, usage
from .series import Reader, Series, View, encodable, known, label_names

READERS: Final[dict[Family, Reader]] = {
    **usage.READERS,
    **limits.READERS,
    **callback.READERS,
    **nodes.READERS,
    **peaks.READERS,
    **neighbours.READERS,
    **own.READERS,
    **push.READERS,
}


class SnapshotCollector(Collector):
    """
    Gives the families of the catalogue, filled from one snapshot, in the catalogue's order.

    Families without series are left out. ``cluster`` becomes one more label of every
    series; ``now`` is the Unix time in seconds that ages refer to.
    """

    def __init__(
        self, snapshot: Snapshot, now: float, cluster: str | None = None
    ) -> None:
        self._view = View(snapshot, now)
        self._cluster = None if cluster is None else encodable(cluster)

    def collect(self) -> Iterator[Metric]:
        """The families that have something to show."""
        for family in families():
            series = list(known(READERS[family], self._view))
            if series:
                yield self._metric(family, series)

    def _metric(self, family: Family, series: Iterable[Series]) -> Metric:
        more = () if self._cluster is None else (self._cluster,)
        labels = label_names(family, self._view.snapshot)
        if self._cluster is not None:
            labels = (*labels, "cluster")
        metric = empty_metric(family, labels)
        for values, value in series:
            metric.add_metric([*values, *more], value)
        return metric


def empty_metric(
    family: Family, labels: tuple[str, ...]
) -> GaugeMetricFamily | CounterMetricFamily:
    """A family without series."""
    if family.type is FamilyType.COUNTER:
        return CounterMetricFamily(family.name, family.help, labels=labels)
    return GaugeMetricFamily(family.name, family.help, labels=labels)
