"""How the usages of one snapshot became those of the next."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress, count
from operator import attrgetter, is_not

from ..difference import BLOCK, Walk
from ..snapshot import EntityUsage
from .splice import Splice

_detailed = attrgetter("detailed")


@dataclass(slots=True)
class OtherUsages:
    """Usages that are other objects than before, of entities that stayed."""

    places: list[int] = field(default_factory=list)
    """Where they are now in a list of usages, ascending."""
    now: list[EntityUsage] = field(default_factory=list)
    before: list[EntityUsage] = field(default_factory=list)

    @classmethod
    def between(
        cls, before: Sequence[EntityUsage], now: Sequence[EntityUsage]
    ) -> OtherUsages:
        """Those of two lists whose entities are the same."""
        others = list(map(is_not, before, now))
        return cls(
            list(compress(count(), others)),
            list(compress(now, others)),
            list(compress(before, others)),
        )

    def inside(self, start: int, stop: int) -> OtherUsages:
        """Those of a run of places, counted from its start."""
        run = slice(bisect_left(self.places, start), bisect_left(self.places, stop))
        rows = [place - start for place in self.places[run]]
        return OtherUsages(rows, self.now[run], self.before[run])

    def turned(self) -> OtherUsages:
        """Those that are shown in other detail than before."""
        turned = list(
            map(is_not, map(_detailed, self.now), map(_detailed, self.before))
        )
        if not any(turned):
            return OtherUsages()
        return OtherUsages(
            list(compress(self.places, turned)),
            list(compress(self.now, turned)),
            list(compress(self.before, turned)),
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
        """Compare two snapshots, whose usages are the same when they are the same objects; entities when they are equal, too."""
        walk = _UsageWalk(before, now)
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

    def __init__(self, old: Sequence[EntityUsage], new: Sequence[EntityUsage]) -> None:
        super().__init__(old, new, differs=_of_another_entity, key=_entity_id)
        self.others = OtherUsages()

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
            if _of_another_entity(before, now):
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
    ours, theirs = before.entity, now.entity
    if ours is theirs:
        return False
    # most differ in this already, and the rest takes long
    return ours.client_id != theirs.client_id or ours != theirs


def _entity_id(usage: EntityUsage) -> int:
    return id(usage.entity)
