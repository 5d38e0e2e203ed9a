"""A number for each entity, the same whatever limit it is under."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from quotascope.metrics import QuotaType

from ..snapshot import Entity, EntityUsage

_SPARE: Final = 1000
_Key = tuple[str, QuotaType, str, str]


class Slots:
    """
    Numbers from 0 on, none left out.

    Entities are recognised by being the same object, which costs a tenth of hashing their names; a new object
    (its limit has changed) by broker, quota type, user and client id. All together are recognised at once where they are those
    of the last snapshot.
    """

    def __init__(self) -> None:
        self._by_name: dict[_Key, int] = {}
        self._by_identity: dict[int, tuple[Entity, int]] = {}
        self._last: list[Entity] = []
        self._last_numbers: list[int] = []

    def __len__(self) -> int:
        """How many numbers are in use."""
        return len(self._by_name)

    def of(self, usages: Sequence[EntityUsage]) -> list[int]:
        """The number of each entity."""
        entities = [usage.entity for usage in usages]
        if entities != self._last:
            known = self._by_identity
            self._last_numbers = [
                found[1]
                if (found := known.get(id(entity))) is not None
                else self._learn(entity)
                for entity in entities
            ]
            self._last = entities
        return self._last_numbers

    def _learn(self, entity: Entity) -> int:
        number = self._by_name.setdefault(_key(entity), len(self._by_name))
        # kept with the object, whose identity would else be that of another one some day
        self._by_identity[id(entity)] = entity, number
        return number

    def crowded(self, entities: int) -> bool:
        """Whether far more entities are remembered than there are."""
        return len(self._by_identity) > 2 * entities + _SPARE

    def keep_only(self, usages: Sequence[EntityUsage]) -> list[int]:
        """Forget all entities but these, and number them anew: for each new number the old one."""
        before = self._by_name
        self._by_name, self._by_identity, self._last = {}, {}, []
        self.of(usages)
        return [before[key] for key in self._by_name]


def _key(entity: Entity) -> _Key:
    return entity.broker, entity.quota_type, entity.user, entity.client_id
