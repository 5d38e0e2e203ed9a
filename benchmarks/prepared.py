"""Both sides with their values ready, so that nothing but the writing is timed."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from quotascope.exporter.exposition import TEXT, SnapshotCollector
from quotascope.exporter.exposition.collector import READERS
from quotascope.exporter.exposition.column import Column
from quotascope.exporter.exposition.lines import line_starts
from quotascope.exporter.exposition.order import Order
from quotascope.exporter.exposition.per_entity import PerEntity
from quotascope.exporter.exposition.text import head
from quotascope.exporter.snapshot import EntityUsage, Snapshot
from quotascope.metrics.catalog import Family, FamilyType, families

Values = list[float | None]


class PreparedLines:
    """Our lines of all families of entities, of lists of numbers."""

    def __init__(self) -> None:
        self._order = Order()
        self._snapshot = Snapshot(taken_at=0.0)
        self._ready: dict[tuple[str, int], Values] = {}
        self._families = [
            (head(family, TEXT), self._columns(family, reader))
            for family in families()
            if isinstance(reader := READERS[family], PerEntity)
        ]

    def _columns(
        self, family: Family, reader: PerEntity
    ) -> list[partial[Sequence[bytes]]]:
        start = line_starts(family.name, family.labels, None)
        prepared = replace(reader, values=partial(self._values, family.name, reader))
        return [
            partial(Column(prepared, start).text, self._order.sections[kind])
            for kind in reader.types
        ]

    def _values(
        self,
        name: str,
        reader: PerEntity,
        usages: Sequence[EntityUsage],
        snapshot: Snapshot,
    ) -> Values:
        ready = self._ready.get((name, id(usages)))
        return reader.values(usages, snapshot) if ready is None else ready

    def prepare(self, snapshot: Snapshot) -> None:
        """Make lists of the numbers of a snapshot."""
        self._snapshot = snapshot
        self._order.take(snapshot.entities)
        news = [section.news for section in self._order.sections.values()]
        self._ready = {
            (family.name, id(usages)): reader.values(usages, snapshot)
            for family, reader in READERS.items()
            if isinstance(reader, PerEntity)
            for each in news
            for usages in (each.now, each.before)
        }

    def text(self) -> bytes:
        """Write them."""
        parts: list[bytes] = []
        for above, columns in self._families:
            lines = [column(self._snapshot) for column in columns]
            if any(map(any, lines)):
                parts += chain((above,), *lines, (b"\n",))
        return b"".join(parts)


class PreparedFamilies(Collector):
    """The same as families of prometheus_client, filled with samples."""

    def __init__(self) -> None:
        self._metrics: list[Metric] = []
        self._names = {
            family.name.removesuffix("_total")
            if family.type is FamilyType.COUNTER
            else family.name
            for family, reader in READERS.items()
            if isinstance(reader, PerEntity)
        }
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    def prepare(self, snapshot: Snapshot, now: float) -> None:
        """Fill the families from a snapshot."""
        collected = SnapshotCollector(snapshot, now).collect()
        self._metrics = [each for each in collected if each.name in self._names]

    def collect(self) -> Iterator[Metric]:
        """What was prepared."""
        return iter(self._metrics)

    def text(self) -> bytes:
        """Write them."""
        return generate_latest(self._registry)
