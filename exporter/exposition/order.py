"""The entities of one snapshot after the other in their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from quotascope.metrics import QuotaType

from ..difference import difference
from ..snapshot import Entity, EntityUsage
from .section import Section
from .whereabouts import Whereabouts


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
        self._updatable = True

    def take(self, usages: Sequence[EntityUsage]) -> None:
        """Sort a snapshot's entities."""
        entities = [usage.entity for usage in usages]
        if entities == self._entities:
            for section in self.sections.values():
                section.follow(usages)
            return
        before, self._entities = self._entities, entities
        if not (self._updatable and self._updated(usages, before)):
            self._sort(usages)

    def _sort(self, usages: Sequence[EntityUsage]) -> None:
        kinds = [entity.quota_type for entity in self._entities]
        updatable = [
            section.sort(usages, [at for at, each in enumerate(kinds) if each is kind])
            for kind, section in self.sections.items()
        ]
        self._updatable = all(updatable)

    def _updated(self, usages: Sequence[EntityUsage], before: list[Entity]) -> bool:
        now = self._entities
        gone, fresh = difference(before, now)
        if 2 * len(fresh) > len(now):
            return False
        whereabouts = Whereabouts(now)
        return all(
            section.update(
                usages,
                [before[at] for at in gone if before[at].quota_type is kind],
                [at for at in fresh if now[at].quota_type is kind],
                whereabouts,
            )
            for kind, section in self.sections.items()
        )
