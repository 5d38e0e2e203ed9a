"""Where two lists differ, quickly when they do not differ much."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import compress, count, product
from operator import is_not, ne
from typing import Final

_BLOCK: Final = 64
"""So many items are compared at once."""
_NEAR: Final = 4
"""So far is looked for where both go on alike, before all items are."""
_STEPS: Final = sorted(
    product(range(_NEAR), repeat=2), key=lambda step: (max(step), step[0] != step[1])
)[1:]
"""How many may have left and come there: the nearest first."""

_Differs = Callable[[object, object], bool]


def difference(
    old: Sequence[object], new: Sequence[object], *, by_value: bool = False
) -> tuple[list[int], list[int]]:
    """
    The places of items that left the old list, and of items that are fresh in the new one.

    What remains is the same in both, in the same sequence. An item that moved left, and is fresh.

    Args:
        old: A list.
        new: What became of it.
        by_value: Whether equal items are the same; they have to be hashable.

    """
    gone: list[int] = []
    fresh: list[int] = []
    walk = _Walk(old, new, by_value=by_value)
    while walk.to_next_difference():
        left, came = walk.step()
        gone += range(walk.at, walk.at + left)
        fresh += range(walk.to, walk.to + came)
        walk.at, walk.to = walk.at + left, walk.to + came
    gone += range(walk.at, len(old))
    fresh += range(walk.to, len(new))
    return gone, fresh


def replaced(old: Sequence[object], new: Sequence[object]) -> list[int]:
    """The places whose item is not the same object in both, those that only one of them has included."""
    places: list[int] = []
    length = min(len(old), len(new))
    for start in range(0, length, _BLOCK):
        ours, theirs = old[start : start + _BLOCK], new[start : start + _BLOCK]
        if ours != theirs:
            places += (start + place for place in _different(ours, theirs, is_not))
    return [
        *(place for place in places if place < length),
        *range(length, max(len(old), len(new))),
    ]


class _Walk:
    """The way through both lists."""

    def __init__(
        self, old: Sequence[object], new: Sequence[object], *, by_value: bool
    ) -> None:
        self.at = self.to = 0
        """Where it has come in the one and in the other."""
        self._old = old
        self._new = new
        self._by_value = by_value
        self._differs: _Differs = ne if by_value else is_not
        self._all: tuple[set[object], set[object]] | None = None

    def to_next_difference(self) -> bool:
        """Go on as long as both are alike. Returns False at the end of one of them."""
        old, new, at, to = self._old, self._new, self.at, self.to
        while at < len(old) and to < len(new):
            ours, theirs = old[at : at + _BLOCK], new[to : to + _BLOCK]
            length = min(len(ours), len(theirs))
            if ours == theirs:
                same = length
            else:
                same = next(_different(ours, theirs, self._differs), length)
            at, to = at + same, to + same
            if same < length:
                break
        self.at, self.to = at, to
        return at < len(old) and to < len(new)

    def step(self) -> tuple[int, int]:
        """How many of the old ones left, and how many of the new ones came, until both go on alike."""
        old = self._old[self.at : self.at + _NEAR]
        new = self._new[self.to : self.to + _NEAR]
        for left, came in _STEPS:
            inside = left < len(old) and came < len(new)
            if inside and not self._differs(old[left], new[came]):
                return left, came
        return self._looked_up(old[0], new[0])

    def _looked_up(self, ours: object, theirs: object) -> tuple[int, int]:
        if self._all is None:
            self._all = set(map(self._key, self._old)), set(map(self._key, self._new))
        before, after = self._all
        left, came = self._key(ours) not in after, self._key(theirs) not in before
        return (int(left), int(came)) if left or came else (1, 1)

    def _key(self, item: object) -> object:
        return item if self._by_value else id(item)


def _different(
    ours: Sequence[object], theirs: Sequence[object], differs: _Differs
) -> Iterator[int]:
    return compress(count(), map(differs, ours, theirs))
