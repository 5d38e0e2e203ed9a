"""Where two lists differ, quickly when they do not differ much."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import compress, count
from operator import is_not
from typing import Final

_BLOCK: Final = 64
"""So many items are compared at once, and looked through for one that moved."""


Differs = Callable[[object, object], bool]


def difference(
    old: Sequence[object], new: Sequence[object], differs: Differs = is_not
) -> tuple[list[int], list[int]]:
    """
    The places of items that left the old list, and of items that are fresh in the new one.

    What remains is the same in both, in the same sequence. An item that moved left, and is fresh.

    Args:
        old: A list.
        new: What became of it.
        differs: Whether two items are not the same.

    """
    gone: list[int] = []
    fresh: list[int] = []
    at = to = 0
    while at < len(old) and to < len(new):
        ours, theirs = old[at : at + _BLOCK], new[to : to + _BLOCK]
        if ours == theirs:
            at, to = at + len(ours), to + len(theirs)
            continue
        same = next(_different(ours, theirs, differs), min(len(ours), len(theirs)))
        left, came = _step(ours[same:], theirs[same:], differs)
        at, to = at + same, to + same
        gone += range(at, at + left)
        fresh += range(to, to + came)
        at, to = at + left, to + came
    gone += range(at, len(old))
    fresh += range(to, len(new))
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


def _different(
    ours: Sequence[object], theirs: Sequence[object], differs: Differs
) -> Iterator[int]:
    return compress(count(), map(differs, ours, theirs))


def _step(
    ours: Sequence[object], theirs: Sequence[object], differs: Differs
) -> tuple[int, int]:
    """How many of ours left, and how many of theirs came, until both go on alike; one of each where that is too far off."""
    if not ours or not theirs:
        return 0, 0
    came, left = _place(theirs, ours[0], differs), _place(ours, theirs[0], differs)
    if came is None and left is None:
        return 1, 1
    if left is None or (came is not None and came <= left):
        return 0, came or 0
    return left, 0


def _place(items: Sequence[object], item: object, differs: Differs) -> int | None:
    places = (at for at, each in enumerate(items) if not differs(each, item))
    return next(places, None)
