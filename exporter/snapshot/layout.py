"""The entities of a snapshot in the order of the text, and all of them that rarely changes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, Final, TypeAlias, TypeVar
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


class Layout:
    """
    The entities of a snapshot by row. Never changed once made.

    Rows are sorted as the text is: entities of Kafka's own quotas by quota type, user, client id and node; then those of a
    custom quota callback by node, quota type and tags. As long as neither the entities nor their limits change, snapshots
    share one layout: whatever was derived from it may be kept under its identity. What is kept by row for longer goes from
    one layout to another by ``rows_in``.

    Args:
        entities: In their order.
        last: The layout that this one came of, None for none.
        before: Where each entity was in ``last``, -1 for those that are new.

    """

    def __init__(
        self,
        entities: Sequence[Entity] | NDArray[np.object_],
        last: Layout | None = None,
        before: Rows | None = None,
    ) -> None:
        self.entities = _objects(entities)
        """Of dtype object: an ``Entity`` for each row."""
        self.entities.setflags(write=False)
        self._rows = WeakKeyDictionary[Layout, Rows]()
        """What ``rows_in`` found: only as long as something else keeps the other layout, of which there may be a new one at each scrape."""
        if last is not None and before is not None:
            self._rows[last] = fixed(before)

    @classmethod
    def of(cls, entities: Iterable[Entity]) -> Layout:
        """The layout of entities in any order."""
        return cls(sorted(entities, key=order))

    def places(self, entities: Iterable[Entity]) -> Rows:
        """Before which row each of some entities is, or would be; they are in their order."""
        found: list[int] = []
        for each in entities:
            first = found[-1] if found else 0
            found.append(bisect_left(self.entities, order(each), lo=first, key=order))
        return np.array(found, np.intp)

    def changed(
        self, gone: Rows, came: Iterable[Entity], places: Rows | None = None
    ) -> Layout:
        """The layout without the rows ``gone`` (ascending), and with some entities more: in their order if ``places`` has where they go."""
        fresh = sorted(came, key=order) if places is None else list(came)
        places = self.places(fresh) if places is None else places
        places = places - np.searchsorted(gone, places)
        return self._arranged(np.delete(np.arange(len(self)), gone), places, fresh)

    def only(self, rows: Rows) -> Layout:
        """The layout of some of the rows (ascending)."""
        return self._arranged(rows, rows[:0], ())

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

    def _arranged(self, kept: Rows, places: Rows, fresh: Sequence[Entity]) -> Layout:
        """The layout of the rows that are kept, and fresh entities before these places of them; what is derived already is patched."""
        layout = Layout(
            np.insert(self.entities[kept], places, _objects(fresh)),
            self,
            np.insert(kept, places, -1),
        )
        if "node_numbers" in self.__dict__:
            brokers = (entity.broker for entity in fresh)
            layout.nodes = tuple(dict.fromkeys((*self.nodes, *brokers)))
        for name, (of, dtype) in _DERIVED.items():
            if name in self.__dict__:
                values = np.fromiter((of(layout, each) for each in fresh), dtype)
                patched = np.insert(getattr(self, name)[kept], places, values)
                layout.__dict__[name] = fixed(patched)
        layout._forget_nodes()
        return layout

    def _forget_nodes(self) -> None:
        """Have the nodes found again where most of those that were taken over have no entities any more."""
        if "node_numbers" in self.__dict__:
            used = np.count_nonzero(np.bincount(self.node_numbers))
            if len(self.nodes) > 2 * used:
                for name in ("nodes", "node_numbers", "_numbers_of_nodes"):
                    self.__dict__.pop(name, None)

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

    def carry(
        self, values: NDArray[_Scalar], other: Layout, fill: float = np.nan
    ) -> NDArray[_Scalar]:
        """Values by row of another layout, by row of this one; ``fill`` for entities that it does not have."""
        if other is self:
            return values
        return taken(values, self.rows_in(other), fill)

    @cached_property
    def serials(self) -> NDArray[np.int64]:
        """The serial of each entity."""
        return self._derived("serials")

    @cached_property
    def types(self) -> NDArray[np.int8]:
        """The number of each quota type in ``TYPES``."""
        return self._derived("types")

    @cached_property
    def limits(self) -> Floats:
        """In the unit of ``Entity.limit``; NaN when unlimited or unknown."""
        return self._derived("limits")

    @cached_property
    def bursts(self) -> Floats:
        """``Entity.burst_tokens``, NaN without."""
        return self._derived("bursts")

    @cached_property
    def limits_unknown(self) -> NDArray[np.bool_]:
        """Whether an entity may have a limit that is not known."""
        return self._derived("limits_unknown")

    @cached_property
    def ruled(self) -> Floats:
        """1 where a configured rule decides, NaN elsewhere."""
        return self._derived("ruled")

    @cached_property
    def stand_ins(self) -> NDArray[np.bool_]:
        """``Entity.stands_in``."""
        return self._derived("stand_ins")

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """The nodes of all entities, each once; of a layout that came of another one, maybe some that have none any more."""
        return tuple(dict.fromkeys(entity.broker for entity in self.entities))

    @cached_property
    def node_numbers(self) -> NDArray[np.int32]:
        """The place of each entity's node in ``nodes``."""
        return self._derived("node_numbers")

    @cached_property
    def own(self) -> slice:
        """The rows of Kafka's own quotas."""
        return slice(0, self._tagged)

    @cached_property
    def tagged(self) -> slice:
        """The rows of a custom quota callback."""
        return slice(self._tagged, len(self))

    def of_type(self, quota_type: QuotaType) -> slice:
        """The rows of one of Kafka's own quotas."""
        number = TYPES.index(quota_type)
        return slice(*self._borders_of_types[number : number + 2])

    @cached_property
    def absent(self) -> Floats:
        """A NaN for each row: the same object wherever a column has no value at all."""
        return fixed(np.full(len(self), np.nan))

    @cached_property
    def _tagged(self) -> int:
        return bisect_left(self.entities, True, key=lambda each: each.tags is not None)  # noqa: FBT003 - what is looked for

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

    def _derived(self, name: str) -> NDArray[Any]:
        of, dtype = _DERIVED[name]
        each = (of(self, entity) for entity in self.entities)
        return fixed(np.fromiter(each, dtype, len(self)))


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


_DERIVED: Final[Mapping[str, tuple[Callable[[Layout, Entity], Any], type[np.generic]]]] = {
    "serials": (lambda _, entity: entity.serial, np.int64),
    "types": (lambda _, entity: TYPES.index(entity.quota_type), np.int8),
    "limits": (lambda _, entity: np.nan if entity.limit is None else entity.limit, np.float64),
    "bursts": (lambda _, entity: np.nan if entity.burst_tokens is None else entity.burst_tokens, np.float64),
    "limits_unknown": (lambda _, entity: entity.limit is None and entity.resolution is None, np.bool_),
    "ruled": (lambda _, entity: 1.0 if entity.resolution and entity.resolution.entity else np.nan, np.float64),
    "stand_ins": (lambda _, entity: entity.stands_in, np.bool_),
    "node_numbers": (lambda layout, entity: layout._numbers_of_nodes[entity.broker], np.int32),  # noqa: SLF001 - of this module
}  # fmt: skip
"""What is derived of each entity for an array of its name."""
