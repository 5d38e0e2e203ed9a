"""Where two lists differ, quickly when they do not differ much."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress, count
from operator import is_not
from typing import Final

_BLOCK: Final = 64
"""So many items are compared at once, and looked through for one that moved."""


def difference(
    old: Sequence[object], new: Sequence[object]
) -> tuple[list[int], list[int]]:
    """
    The places of items that left the old list, and of items that are fresh in the new one.

    What remains is the same in both, in the same sequence. An item that moved left, and is fresh.
    """
    gone: list[int] = []
    fresh: list[int] = []
    at = to = 0
    while at < len(old) and to < len(new):
        ours, theirs = old[at : at + _BLOCK], new[to : to + _BLOCK]
        if ours == theirs:
            at, to = at + len(ours), to + len(theirs)
            continue
        same = _first_different(ours, theirs)
        left, came = _step(ours[same:], theirs[same:])
        at, to = at + same, to + same
        gone += range(at, at + left)
        fresh += range(to, to + came)
        at, to = at + left, to + came
    gone += range(at, len(old))
    fresh += range(to, len(new))
    return gone, fresh


def _first_different(ours: Sequence[object], theirs: Sequence[object]) -> int:
    different = compress(count(), map(is_not, ours, theirs))
    return next(different, min(len(ours), len(theirs)))


def _step(ours: Sequence[object], theirs: Sequence[object]) -> tuple[int, int]:
    """How many of ours left, and how many of theirs came, until both go on alike; one of each where that is too far off."""
    if not ours or not theirs:
        return 0, 0
    came, left = _place(theirs, ours[0]), _place(ours, theirs[0])
    if came is None and left is None:
        return 1, 1
    if left is None or (came is not None and came <= left):
        return 0, came or 0
    return left, 0


def _place(items: Sequence[object], item: object) -> int | None:
    return next((at for at, each in enumerate(items) if each is item), None)
