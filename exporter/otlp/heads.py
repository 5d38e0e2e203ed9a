"""The beginnings of points, kept from push to push: length and attributes, everything but the numbers."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from ..exposition.series import encodable
from ..snapshot import Entity
from .columns import Column, EntityColumn
from .protobuf import delimited, varint

# Field numbers of opentelemetry/proto/metrics/v1/metrics.proto and common.proto.
_DATA_POINTS, _ATTRIBUTES, _KEY, _VALUE, _STRING_VALUE = 1, 7, 1, 2, 1
GAUGE_NUMBERS, SUM_NUMBERS = 18, 27
"""Bytes that follow: time and value; start, time and value."""


class Heads:
    """
    Makes and keeps them; nothing of what the last push did not need.

    Args:
        cluster: One more attribute of every point.

    """

    def __init__(self, cluster: str | None) -> None:
        self._cluster = cluster
        self._kept: dict[Hashable, dict[tuple[str, ...], bytes]] = {}
        self._kept_entities: dict[Hashable, dict[int, tuple[Entity, bytes]]] = {}
        self.turn()

    def turn(self) -> None:
        """Begin a push: what the last one did not ask for is forgotten."""
        self._old, self._kept = self._kept, {}
        self._old_entities, self._kept_entities = self._kept_entities, {}

    def of_series(self, column: Column) -> list[bytes]:
        """For each series of a column."""
        numbers = GAUGE_NUMBERS if column.starts_ns is None else SUM_NUMBERS
        key = (column.labels, numbers)
        old, kept = self._old.get(key, {}), self._kept.setdefault(key, {})
        heads = []
        for labels, _ in column.series:
            head = kept.get(labels) or old.get(labels)
            if head is None:
                head = self._head(column.labels, labels, numbers)
            kept[labels] = head
            heads.append(head)
        return heads

    def of_entities(self, column: EntityColumn) -> list[bytes]:
        """For each entity of a column."""
        names, labels = column.family.labels, column.reader.labels
        key = (names, labels)
        old = self._old_entities.get(key, {})
        kept = self._kept_entities.setdefault(key, {})
        heads = []
        for entity in column.entities:
            place = id(entity)
            known = kept.get(place)
            if known is None:
                known = old.get(place) or (entity, self._made(names, labels, entity))
                kept[place] = known
            heads.append(known[1])
        return heads

    def _made(
        self,
        names: Sequence[str],
        labels: Callable[[Entity], tuple[str, ...]],
        entity: Entity,
    ) -> bytes:
        values = tuple(map(encodable, labels(entity)))
        return self._head(names, values, GAUGE_NUMBERS)

    def _head(self, names: Sequence[str], values: Sequence[str], numbers: int) -> bytes:
        """A label that is empty is left out, which means the same to Prometheus."""
        pairs = [*zip(names, values, strict=True), ("cluster", self._cluster)]
        attributes = b"".join(_attribute(name, text) for name, text in pairs if text)
        length = varint(len(attributes) + numbers)
        return bytes((_DATA_POINTS << 3 | 2,)) + length + attributes


def _attribute(name: str, value: str) -> bytes:
    text = delimited(_STRING_VALUE, value.encode())
    pair = delimited(_KEY, name.encode()) + delimited(_VALUE, text)
    return delimited(_ATTRIBUTES, pair)
