"""Identities: an identity is a user and client-id, or the tags of a callback, on all nodes together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ..snapshot import TYPES, Entity, Floats, Layout

Mask = NDArray[np.bool_]
"""Booleans by row, by identity or by number; the name or the docstring says by which."""
Ints = NDArray[np.intp]
Name = tuple[str, ...]
"""User and client-id, or tags."""

HOLD_SECONDS: Final = 300.0
"""Time for which a decision about an identity is kept."""
AWAY_SECONDS: Final = 120.0
"""Time for which the record of an identity is kept while no node has it."""

POOLS: Final = 2 * len(TYPES)
"""
Number of pools, in which identities are counted: one for each quota type, and one for each quota type of custom
callbacks.
"""
_SPARE: Final = 1000
"""Free numbers that are added at a time, and unused ones that are allowed."""

_RECORD: Final = np.dtype(
    [
        ("pool", "i1"),
        ("verdict", "i1"),  # on its name; 0 before it is judged
        ("judged_at", "f8"),  # time when its idleness was judged last
        ("used_at", "f8"),  # time when it last had usage or a throttle
        ("near_at", "f8"),  # time when it was last throttled or near its limit while it was shown
        ("placed", "?"),  # whether it has a place; the other fields are about this place
        ("since", "f8"),  # time when it got the place
        ("seen_at", "f8"),  # time when it was last present
        ("pressed_at", "f8"),  # time of the rank and the weight
        ("rank", "i1"),  # highest rank of the last minutes
        ("weight", "f8"),
    ]
)  # fmt: skip
_NEW_RECORD: Final = np.array([(0, 0, np.nan, np.nan, np.nan, False, np.nan, np.nan, np.nan, 0, 0.0)], _RECORD)


@dataclass(frozen=True, eq=False, kw_only=True)
class Grouped:
    """The identities of one layout, ascending by pool and name. All arrays by identity have this order."""

    layout: Layout
    numbers: Ints
    """The lasting number of each identity."""
    identity_of_row: Ints
    """The place in ``numbers`` of the identity of each row of the layout."""
    pools: NDArray[np.int8]
    """The pool of each identity."""

    @cached_property
    def own(self) -> Mask:
        """Mask of the identities of Kafka's own quotas, as opposed to a callback's."""
        return self.pools < len(TYPES)

    def greatest(self, by_row: Floats) -> Floats:
        """Return the greatest value among the rows of each identity."""
        greatest = np.full(len(self.numbers), -np.inf)
        np.maximum.at(greatest, self.identity_of_row, by_row)
        return greatest

    def sum(self, by_row: Ints) -> Ints:
        """Return the sum over the rows of each identity."""
        sums = np.bincount(self.identity_of_row, by_row, len(self.numbers))
        return sums.astype(np.intp)

    def any(self, by_row: Mask) -> Mask:
        """Return the mask of the identities with a marked row."""
        marked = np.zeros(len(self.numbers), np.bool_)
        marked[self.identity_of_row[by_row]] = True
        return marked

    @cached_property
    def limit_series(self) -> Ints:
        """Number of series of each identity's limit and burst, which are the same on all nodes."""
        limited, burst = ~np.isnan((self.layout.limits, self.layout.bursts))
        return self.any(limited).astype(np.intp) + self.any(burst)

    @cached_property
    def ruled(self) -> Mask:
        """Mask of the identities whose limit is from a known, configured rule."""
        return self.any(~np.isnan(self.layout.ruled))


class Identities:
    """
    Gives each identity a number, and keeps a record of it under this number.

    An identity that is away keeps its number until its record is no longer needed; then another identity gets the
    number. So the memory is bounded by the identities of the last minutes, not by all that ever were.
    """

    def __init__(self) -> None:
        self.records = np.empty(0, _RECORD)
        """Records of identities by their number, which the users of this class read and write."""
        self.names: list[Name] = []
        """Name of each identity, by its number."""
        self._numbers: dict[tuple[int, Name], int] = {}
        self._free: list[int] = []
        self._view = self._ordered(Layout(()), np.empty(0, np.intp))

    def of(self, layout: Layout, now_seconds: float) -> Grouped:
        """
        Return the identities of a layout at ``now_seconds``, a steady time.

        It is the same object while the layout is the same.
        """
        previous = self._view
        if layout is previous.layout:
            return previous
        numbers = np.full(len(layout), -1, np.intp)
        if len(previous.layout):
            old_rows = layout.rows_in(previous.layout)
            is_old = old_rows >= 0
            numbers[is_old] = previous.numbers[previous.identity_of_row[old_rows[is_old]]]
        for row in np.flatnonzero(numbers < 0):
            numbers[row] = self._number(layout.entities[row])
        self._view = self._ordered(layout, numbers)
        if len(self._numbers) > 2 * len(self._view.numbers) + _SPARE:
            self._forget(now_seconds)
        return self._view

    def _ordered(self, layout: Layout, numbers: Ints) -> Grouped:
        """Return the identities of a layout from the number of each row."""
        # A layout has the rows of an identity together and in the order of identities. But those of callbacks are by
        # node first, so their identities are sorted here.
        own_numbers, tagged_numbers = numbers[layout.own], numbers[layout.tagged]
        begins = np.diff(own_numbers, prepend=-1) != 0
        own_identities = np.cumsum(begins) - 1
        unique_numbers, unique_of_row = np.unique(tagged_numbers, return_inverse=True)
        pools = self.records["pool"]
        sort_keys = [(pools[number], self.names[number]) for number in unique_numbers]
        order = np.array(sorted(range(len(unique_numbers)), key=sort_keys.__getitem__), np.intp)
        place_of_unique = np.argsort(order)  # the inverse of the order
        tagged_identities = begins.sum() + place_of_unique[unique_of_row]
        ordered_numbers = np.append(own_numbers[begins], unique_numbers[order])
        return Grouped(
            layout=layout,
            numbers=ordered_numbers,
            identity_of_row=np.append(own_identities, tagged_identities),
            pools=pools[ordered_numbers],
        )

    def _number(self, entity: Entity) -> int:
        """Return the number of an entity's identity; a new identity gets a number and a new record."""
        pool, name = TYPES.index(entity.quota_type), name_of(entity)
        if entity.tags is not None:
            pool += len(TYPES)
        number = self._numbers.get((pool, name))
        if number is None:
            if not self._free:
                size = len(self.records)
                added = max(size // 2, _SPARE)
                self.records = np.append(self.records, np.repeat(_NEW_RECORD, added))
                self.names += [()] * added
                self._free += reversed(range(size, size + added))  # the lowest number is given out first
            number = self._numbers[pool, name] = self._free.pop()
            self.names[number] = name
            self.records[number] = _NEW_RECORD[0]
            self.records["pool"][number] = pool
        return number

    def _forget(self, now_seconds: float) -> None:
        """Free the numbers of identities that are away and whose records are no longer needed."""
        records = self.records
        is_kept = records["placed"] | (abs(now_seconds - records["near_at"]) <= HOLD_SECONDS)
        is_kept |= abs(now_seconds - records["judged_at"]) <= AWAY_SECONDS
        is_kept[self._view.numbers] = True
        for key, number in [*self._numbers.items()]:
            if not is_kept[number]:
                del self._numbers[key]
                self.names[number] = ()
                self._free.append(number)


def name_of(entity: Entity) -> Name:
    """Return the name of the identity that an entity belongs to."""
    return (entity.user, entity.client_id) if entity.tags is None else entity.tags
