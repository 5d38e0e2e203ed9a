"""Sorted entities with gaps between them, so that hardly any has to move when others come or go."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import compress, count
from typing import Final, TypeVar

from ..snapshot import Entity

Item = TypeVar("Item")
Key = tuple[str, str, tuple[int, str]]

_BEFORE_ALL: Final[Key] = ("", "", (-2, ""))
_RUN: Final = 8
"""A gap after so many entities, less one."""
_ROOM: Final = 64


class Slots:
    """
    Where the lines of each entity lie in lists that are as long as there are slots.

    Such lists are in the order of the entities, and follow them with ``follow``.
    """

    def __init__(self) -> None:
        self.entities: list[Entity | None] = []
        """By slot, None for a gap."""
        self.used: list[int] = []
        """The slots that are no gaps."""
        self._keys: list[Key] = []
        """By slot, a gap has that of the entity before it."""
        self._sources: list[int] | None = None
        """For each slot the one before the last change, -1 for none; None when these are the same but for moves."""
        self._moves: list[tuple[int, int]] = []
        """Then, one after the other: what lies from here to before there moves one up, and here is nothing."""

    def __len__(self) -> int:
        return len(self.entities)

    def renew(self, keyed: Sequence[tuple[Key, Entity]]) -> None:
        """Begin anew with these, which are sorted."""
        size = len(keyed)
        length = size + size // (_RUN - 1) + 1
        self.entities, self._keys = [None] * length, [_BEFORE_ALL] * length
        self.used = [place + place // (_RUN - 1) for place in range(size)]
        for slot, (key, entity) in zip(self.used, keyed, strict=True):
            self.entities[slot] = entity
            self._keys[slot : slot + 2] = [key, key]
        del self._keys[length:]

    def change(self, gone: Sequence[Key], came: Sequence[tuple[Key, Entity]]) -> bool:
        """Let these leave, and those come. Returns False when two have the same key."""
        self._sources, self._moves = None, []
        if (
            not len(self.used) // 32
            < len(self) - len(self.used)
            < len(self.used) + _ROOM
        ):
            self._spread()
        for key in gone:
            self._remove(bisect_left(self._keys, key))
        fits = all(self._insert(key, entity) for key, entity in came)
        self.used = list(compress(count(), self.entities))
        return fits

    def place(self, key: Key) -> int:
        """How many are before the one that has this key."""
        return bisect_left(self.used, bisect_left(self._keys, key))

    def follow(self, items: list[Item], nothing: Item) -> list[Item]:
        """A list by slot after the last change, with nothing for those that came."""
        if self._sources is not None:
            items = list(map([*items, nothing].__getitem__, self._sources))
        items += [nothing] * (len(self) - len(items))
        for start, stop in self._moves:
            if start < stop:
                items[start + 1 : stop + 1] = items[start:stop]
            items[start] = nothing
        return items

    def _spread(self) -> None:
        """Distribute the gaps evenly."""
        before = self.used
        pairs = [(self._keys[at], self.entities[at]) for at in before]
        self.renew([(key, entity) for key, entity in pairs if entity is not None])
        self._sources = [-1] * len(self)
        for slot, source in zip(self.used, before, strict=True):
            self._sources[slot] = source

    def _remove(self, slot: int) -> None:
        self._moves.append((slot, slot))
        self.entities[slot] = None
        before = self._keys[slot - 1] if slot else _BEFORE_ALL
        while slot < len(self) and self.entities[slot] is None:
            self._keys[slot] = before
            slot += 1

    def _insert(self, key: Key, entity: Entity) -> bool:
        slot = stop = bisect_right(self._keys, key)
        if slot and self._keys[slot - 1] == key:
            return False
        if slot and self.entities[slot - 1] is None:
            slot = stop = slot - 1
        else:
            stop = self._gap(slot)
            self.entities[slot + 1 : stop + 1] = self.entities[slot:stop]
            self._keys[slot + 1 : stop + 1] = self._keys[slot:stop]
        self.entities[slot], self._keys[slot] = entity, key
        self._moves.append((slot, stop))
        return True

    def _gap(self, slot: int) -> int:
        """The next gap, one at the end if need be."""
        try:
            return self.entities.index(None, slot)
        except ValueError:
            self.entities.append(None)
            self._keys.append(_BEFORE_ALL)
            return len(self) - 1
