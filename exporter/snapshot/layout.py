"""The entities of a snapshot in the order of the text, with what rarely changes about them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from operator import is_
from typing import Any, Final, Generic, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from quotascope.metrics import QuotaType

from .entity import Entity

Floats: TypeAlias = NDArray[np.float64]
"""A value for each row; NaN where there is none. Not writable."""
Rows: TypeAlias = NDArray[np.intp]
"""Places in a layout."""

TYPES: Final = tuple(QuotaType)
"""Quota types by their number in ``Layout.types``."""

_Scalar = TypeVar("_Scalar", bound=np.generic)


class _Derived(cached_property[NDArray[_Scalar]], Generic[_Scalar]):
    """An array with a value for each entity: made when it is first read, and patched where rows come and leave."""

    def __init__(self, of: Callable[[Layout, Entity], object], dtype: type[_Scalar]) -> None:
        super().__init__(lambda layout: fixed(self.values(layout, layout.entities)))
        self._of, self._dtype = of, dtype

    def values(self, layout: Layout, entities: Sequence[Entity]) -> NDArray[_Scalar]:
        """The values of some entities in a layout."""
        values: Iterable[Any] = (self._of(layout, each) for each in entities)
        return np.fromiter(values, self._dtype, len(entities))


class Layout:
    """
    The entities of a snapshot by row. Never changed once made.

    Rows are sorted as the text is: entities of Kafka's own quotas by quota type, user, client-id and node; then those of a
    custom quota callback by node, quota type and tags. As long as neither the entities nor their limits change, snapshots
    share one layout: whatever was derived from it may be kept under its identity. What is kept by row for longer goes from
    one layout to another by ``rows_in``.

    Args:
        entities: In their order.
        last: The layout that this one came of, None for none.
        before: Where each entity was in ``last``, -1 for those that are new.

    """

    def __init__(
        self, entities: Sequence[Entity] | NDArray[np.object_], last: Layout | None = None, before: Rows | None = None
    ) -> None:
        self.entities = _objects(entities)
        """Of dtype object: an ``Entity`` for each row."""
        self.entities.setflags(write=False)
        self._rows = WeakKeyDictionary[Layout, Rows]()
        """What ``rows_in`` found: only as long as something else keeps the other layout, of which there may be a new one at each scrape."""
        if last is not None and before is not None:
            self._rows[last] = fixed(before)

    def places(self, entities: Iterable[Entity]) -> Rows:
        """Before which row each of some entities is, or would be; they are in their order."""
        found: list[int] = []
        for each in entities:
            first = found[-1] if found else 0
            found.append(bisect_left(self.entities, order(each), lo=first, key=order))
        return np.array(found, np.intp)

    def changed(self, gone: Rows, came: Iterable[Entity] = (), places: Rows | None = None) -> Layout:
        """The layout without some rows (ascending), and with some more entities: in their order if ``places`` has where they go."""
        fresh = sorted(came, key=order) if places is None else list(came)
        places = self.places(fresh) if places is None else places
        places = places - np.searchsorted(gone, places)
        kept = np.delete(np.arange(len(self)), gone)
        layout = Layout(np.insert(self.entities[kept], places, _objects(fresh)), self, np.insert(kept, places, -1))
        if "node_numbers" in self.__dict__:
            brokers = (entity.broker for entity in fresh)
            layout.nodes = tuple(dict.fromkeys((*self.nodes, *brokers)))
        for name, derived in _DERIVED.items():
            if name in self.__dict__:
                values = derived.values(layout, fresh)
                patched = np.insert(getattr(self, name)[kept], places, values)
                layout.__dict__[name] = fixed(patched)
        if "node_numbers" in layout.__dict__ and len(layout.nodes) > 2 * np.count_nonzero(
            np.bincount(layout.node_numbers)
        ):
            # most of the nodes taken over have no entities any more: they are found again when needed
            for name in ("nodes", "node_numbers", "_numbers_of_nodes"):
                layout.__dict__.pop(name, None)
        return layout

    def under(self, limited: Mapping[int, Entity]) -> Layout:
        """The layout with entities that were made again under other limits, by row."""
        entities = self.entities.copy()
        for row, entity in limited.items():
            entities[row] = entity
        layout = Layout(entities, self, np.arange(len(self)))
        for name in ("serials", "types", "stand_ins", "nodes", "node_numbers"):
            if name in self.__dict__:
                layout.__dict__[name] = self.__dict__[name]
        return layout

    def __len__(self) -> int:
        return len(self.entities)

    def rows_in(self, other: Layout) -> Rows:
        """Where each entity is in another layout, earlier or later; -1 where it is not. Entities are the same when their serial is."""
        known = self._rows.get(other)
        if known is None:
            serials, by_serial = other._sorted_serials
            rows = np.full(len(self), -1)
            if serials.size:
                places = np.searchsorted(serials, self.serials)
                places = places.clip(max=serials.size - 1)
                found = serials[places] == self.serials
                rows[found] = by_serial[places[found]]
            known = self._rows[other] = fixed(rows)
        return known

    def unchanged_in(self, other: Layout) -> Rows:
        """As ``rows_in``, but -1 also where the entity was made again: its rule or limit was another one."""
        rows = self.rows_in(other)
        there = np.append(other.entities, [None])[rows]
        same = np.fromiter(map(is_, self.entities, there), np.bool_, len(self))
        return np.where(same, rows, -1)

    def carry(self, values: NDArray[_Scalar], other: Layout, fill: float = np.nan) -> NDArray[_Scalar]:
        """Values by row of another layout, by row of this one; ``fill`` for entities that it does not have."""
        if other is self:
            return values
        return taken(values, self.rows_in(other), fill)

    def column(self, values: Floats) -> Floats:
        """These values as a column: not writable, and ``absent`` where all are NaN."""
        return self.absent if np.isnan(values).all() else fixed(values)

    serials = _Derived(lambda _, entity: entity.serial, np.int64)
    types = _Derived(lambda _, entity: TYPES.index(entity.quota_type), np.int8)
    """The number of each quota type in ``TYPES``."""
    limits = _Derived(lambda _, each: np.nan if each.limit is None else each.limit, np.float64)
    """In the unit of ``Entity.limit``; NaN when unlimited or unknown."""
    bursts = _Derived(lambda _, each: np.nan if each.burst_tokens is None else each.burst_tokens, np.float64)
    """``Entity.burst_tokens``, NaN without."""
    limits_unknown = _Derived(lambda _, each: each.limit is None and each.resolution is None, np.bool_)
    """Whether an entity may have a limit that is not known."""
    ruled = _Derived(lambda _, each: 1.0 if each.resolution and each.resolution.entity else np.nan, np.float64)
    """1 where a configured rule decides, NaN elsewhere."""
    stand_ins = _Derived(lambda _, entity: entity.stands_in, np.bool_)
    node_numbers = _Derived(lambda layout, entity: layout._numbers_of_nodes[entity.broker], np.int32)  # noqa: SLF001
    """The place of each entity's node in ``nodes``."""

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """The nodes of all entities, each once; nodes of an earlier layout may be left that have none any more."""
        return tuple(dict.fromkeys(entity.broker for entity in self.entities))

    @cached_property
    def own(self) -> slice:
        """The rows of Kafka's own quotas."""
        tagged = bisect_left(self.entities, x=1, key=lambda each: each.tags is not None)
        return slice(0, tagged)

    @cached_property
    def tagged(self) -> slice:
        """The rows of a custom quota callback."""
        return slice(self.own.stop, len(self))

    def of_type(self, quota_type: QuotaType) -> slice:
        """The rows of one of Kafka's own quotas."""
        number = TYPES.index(quota_type)
        return slice(*self._borders_of_types[number : number + 2])

    @cached_property
    def absent(self) -> Floats:
        """A NaN for each row: the object that stands for every column without a value."""
        return fixed(np.full(len(self), np.nan))

    @cached_property
    def _borders_of_types(self) -> list[int]:
        numbers = range(len(TYPES) + 1)
        return list(map(int, np.searchsorted(self.types[self.own], numbers)))

    @cached_property
    def _sorted_serials(self) -> tuple[NDArray[np.int64], Rows]:
        by_serial = np.argsort(self.serials)
        return self.serials[by_serial], by_serial

    @cached_property
    def _numbers_of_nodes(self) -> dict[str, int]:
        return {node: number for number, node in enumerate(self.nodes)}


_DERIVED: Final[Mapping[str, _Derived[Any]]] = {
    name: each for name, each in vars(Layout).items() if isinstance(each, _Derived)
}


def order(entity: Entity) -> tuple[object, ...]:
    """Sorts entities as the text shows them."""
    node = node_order(entity.broker)
    if entity.tags is not None:
        return True, node, entity.quota_type.label, entity.tags
    kind = TYPES.index(entity.quota_type)
    return False, kind, entity.user, entity.client_id, node


@lru_cache(maxsize=4096)
def node_order(node_id: str) -> tuple[int, str]:
    """Sorts node ids as numbers, 2 before 10."""
    return (int(node_id) if node_id.isdecimal() else -1, node_id)


def taken(values: NDArray[_Scalar], rows: Rows, fill: float) -> NDArray[_Scalar]:
    """The values of these rows, ``fill`` where a row is -1."""
    if not len(values):
        return fixed(np.full(len(rows), fill, values.dtype))
    return fixed(np.where(rows < 0, values.dtype.type(fill), values[rows]))


def fixed(values: NDArray[_Scalar]) -> NDArray[_Scalar]:
    """The same array, from now on not writable."""
    values.setflags(write=False)
    return values


def _objects(entities: Sequence[Entity] | NDArray[np.object_]) -> NDArray[np.object_]:
    objects = np.empty(len(entities), dtype=object)
    objects[:] = entities
    return objects
