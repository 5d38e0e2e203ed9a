"""Where two lists differ, quickly when they do not differ much."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import compress, count, product
from operator import ne
from typing import Final, Generic, TypeVar

Item = TypeVar("Item")

BLOCK: Final = 64
"""So many items are compared at once."""
_NEAR: Final = 4
"""So far is looked for where both go on alike, before all items are."""
_STEPS: Final = sorted(
    product(range(_NEAR), repeat=2), key=lambda step: (max(step), step[0] != step[1])
)[1:]
"""How many may have left and come there: the nearest first."""


def difference(
    old: Sequence[Hashable], new: Sequence[Hashable]
) -> tuple[list[int], list[int]]:
    """
    The places of items that left the old list, and of items that are fresh in the new one.

    What remains is equal in both, in the same sequence. An item that moved left, and is fresh.

    Args:
        old: A list.
        new: What became of it.

    """
    return _ItemWalk(old, new, differs=ne, key=_itself).through()


class Walk(ABC, Generic[Item]):
    """
    The way through two lists that differ here and there.

    Args:
        old: A list.
        new: What became of it.
        differs: Whether an old item is another one than a new one.
        key: Tells items apart that are looked for among all. What is the same and has another key is told to have left, and come.

    """

    def __init__(
        self,
        old: Sequence[Item],
        new: Sequence[Item],
        *,
        differs: Callable[[Item, Item], bool],
        key: Callable[[Item], Hashable],
    ) -> None:
        self.old = old
        self.new = new
        self.at = self.to = 0
        """Where it has come in the one and in the other."""
        self._differs = differs
        self._key = key
        self._all: tuple[set[Hashable], set[Hashable]] | None = None

    def through(self) -> tuple[list[int], list[int]]:
        """Go to the end: the places of items that left, and of those that are fresh."""
        gone: list[int] = []
        fresh: list[int] = []
        while self.to_next_difference():
            left, came = self._step()
            gone += range(self.at, self.at + left)
            fresh += range(self.to, self.to + came)
            self.at, self.to = self.at + left, self.to + came
        gone += range(self.at, len(self.old))
        fresh += range(self.to, len(self.new))
        return gone, fresh

    @abstractmethod
    def to_next_difference(self) -> bool:
        """Go on as long as both are alike. Returns False at the end of one of them."""

    def _step(self) -> tuple[int, int]:
        """How many of the old ones left, and how many of the new ones came, until both go on alike."""
        old = self.old[self.at : self.at + _NEAR]
        new = self.new[self.to : self.to + _NEAR]
        for left, came in _STEPS:
            inside = left < len(old) and came < len(new)
            if inside and not self._differs(old[left], new[came]):
                return left, came
        return self._looked_up(old[0], new[0])

    def _looked_up(self, ours: Item, theirs: Item) -> tuple[int, int]:
        if self._all is None:
            self._all = set(map(self._key, self.old)), set(map(self._key, self.new))
        before, after = self._all
        left, came = self._key(ours) not in after, self._key(theirs) not in before
        return (int(left), int(came)) if left or came else (1, 1)


class _ItemWalk(Walk[Hashable]):
    """Of items that are the same when they are equal."""

    def to_next_difference(self) -> bool:
        old, new, at, to = self.old, self.new, self.at, self.to
        while at < len(old) and to < len(new):
            ours, theirs = old[at : at + BLOCK], new[to : to + BLOCK]
            length = min(len(ours), len(theirs))
            if ours == theirs:
                same = length
            else:
                same = next(_different(ours, theirs, ne), length)
            at, to = at + same, to + same
            if same < length:
                break
        self.at, self.to = at, to
        return at < len(old) and to < len(new)


def _different(
    ours: Sequence[Item],
    theirs: Sequence[Item],
    differs: Callable[[Item, Item], bool],
) -> Iterator[int]:
    return compress(count(), map(differs, ours, theirs))


def _itself(item: Hashable) -> Hashable:
    return item
