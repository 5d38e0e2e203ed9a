"""The entities of a snapshot in the order of the exposition, with their limits and other slow-changing values."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from operator import is_
from typing import Any, Final, Generic, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from quotascope.metrics.kafka.entities import QuotaType

from .entity import Entity

Floats: TypeAlias = NDArray[np.float64]
"""An array with a value for each row, NaN for no value. It is not writable."""
Rows: TypeAlias = NDArray[np.intp]
"""An array of row numbers of a layout."""

TYPES: Final = tuple(QuotaType)
"""Quota types by their number in ``Layout.types``."""

_Scalar = TypeVar("_Scalar", bound=np.generic)


class _Derived(cached_property[NDArray[_Scalar]], Generic[_Scalar]):
    """
    An array with a value for each entity of a layout.

    It is computed when it is first read. `Layout.changed` patches it for rows that come and leave.

    Args:
        value_of: Function that returns the value of an entity in a layout.
        dtype: Type of the values.

    """

    def __init__(self, value_of: Callable[[Layout, Entity], object], dtype: type[_Scalar]) -> None:
        super().__init__(lambda layout: fixed(self.values(layout, layout.entities)))
        self._value_of, self._dtype = value_of, dtype

    def values(self, layout: Layout, entities: Sequence[Entity]) -> NDArray[_Scalar]:
        """Return the values of ``entities``, which are some of the layout's."""
        values: Iterable[Any] = (self._value_of(layout, entity) for entity in entities)
        return np.fromiter(values, self._dtype, len(entities))


class Layout:
    """
    The entities of a snapshot by row. A layout is never changed.

    Rows are sorted as the exposition is. First come the entities of Kafka's own quotas by quota type, user, client-id
    and node, then the entities of a custom quota callback by node, quota type and tags. Snapshots share one layout as
    long as neither the entities nor their limits change, so values that depend on the layout alone may be cached by
    it. ``rows_in`` and ``carry`` take values by row from one layout to the next.

    Args:
        entities: The entities, in order.
        previous: The layout that this one is derived from, None for none.
        previous_rows: The row of each entity in ``previous``, -1 for a new entity.

    """

    def __init__(
        self,
        entities: Sequence[Entity] | NDArray[np.object_],
        previous: Layout | None = None,
        previous_rows: Rows | None = None,
    ) -> None:
        self.entities = _objects(entities)
        """An ``Entity`` for each row, in an array of dtype object."""
        self.entities.setflags(write=False)
        self._rows = WeakKeyDictionary[Layout, Rows]()
        """Results of ``rows_in`` by the other layout. The keys are weak, since each scrape may have a new layout."""
        if previous is not None and previous_rows is not None:
            self._rows[previous] = fixed(previous_rows)

    def places(self, entities: Iterable[Entity]) -> Rows:
        """Return the row of each entity, or the row before which it would be inserted. The entities are in order."""
        rows: list[int] = []
        for entity in entities:
            lowest = rows[-1] if rows else 0
            rows.append(bisect_left(self.entities, order(entity), lo=lowest, key=order))
        return np.array(rows, np.intp)

    def changed(self, removed: Rows, added: Iterable[Entity] = (), places: Rows | None = None) -> Layout:
        """
        Return the layout without some rows, and with additional entities.

        Args:
            removed: The rows, ascending.
            added: The additional entities; in order if ``places`` is not None.
            places: The row of this layout before which each added entity is inserted; None to find it.

        """
        additions = sorted(added, key=order) if places is None else list(added)
        places = self.places(additions) if places is None else places
        remaining = np.delete(np.arange(len(self)), removed)
        places_in_remaining = places - np.searchsorted(removed, places)
        entities = np.insert(self.entities[remaining], places_in_remaining, _objects(additions))
        layout = Layout(entities, self, np.insert(remaining, places_in_remaining, -1))
        # what this layout has computed, in its `__dict__`, is patched; all else is computed when it is needed
        if "node_numbers" in self.__dict__:
            brokers = (entity.broker for entity in additions)
            layout.nodes = tuple(dict.fromkeys((*self.nodes, *brokers)))
        for name, derived in _DERIVED.items():
            if name in self.__dict__:
                values = derived.values(layout, additions)
                patched = np.insert(getattr(self, name)[remaining], places_in_remaining, values)
                layout.__dict__[name] = fixed(patched)
        if "node_numbers" in layout.__dict__:
            nodes_with_entities = np.count_nonzero(np.bincount(layout.node_numbers))
            if len(layout.nodes) > 2 * nodes_with_entities:
                # most nodes have lost their entities: the nodes are derived again when needed
                for name in ("nodes", "node_numbers", "_numbers_of_nodes"):
                    layout.__dict__.pop(name, None)
        return layout

    def with_limits(self, limited: Mapping[int, Entity]) -> Layout:
        """Return the layout with other entities in some rows, which differ from the present ones in their limits."""
        entities = self.entities.copy()
        for row, entity in limited.items():
            entities[row] = entity
        layout = Layout(entities, self, np.arange(len(self)))
        # what does not depend on limits, as far as it was computed
        for name in ("serials", "types", "name_bytes", "stand_ins", "nodes", "node_numbers"):
            if name in self.__dict__:
                layout.__dict__[name] = self.__dict__[name]
        return layout

    def __len__(self) -> int:
        return len(self.entities)

    def rows_in(self, layout: Layout) -> Rows:
        """
        Return the row of each entity in another layout, earlier or later; -1 if the other layout lacks the entity.

        Two entities are the same if they have the same serial.
        """
        cached = self._rows.get(layout)
        if cached is None:
            serials, row_of_serial = layout._sorted_serials
            rows = np.full(len(self), -1)
            if serials.size:
                places = np.searchsorted(serials, self.serials)
                places = places.clip(max=serials.size - 1)  # a serial above all others has no place
                matches = serials[places] == self.serials
                rows[matches] = row_of_serial[places[matches]]
            cached = self._rows[layout] = fixed(rows)
        return cached

    def unchanged_in(self, layout: Layout) -> Rows:
        """Return the rows as ``rows_in`` does, but -1 also for an entity that has another rule or limit there."""
        rows = self.rows_in(layout)
        entities = np.append(layout.entities, [None])[rows]  # None for a row of -1
        unchanged = np.fromiter(map(is_, self.entities, entities), np.bool_, len(self))
        return np.where(unchanged, rows, -1)

    def carry(self, values: NDArray[_Scalar], layout: Layout, fill: float = np.nan) -> NDArray[_Scalar]:
        """Return values by row of another layout as values by row of this one; ``fill`` for entities that it lacks."""
        if layout is self:
            return values
        return taken(values, self.rows_in(layout), fill)

    def column(self, values: Floats) -> Floats:
        """Return values as a column: not writable, and the object ``absent`` if all values are NaN."""
        return self.absent if np.isnan(values).all() else fixed(values)

    serials = _Derived(lambda _, entity: entity.serial, np.int64)
    types = _Derived(lambda _, entity: TYPES.index(entity.quota_type), np.int8)
    """The number of each quota type in ``TYPES``."""
    limits = _Derived(lambda _, entity: np.nan if entity.limit is None else entity.limit, np.float64)
    """Limits in the unit of ``Entity.limit``; NaN when unlimited or unknown."""
    bursts = _Derived(lambda _, entity: np.nan if entity.burst_tokens is None else entity.burst_tokens, np.float64)
    """``Entity.burst_tokens``, NaN for an entity without a bucket."""
    limits_unknown = _Derived(lambda _, entity: entity.limit is None and entity.resolution is None, np.bool_)
    """True where an entity may have a limit that is not known."""
    ruled = _Derived(lambda _, entity: 1.0 if entity.resolution and entity.resolution.entity else np.nan, np.float64)
    """1 where a configured rule decides, NaN elsewhere."""
    name_bytes = _Derived(lambda _, entity: _name_bytes(entity), np.int32)
    """Bytes of user and client-id, or of all tags."""
    stand_ins = _Derived(lambda _, entity: entity.stands_in, np.bool_)
    node_numbers = _Derived(lambda layout, entity: layout._numbers_of_nodes[entity.broker], np.int32)  # noqa: SLF001
    """The place of each entity's node in ``nodes``."""

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """The nodes of all entities without duplicates; nodes of an earlier layout may have no entity any more."""
        return tuple(dict.fromkeys(entity.broker for entity in self.entities))

    @cached_property
    def own(self) -> slice:
        """The rows of Kafka's own quotas."""
        first_tagged = bisect_left(self.entities, x=True, key=lambda entity: entity.tags is not None)
        return slice(0, first_tagged)

    @cached_property
    def tagged(self) -> slice:
        """The rows of a custom quota callback."""
        return slice(self.own.stop, len(self))

    def of_type(self, quota_type: QuotaType) -> slice:
        """Return the rows of a quota type of Kafka's own quotas."""
        number = TYPES.index(quota_type)
        first, end = self._first_rows_of_types[number : number + 2]
        return slice(first, end)

    @cached_property
    def absent(self) -> Floats:
        """A column without any value: NaN for each row. All such columns are this object."""
        return fixed(np.full(len(self), np.nan))

    @cached_property
    def _first_rows_of_types(self) -> list[int]:
        """The first row of each quota type of Kafka's own quotas, and the row after the last type."""
        numbers = range(len(TYPES) + 1)
        return list(map(int, np.searchsorted(self.types[self.own], numbers)))

    @cached_property
    def _sorted_serials(self) -> tuple[NDArray[np.int64], Rows]:
        """The serials in ascending order, and the row of each."""
        rows = np.argsort(self.serials)
        return self.serials[rows], rows

    @cached_property
    def _numbers_of_nodes(self) -> dict[str, int]:
        """The numbers of nodes by their id."""
        return {node: number for number, node in enumerate(self.nodes)}


_DERIVED: Final[Mapping[str, _Derived[Any]]] = {
    name: attribute for name, attribute in vars(Layout).items() if isinstance(attribute, _Derived)
}


def _name_bytes(entity: Entity) -> int:
    """Return the length of an entity's names or tags in bytes of UTF-8."""
    names = (entity.user, entity.client_id) if entity.tags is None else entity.tags
    return sum(len(name) if name.isascii() else len(name.encode(errors="replace")) for name in names)


def order(entity: Entity) -> tuple[object, ...]:
    """Return the sort key of an entity in a layout."""
    node = node_order(entity.broker)
    if entity.tags is not None:
        return True, node, entity.quota_type.label, entity.tags
    kind = TYPES.index(entity.quota_type)
    return False, kind, entity.user, entity.client_id, node


@lru_cache(maxsize=4096)
def node_order(node_id: str) -> tuple[int, str]:
    """Return the sort key of a node id: ids that are numbers in numerical order, 2 before 10."""
    return (int(node_id) if node_id.isdecimal() else -1, node_id)


def taken(values: NDArray[_Scalar], rows: Rows, fill: float) -> NDArray[_Scalar]:
    """Return the value in each of ``rows``, and ``fill`` for a row of -1."""
    if not len(values):
        return fixed(np.full(len(rows), fill, values.dtype))
    return fixed(np.where(rows < 0, values.dtype.type(fill), values[rows]))


def fixed(values: NDArray[_Scalar]) -> NDArray[_Scalar]:
    """Make an array read-only, and return it."""
    values.setflags(write=False)
    return values


def _objects(entities: Sequence[Entity] | NDArray[np.object_]) -> NDArray[np.object_]:
    """Return the entities in a new array of dtype object."""
    objects = np.empty(len(entities), dtype=object)
    objects[:] = entities
    return objects
