"""A snapshot as a collector of prometheus_client."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from quotascope.metrics.catalog import Family, FamilyType, families

from ..snapshot import Snapshot
from . import limits, neighbours, nodes, own, usage
from .series import Reader, Series, View, known

READERS: Final[dict[Family, Reader]] = {
    **usage.READERS,
    **limits.READERS,
    **nodes.READERS,
    **neighbours.READERS,
    **own.READERS,
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
        self._cluster = cluster

    def collect(self) -> Iterator[Metric]:
        """The families that have something to show."""
        for family in families():
            series = list(known(READERS[family], self._view))
            if series:
                yield self._metric(family, series)

    def _metric(self, family: Family, series: Iterable[Series]) -> Metric:
        more = () if self._cluster is None else (self._cluster,)
        labels = family.labels if self._cluster is None else (*family.labels, "cluster")
        metric = _empty(family, labels)
        for values, value in series:
            metric.add_metric([*values, *more], value)
        return metric


def _empty(
    family: Family, labels: tuple[str, ...]
) -> GaugeMetricFamily | CounterMetricFamily:
    if family.type is FamilyType.COUNTER:
        return CounterMetricFamily(family.name, family.help, labels=labels)
    return GaugeMetricFamily(family.name, family.help, labels=labels)
