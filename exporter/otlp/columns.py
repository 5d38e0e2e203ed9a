"""The families of a snapshot with what OTLP wants of each: the same series that /metrics shows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from quotascope.metrics.catalog import Family, FamilyType, families

from ..exposition.collector import READERS
from ..exposition.order import Order
from ..exposition.per_entity import PerEntity
from ..exposition.series import Series, View, known, label_names
from ..snapshot import Entity, Snapshot
from .starts import Starts


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """All series of one family, with their labels."""

    family: Family
    labels: tuple[str, ...]
    """The names for the label values of each series."""
    series: list[Series]
    starts_ns: list[int] | None = None
    """Since when each counts, Unix time; None for gauges."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityColumn:
    """The values of a gauge whose labels follow from an entity, and are not asked for again and again."""

    family: Family
    reader: PerEntity
    entities: list[Entity]
    values: list[float]
    may_repeat: bool
    """Whether entities may share a series: the first of them tells it."""


def unix_ns(seconds: float) -> int:
    """A Unix time in nanoseconds, to the microsecond."""
    return round(seconds * 1e6) * 1000


def columns(snapshot: Snapshot, now: float, starts: Starts) -> Iterator[Column]:
    """
    The families that have something to show, in the catalogue's order.

    ``now`` is the Unix time in seconds that ages refer to. ``starts`` takes note of the counters.
    """
    view = View(snapshot, now)
    for family in families():
        column = _column(family, view, starts)
        if column.series:
            yield column


class FastColumns:
    """
    The same for one snapshot after the other, a whole column at a time where that can be.

    Args:
        starts: Takes note of the counters.

    """

    def __init__(self, starts: Starts) -> None:
        self._starts = starts
        self._order = Order()

    def of(self, snapshot: Snapshot, now: float) -> Iterator[Column | EntityColumn]:
        """The families of a snapshot. ``now`` is the Unix time in seconds that ages refer to."""
        self._order.take(snapshot.entities)
        sections = self._order.sections
        view = View(
            snapshot, now, {kind: section.usages for kind, section in sections.items()}
        )
        for family in families():
            reader = READERS[family]
            if isinstance(reader, PerEntity) and family.type is FamilyType.GAUGE:
                yield self._entity_column(family, reader, snapshot)
            else:
                yield _column(family, view, self._starts)
        self._starts.forget(unix_ns(snapshot.taken_at))

    def _entity_column(
        self, family: Family, reader: PerEntity, snapshot: Snapshot
    ) -> EntityColumn:
        entities: list[Entity] = []
        values: list[float] = []
        repeats = reader.shared
        for kind in reader.types:
            section = self._order.sections[kind]
            repeats = repeats or section.may_repeat
            column = reader.values(section.usages, snapshot)
            for usage, value in zip(section.usages, column, strict=True):
                if value is not None and math.isfinite(value):
                    entities.append(usage.entity)
                    values.append(value + 0.0)  # -0 becomes 0
        return EntityColumn(
            family=family,
            reader=reader,
            entities=entities,
            values=values,
            may_repeat=repeats,
        )


def _column(family: Family, view: View, starts: Starts) -> Column:
    series = list(known(READERS[family], view))
    at_ns = unix_ns(view.snapshot.taken_at)
    counts = family.type is FamilyType.COUNTER
    return Column(
        family=family,
        labels=label_names(family, view.snapshot),
        series=series,
        starts_ns=starts.of(family, series, at_ns) if counts else None,
    )
