"""The entities of one snapshot after the other in their order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from quotascope.metrics import QuotaType

from ..difference import difference
from ..snapshot import Entity, EntityUsage
from .section import Section


class Order:
    """
    Keeps the entities of all quota types sorted.

    It is quick where a snapshot has the same objects as the last one, but for some that
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
        if self._updatable and self._updated(before):
            self._find(usages)
        else:
            self._sort(usages)

    def _sort(self, usages: Sequence[EntityUsage]) -> None:
        kinds = [entity.quota_type for entity in self._entities]
        updatable = [
            section.sort(usages, [at for at, each in enumerate(kinds) if each is kind])
            for kind, section in self.sections.items()
        ]
        self._updatable = all(updatable)

    def _updated(self, before: list[Entity]) -> bool:
        now = self._entities
        left, came = difference(before, now)
        if 2 * len(came) > len(now):
            return False
        gone = _by_type(before[place] for place in left)
        fresh = _by_type(now[place] for place in came)
        return all(
            section.update(gone[kind], fresh[kind])
            for kind, section in self.sections.items()
        )

    def _find(self, usages: Sequence[EntityUsage]) -> None:
        entities = self._entities

        @cache
        def places() -> dict[int, int]:
            return {id(entity): at for at, entity in enumerate(entities)}

        start = 0
        for section in self.sections.values():
            start = section.find(usages, entities, start, places)


def _by_type(entities: Iterable[Entity]) -> Mapping[QuotaType, list[Entity]]:
    found: dict[QuotaType, list[Entity]] = defaultdict(list)
    for entity in entities:
        found[entity.quota_type].append(entity)
    return found
