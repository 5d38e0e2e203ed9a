"""What a family exposes: label values with a number, ready for any format."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

from quotascope.metrics import QuotaType

from ..snapshot import EntityUsage, NodeUsage, Snapshot

Series = tuple[tuple[str, ...], float]
"""Label values in the family's order, and the value."""
Reader = Callable[["View"], Iterable[tuple[tuple[str, ...], float | None]]]
"""Gives the series of one family; None for what is unknown."""


class View:
    """A snapshot in the order in which it is exposed, and the time at which it is."""

    def __init__(self, snapshot: Snapshot, now: float) -> None:
        self.snapshot = snapshot
        self.now = now
        """Unix time in seconds."""

    @cached_property
    def nodes(self) -> list[NodeUsage]:
        """The nodes by their id, 2 before 10."""
        return sorted(self.snapshot.nodes, key=lambda node: node_order(node.broker))

    @cached_property
    def entities(self) -> list[EntityUsage]:
        """The entities by quota type, user, client id and node."""
        return sorted(self.snapshot.entities, key=_entity_order)

    @cached_property
    def by_type(self) -> dict[QuotaType, list[EntityUsage]]:
        """The entities of each quota type."""
        groups: dict[QuotaType, list[EntityUsage]] = {kind: [] for kind in QuotaType}
        for usage in self.entities:
            groups[usage.entity.quota_type].append(usage)
        return groups


def known(reader: Reader, view: View) -> Iterator[Series]:
    """The series of a family, each once: neither unknown nor infinite, labels in valid Unicode."""
    seen = set()
    for labels, value in reader(view):
        if value is None or not math.isfinite(value):
            continue
        valid = tuple(map(_encodable, labels))
        if valid not in seen:
            seen.add(valid)
            yield valid, value


def node_order(node_id: str) -> tuple[int, str]:
    """Sorts node ids as numbers."""
    return (int(node_id) if node_id.isdecimal() else -1, node_id)


_TYPE_ORDER = {kind: place for place, kind in enumerate(QuotaType)}


def _entity_order(usage: EntityUsage) -> tuple[int, str, str, tuple[int, str]]:
    entity = usage.entity
    kind = _TYPE_ORDER[entity.quota_type]
    return kind, entity.user, entity.client_id, node_order(entity.broker)


def _encodable(text: str) -> str:
    # half a surrogate pair, as JSON may hold one, has no place in UTF-8
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()
