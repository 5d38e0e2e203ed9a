"""How the usages of one snapshot became those of the next."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress, count
from operator import is_not

from ..difference import BLOCK, Walk
from ..snapshot import EntityUsage
from .splice import Splice


@dataclass(frozen=True, slots=True)
class OtherUsages:
    """Usages that are other objects than before, of entities that stayed."""

    places: list[int]
    """Where they are now, ascending."""
    now: list[EntityUsage]
    before: list[EntityUsage]

    def inside(self, places: slice) -> OtherUsages:
        """Those of a run of places, counted from its start."""
        run = slice(
            bisect_left(self.places, places.start),
            bisect_left(self.places, places.stop),
        )
        rows = [place - places.start for place in self.places[run]]
        return OtherUsages(rows, self.now[run], self.before[run])

    def among(self, rows: Mapping[int, int]) -> OtherUsages:
        """Those at some places, counted as these say."""
        mine = self._only([place in rows for place in self.places])
        return replace(mine, places=[rows[place] for place in mine.places])

    def turned(self) -> OtherUsages:
        """Those that are shown in other detail than before."""
        return self._only(
            [
                now.detailed is not before.detailed
                for now, before in zip(self.now, self.before, strict=True)
            ]
        )

    def _only(self, chosen: list[bool]) -> OtherUsages:
        return OtherUsages(
            list(compress(self.places, chosen)),
            list(compress(self.now, chosen)),
            list(compress(self.before, chosen)),
        )


@dataclass(frozen=True)
class UsageChanges:
    """All of it."""

    length: int
    """How many usages there were."""
    gone: list[int]
    """Where entities were that left, ascending."""
    fresh: list[int]
    """Where entities are that came, ascending."""
    others: OtherUsages

    @classmethod
    def between(
        cls, before: Sequence[EntityUsage], now: Sequence[EntityUsage]
    ) -> UsageChanges:
        """Compare two snapshots; entities and usages are the same when they are the same objects."""
        walk = _UsageWalk(before, now, differs=_of_another_entity, key=_entity_id)
        gone, fresh = walk.through()
        return cls(len(before), gone, fresh, walk.others)

    @cached_property
    def moved(self) -> list[int]:
        """Where each entity is now, by its place before; anything for those that left."""
        length = self.length + len(self.fresh) - len(self.gone)
        return Splice.between(length, self.fresh, self.gone).apply(
            range(length), [-1] * len(self.gone)
        )


class _UsageWalk(Walk[EntityUsage]):
    """Goes along the entities, and takes note of other usages."""

    others: OtherUsages

    def through(self) -> tuple[list[int], list[int]]:
        self.others = OtherUsages([], [], [])
        return super().through()

    def to_next_difference(self) -> bool:
        while self.at < len(self.old) and self.to < len(self.new):
            if self._to_other_entity():
                return True
        return False

    def _to_other_entity(self) -> bool:
        """Go on to the next one, or so many items. Returns whether one was found."""
        others, start = self.others, self.to
        old = self.old[self.at : self.at + BLOCK]
        new = self.new[start : start + BLOCK]
        for step in compress(count(), map(is_not, old, new)):
            before, now = old[step], new[step]
            if before.entity is not now.entity:
                self._go(step)
                return True
            others.places.append(start + step)
            others.now.append(now)
            others.before.append(before)
        self._go(min(len(old), len(new)))
        return False

    def _go(self, steps: int) -> None:
        self.at += steps
        self.to += steps


def _of_another_entity(before: EntityUsage, now: EntityUsage) -> bool:
    return before.entity is not now.entity


def _entity_id(usage: EntityUsage) -> int:
    return id(usage.entity)
