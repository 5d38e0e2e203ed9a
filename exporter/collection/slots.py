"""A number for each entity, the same whatever limit it is under."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count
from typing import Final

from quotascope.metrics import QuotaType

from ..snapshot import Entity, EntityUsage

_SPARE: Final = 1000
_Key = tuple[str, QuotaType, str, str]


class Slots:
    """
    Numbers that are given once and never again.

    Entities are recognised by being the same object, which costs a tenth of hashing their names; a new object
    (its limit has changed) by broker, quota type, user and client id.
    """

    def __init__(self) -> None:
        self._numbers = count()
        self._by_name: dict[_Key, int] = {}
        self._by_identity: dict[int, tuple[Entity, int]] = {}
        self._last: Sequence[EntityUsage] = ()
        self._last_numbers: list[int] = []

    def of(self, usages: Sequence[EntityUsage]) -> list[int]:
        """The number of each entity."""
        if usages is not self._last:
            known = self._by_identity
            self._last_numbers = [
                found[1]
                if (found := known.get(id(usage.entity))) is not None
                else self._learn(usage.entity)
                for usage in usages
            ]
            self._last = usages
        return self._last_numbers

    def _learn(self, entity: Entity) -> int:
        key = (entity.broker, entity.quota_type, entity.user, entity.client_id)
        number = self._by_name.get(key)
        if number is None:
            number = self._by_name[key] = next(self._numbers)
        # kept with the object, whose identity would else be that of another one some day
        self._by_identity[id(entity)] = entity, number
        return number

    def crowded(self, entities: int) -> bool:
        """Whether far more entities are remembered than there are."""
        return len(self._by_identity) > 2 * entities + _SPARE

    def keep_only(self, numbers: Iterable[int], usages: Iterable[EntityUsage]) -> None:
        """Forget all but these numbers, and all objects but those of these usages."""
        wanted = set(numbers)
        self._by_name = {k: n for k, n in self._by_name.items() if n in wanted}
        kept = {id(usage.entity) for usage in usages}
        self._by_identity = {i: v for i, v in self._by_identity.items() if i in kept}
