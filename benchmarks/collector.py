"""A snapshot for prometheus_client: what the exporter's own text is compared with."""

from collections.abc import Iterator
from math import isfinite

import numpy as np
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from quotascope.exporter.exposition.families import COLUMNS
from quotascope.exporter.exposition.rows import Exposed, Row, encodable, label_names
from quotascope.exporter.snapshot import Snapshot
from quotascope.metrics.catalog import Family, FamilyType, families


def exposition(snapshot: Snapshot, now: float) -> bytes:
    """Return the text as prometheus_client writes it; ages refer to ``now``, Unix time in seconds."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_SnapshotCollector(Exposed(snapshot, now)))
    return generate_latest(registry)


def series_of(family: Family, view: Exposed) -> Iterator[tuple[tuple[str, ...], float]]:
    """Yield the series of a family, one by one."""
    label_sets = set()
    for labels, value in _rows(family, view):
        valid = tuple(map(encodable, labels))
        if value is not None and isfinite(value) and valid not in label_sets:
            label_sets.add(valid)
            yield valid, value + 0.0  # -0 becomes 0


def _rows(family: Family, view: Exposed) -> Iterator[Row]:
    column, layout = COLUMNS.get(family), view.snapshot.columns.layout
    if column is None:
        yield from view.rows.get(family.name, ())
        return
    rows, values = column.rows(layout), column.values(view.snapshot)
    for row in (np.flatnonzero(np.isfinite(values[rows])) + rows.start).tolist():
        yield column.labels(layout.entities[row]), values.item(row)


class _SnapshotCollector(Collector):
    def __init__(self, view: Exposed) -> None:
        self._view = view

    def collect(self) -> Iterator[Metric]:
        for family in families():
            counts = family.type is FamilyType.COUNTER
            kind = CounterMetricFamily if counts else GaugeMetricFamily
            labels = label_names(family, self._view.snapshot)
            metric = kind(family.name, family.documentation, labels=labels)
            for values, value in series_of(family, self._view):
                metric.add_metric(values, value)
            if metric.samples:
                yield metric
