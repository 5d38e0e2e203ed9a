"""The entities of a snapshot in the order of the text, and all of them that rarely changes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import count
from typing import Final, TypeAlias, TypeVar

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

_numbers = count()
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
        entities: Sequence[Entity],
        last: Layout | None = None,
        before: Rows | None = None,
    ) -> None:
        self.entities = np.empty(len(entities), dtype=object)
        """Of dtype object: an ``Entity`` for each row."""
        self.entities[:] = entities
        self.number = next(_numbers)
        """Of this layout: no other one ever has it."""
        self._last = -1 if last is None else last.number
        self._before = before

    @classmethod
    def of(cls, entities: Iterable[Entity]) -> Layout:
        """The layout of entities in any order."""
        return cls(sorted(entities, key=order))

    def changed(self, gone: Rows, came: Iterable[Entity]) -> Layout:
        """The layout without the rows ``gone`` (ascending), and with some entities more."""
        fresh = sorted(came, key=order)
        kept = np.delete(self.entities, gone)
        places = [bisect_left(kept, order(each), key=order) for each in fresh]
        entities = np.insert(kept, places, _objects(fresh))
        before = np.insert(np.delete(np.arange(len(self)), gone), places, -1)
        return Layout(entities, self, before)  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(self.entities)

    def rows_in(self, other: Layout) -> Rows:
        """Where each entity is in another layout, earlier or later; -1 where it is not. Entities are the same when their serial is."""
        if other is self:
            return np.arange(len(self))
        if self._before is not None and other.number == self._last:
            return self._before
        serials, by_serial = other._sorted_serials
        if not serials.size:
            return np.full(len(self), -1)
        places = np.searchsorted(serials, self.serials).clip(max=serials.size - 1)
        return np.where(serials[places] == self.serials, by_serial[places], -1)

    def carry(self, values: Floats, other: Layout, fill: float = np.nan) -> Floats:
        """Values by row of another layout, by row of this one; ``fill`` for entities that it does not have."""
        if other is self:
            return values
        return taken(values, self.rows_in(other), fill)

    @cached_property
    def serials(self) -> NDArray[np.int64]:
        """The serial of each entity."""
        return self._each(lambda entity: entity.serial, np.int64)

    @cached_property
    def types(self) -> NDArray[np.int8]:
        """The number of each quota type in ``TYPES``."""
        return self._each(lambda entity: TYPES.index(entity.quota_type), np.int8)

    @cached_property
    def limits(self) -> Floats:
        """In the unit of ``Entity.limit``; NaN when unlimited or unknown."""
        return fixed(self._each(lambda entity: _or_nan(entity.limit), np.float64))

    @cached_property
    def bursts(self) -> Floats:
        """``Entity.burst_tokens``, NaN without."""
        return fixed(
            self._each(lambda entity: _or_nan(entity.burst_tokens), np.float64)
        )

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """The nodes of all entities, each once."""
        return tuple(dict.fromkeys(entity.broker for entity in self.entities))

    @cached_property
    def node_numbers(self) -> NDArray[np.int32]:
        """The place of each entity's node in ``nodes``."""
        numbers = {node: number for number, node in enumerate(self.nodes)}
        return self._each(lambda entity: numbers[entity.broker], np.int32)

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
        first, last = np.searchsorted(self.types[self.own], [number, number + 1])
        return slice(int(first), int(last))

    @cached_property
    def absent(self) -> Floats:
        """A NaN for each row: the same object wherever a column has no value at all."""
        return fixed(np.full(len(self), np.nan))

    @cached_property
    def _tagged(self) -> int:
        return bisect_left(self.entities, True, key=lambda each: each.tags is not None)  # noqa: FBT003 - what is looked for

    @cached_property
    def _sorted_serials(self) -> tuple[NDArray[np.int64], Rows]:
        by_serial = np.argsort(self.serials)
        return self.serials[by_serial], by_serial

    def _each(
        self, of: Callable[[Entity], float], dtype: type[_Scalar]
    ) -> NDArray[_Scalar]:
        return np.fromiter(map(of, self.entities), dtype, len(self))


def order(entity: Entity) -> tuple[object, ...]:
    """Sorts entities as the text shows them."""
    node = node_order(entity.broker)
    if entity.tags is not None:
        return True, node, entity.quota_type.label, entity.tags
    kind = TYPES.index(entity.quota_type)
    return False, kind, entity.user, entity.client_id, node


def node_order(node_id: str) -> tuple[int, str]:
    """Sorts node ids as numbers, 2 before 10."""
    return (int(node_id) if node_id.isdecimal() else -1, node_id)


def taken(values: Floats, rows: Rows, fill: float = np.nan) -> Floats:
    """The values of these rows, ``fill`` where a row is -1."""
    if not len(values):
        return fixed(np.full(len(rows), fill))
    return fixed(np.where(rows < 0, fill, values[rows]))


def fixed(values: Floats) -> Floats:
    """The same array, from now on not writable."""
    values.setflags(write=False)
    return values


def _or_nan(value: float | None) -> float:
    return np.nan if value is None else value


def _objects(entities: Sequence[Entity]) -> NDArray[np.object_]:
    objects = np.empty(len(entities), dtype=object)
    objects[:] = entities
    return objects
