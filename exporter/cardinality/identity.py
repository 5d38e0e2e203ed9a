"""Entities as a user thinks of them: the same user and client-id, or the same tags, on all nodes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ..snapshot import TYPES, Entity, Floats, Layout

Mask = NDArray[np.bool_]
"""A boolean for each row, identity or number, as documented."""
Ints = NDArray[np.intp]
Name = tuple[str, ...]
"""User and client-id, or tags."""

HOLD_SECONDS: Final = 300.0
"""Time for which a decision about an identity holds against changes."""
AWAY_SECONDS: Final = 120.0
"""Time that the record of an identity is kept while no node has it."""

POOLS: Final = 2 * len(TYPES)
"""
A pool has its own count of identities: there is one for each quota type, and as many for the entities of custom
callbacks.
"""
_SPARE: Final = 1000

_KNOWN: Final = np.dtype(
    [
        ("pool", "i1"),
        ("verdict", "i1"),  # the verdict on its name; 0 when it was not judged
        ("judged_at", "f8"),  # when its idleness was judged last
        ("moved_at", "f8"),
        ("near_at", "f8"),  # when it was throttled or near its limit last, while it was shown
        ("placed", "?"),  # whether it has one of the places; the next five are about that place
        ("since", "f8"),
        ("seen_at", "f8"),
        ("pressed_at", "f8"),
        ("rank", "i1"),
        ("weight", "f8"),
    ]
)  # fmt: skip
_NEW: Final = np.array([(0, 0, np.nan, np.nan, np.nan, False, np.nan, np.nan, np.nan, 0, 0.0)], _KNOWN)


@dataclass(frozen=True, eq=False, kw_only=True)
class Grouped:
    """The identities of one layout, ascending by pool and name: what is *by identity* is in this order."""

    layout: Layout
    numbers: Ints
    """The lasting number of each identity."""
    of_row: Ints
    """For each row of the layout, the place of its identity in ``numbers``."""
    pools: NDArray[np.int8]
    """The pool of each identity."""

    @cached_property
    def own(self) -> Mask:
        """Mask of the identities of Kafka's own quotas, as opposed to a callback's."""
        return self.pools < len(TYPES)

    def greatest(self, by_row: Floats) -> Floats:
        """Return for each identity the greatest value among its rows."""
        greatest = np.full(len(self.numbers), -np.inf)
        np.maximum.at(greatest, self.of_row, by_row)
        return greatest

    def sum(self, by_row: Ints) -> Ints:
        """Return for each identity the sum over its rows."""
        sums = np.bincount(self.of_row, by_row, len(self.numbers))
        return sums.astype(np.intp)

    def any(self, by_row: Mask) -> Mask:
        """Return for each identity whether any of its rows is marked."""
        marked = np.zeros(len(self.numbers), np.bool_)
        marked[self.of_row[by_row]] = True
        return marked

    @cached_property
    def of_limit(self) -> Ints:
        """Number of series of each identity's limit and burst, which are the same on all nodes."""
        limited, burst = ~np.isnan((self.layout.limits, self.layout.bursts))
        return self.any(limited).astype(np.intp) + self.any(burst)

    @cached_property
    def ruled(self) -> Mask:
        """Mask of the identities that a known, configured rule decides on."""
        return self.any(~np.isnan(self.layout.ruled))


class Identities:
    """
    Gives each identity a number, and keeps what is known of it in the row of that number.

    An identity that is away keeps its number for as long as something that is known of it still counts; then another
    one gets it. So what is kept is bounded by the identities of the last minutes, not by all that ever were.
    """

    def __init__(self) -> None:
        self.known = np.empty(0, _KNOWN)
        """What other parts know of an identity, by its number."""
        self.names: list[Name] = []
        """Name of each identity, by its number."""
        self._numbers: dict[tuple[int, Name], int] = {}
        self._free: list[int] = []
        self._view = self._ordered(Layout(()), np.empty(0, np.intp))

    def of(self, layout: Layout, now_seconds: float) -> Grouped:
        """
        Return the identities of a layout at ``now_seconds`` (Unix time).

        The same object while the layout is the same.
        """
        previous = self._view
        if layout is previous.layout:
            return previous
        numbers = np.full(len(layout), -1, np.intp)
        if len(previous.layout):
            old_rows = layout.rows_in(previous.layout)
            is_old = old_rows >= 0
            numbers[is_old] = previous.numbers[previous.of_row[old_rows[is_old]]]
        for row in np.flatnonzero(numbers < 0):
            numbers[row] = self._number(layout.entities[row])
        self._view = self._ordered(layout, numbers)
        if len(self._numbers) > 2 * len(self._view.numbers) + _SPARE:
            self._forget(now_seconds)
        return self._view

    def _ordered(self, layout: Layout, numbers: Ints) -> Grouped:
        own_numbers, tagged = numbers[layout.own], numbers[layout.tagged]
        # rows of an identity are together, except those of callbacks, which are sorted by node first
        begins = np.diff(own_numbers, prepend=-1) != 0
        tagged_numbers, of_tagged = np.unique(tagged, return_inverse=True)
        pools = self.known["pool"]
        named = [(pools[number], self.names[number]) for number in tagged_numbers]
        by_name = np.array(sorted(range(len(tagged_numbers)), key=named.__getitem__), np.intp)
        of_own = np.cumsum(begins) - 1
        of_row = np.append(of_own, begins.sum() + np.argsort(by_name)[of_tagged])
        ordered = np.append(own_numbers[begins], tagged_numbers[by_name])
        return Grouped(layout=layout, numbers=ordered, of_row=of_row, pools=pools[ordered])

    def _number(self, entity: Entity) -> int:
        pool, name = TYPES.index(entity.quota_type), name_of(entity)
        if entity.tags is not None:
            pool += len(TYPES)
        number = self._numbers.get((pool, name))
        if number is None:
            if not self._free:
                size, further = len(self.known), max(len(self.known) // 2, _SPARE)
                self.known = np.append(self.known, np.repeat(_NEW, further))
                self.names += [()] * further
                self._free += range(size + further - 1, size - 1, -1)
            number = self._numbers[pool, name] = self._free.pop()
            self.names[number] = name
            self.known[number] = _NEW[0]
            self.known["pool"][number] = pool
        return number

    def _forget(self, now_seconds: float) -> None:
        records = self.known
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
