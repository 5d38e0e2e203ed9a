"""What a family exposes: label values with a number, ready for any format."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from quotascope.metrics import QuotaType
from quotascope.metrics.catalog import Family

from ..snapshot import Entity, EntityUsage, NodeUsage, Snapshot
from ..snapshot.layout import node_order

Series = tuple[tuple[str, ...], float]
"""Label values in the family's order, and the value."""
Row = tuple[tuple[str, ...], float | None]
"""The same with None for a value that is unknown."""
Reader = Callable[["View"], Iterable[Row]]
"""Gives the series of one family."""


class View:
    """
    A snapshot in the order in which it is exposed, and the time at which it is.

    Args:
        snapshot: What is exposed.
        now: Unix time in seconds.
        by_type: The entities of each quota type in order, when they have been sorted already.

    """

    def __init__(
        self,
        snapshot: Snapshot,
        now: float,
        by_type: Mapping[QuotaType, Sequence[EntityUsage]] | None = None,
    ) -> None:
        self.snapshot = snapshot
        self.now = now
        self._by_type = by_type

    @cached_property
    def nodes(self) -> list[NodeUsage]:
        """The nodes by their id, 2 before 10."""
        return sorted(self.snapshot.nodes, key=lambda node: node_order(node.broker))

    @cached_property
    def by_type(self) -> Mapping[QuotaType, Sequence[EntityUsage]]:
        """The entities of each quota type by user, client id and node."""
        if self._by_type is not None:
            return self._by_type
        groups: dict[QuotaType, list[EntityUsage]] = {kind: [] for kind in QuotaType}
        for usage in sorted(self.snapshot.entities, key=_usage_order):
            groups[usage.entity.quota_type].append(usage)
        return groups


def known(reader: Reader, view: View) -> Iterator[Series]:
    """The series of a family, each once: neither unknown nor infinite nor -0, labels in valid Unicode."""
    seen = set()
    for labels, value in reader(view):
        if value is None or not math.isfinite(value):
            continue
        valid = tuple(map(encodable, labels))
        if valid not in seen:
            seen.add(valid)
            yield valid, value + 0.0  # -0 becomes 0


def label_names(family: Family, snapshot: Snapshot) -> tuple[str, ...]:
    """The labels of a family's series: those of the catalogue, then the tags of a custom quota callback where these belong to it."""
    if family.open_labels:
        return (*family.labels, *snapshot.callbacks.labels)
    return family.labels


def entity_order(entity: Entity) -> tuple[str, str, tuple[int, str]]:
    """Sorts entities of one quota type by user, client id and node."""
    return entity.user, entity.client_id, node_order(entity.broker)


def _usage_order(usage: EntityUsage) -> tuple[str, str, tuple[int, str]]:
    return entity_order(usage.entity)


def encodable(text: str) -> str:
    """The text with halves of surrogate pairs, which JSON may hold but UTF-8 may not, spelled out."""
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()
