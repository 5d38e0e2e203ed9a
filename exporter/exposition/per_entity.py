"""Families with a series for each entity: declared once, read row by row or a whole column at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from quotascope.metrics import QuotaType

from ..snapshot import Entity, EntityUsage, Snapshot
from .series import Row, View

ALL_TYPES: Final = tuple(QuotaType)

Values = Callable[[Sequence[EntityUsage], Snapshot], list[float | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PerEntity:
    """
    A reader whose labels follow from an entity alone, and may be prepared once for it.

    Args:
        types: Whose entities it shows.
        labels: The label values of an entity; asked only where there is a value.
        values: The values of many usages of a snapshot at once, None for what is not known.
        shared: Whether the nodes share one series for each user and client id: the first
            of them that knows the value tells it.
        fixed: Whether values follow from the entity and ``detailed`` alone.
        of_snapshot: Whether values follow from more of the snapshot than the usages.

    """

    types: tuple[QuotaType, ...] = ALL_TYPES
    labels: Callable[[Entity], tuple[str, ...]]
    values: Values
    shared: bool = False
    fixed: bool = False
    of_snapshot: bool = False

    def __call__(self, view: View) -> Iterator[Row]:
        """The series of the view's entities, unless their value is None."""
        for quota_type in self.types:
            usages = view.by_type[quota_type]
            values = self.values(usages, view.snapshot)
            for usage, value in zip(usages, values, strict=True):
                if value is not None:
                    yield self.labels(usage.entity), value


def by_node(entity: Entity) -> tuple[str, ...]:
    """Labels of a family of one quota type."""
    return entity.broker, entity.user, entity.client_id


def by_type_and_node(entity: Entity) -> tuple[str, ...]:
    """Labels of a family of all quota types."""
    return entity.quota_type.label, entity.broker, entity.user, entity.client_id


def by_name(entity: Entity) -> tuple[str, ...]:
    """Labels of a family that is the same on all nodes."""
    return entity.user, entity.client_id
