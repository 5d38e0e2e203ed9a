"""The entities of one snapshot after the other in their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from quotascope.metrics import QuotaType

from ..snapshot import Entity, EntityUsage
from .section import Section
from .splice import Splice


class Order:
    """
    Keeps the entities of all quota types sorted.

    It is quick where a snapshot has the entities of the last one in the same sequence, but for some that
    came or left.
    """

    def __init__(self) -> None:
        self.sections: Mapping[QuotaType, Section] = {
            kind: Section() for kind in QuotaType
        }
        self._entities: list[Entity] = []
        self._ids: set[int] = set()
        self._updatable = True

    def take(self, usages: Sequence[EntityUsage]) -> None:
        """Sort a snapshot's entities."""
        entities = [usage.entity for usage in usages]
        if entities == self._entities:
            for section in self.sections.values():
                section.follow(usages)
            return
        before, known = self._entities, self._ids
        self._entities, self._ids = entities, set(map(id, entities))
        if not (self._updatable and self._updated(usages, before, known)):
            self._sort(usages)

    def _sort(self, usages: Sequence[EntityUsage]) -> None:
        kinds = [entity.quota_type for entity in self._entities]
        updatable = [
            section.sort(usages, [at for at, each in enumerate(kinds) if each is kind])
            for kind, section in self.sections.items()
        ]
        self._updatable = all(updatable)

    def _updated(
        self, usages: Sequence[EntityUsage], before: list[Entity], known: set[int]
    ) -> bool:
        now, ids = self._entities, self._ids
        fresh = [at for at, one in enumerate(map(id, now)) if one not in known]
        gone = [at for at, one in enumerate(map(id, before)) if one not in ids]
        if 2 * len(fresh) > len(now):
            return False
        change = Splice.between(len(before), gone, fresh)
        if change.apply(before, [now[at] for at in fresh]) != now:
            return False
        moved = change.moved(len(before))
        return all(
            section.update(
                usages,
                [before[at] for at in gone if before[at].quota_type is kind],
                [at for at in fresh if now[at].quota_type is kind],
                moved,
            )
            for kind, section in self.sections.items()
        )
