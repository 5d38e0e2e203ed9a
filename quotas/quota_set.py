"""All quotas of a cluster, or of a file, at one moment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from quotascope.clients.quota_admin import ConfiguredQuota
from quotascope.metrics import QuotaEntity, QuotaRules, QuotaType

from .entity import Entity, from_admin, in_order


class QuotaSet(Mapping[Entity, Mapping[str, float]]):
    """
    Quotas by entity and key, in Kafka's units; never changed once made, and always in the same order.

    Args:
        quotas: values by key (`producer_byte_rate`, …) by entity; an entity without any is left out.

    """

    __slots__ = ("_quotas",)

    def __init__(
        self, quotas: Mapping[Entity, Mapping[str, float]] | None = None
    ) -> None:
        given = quotas or {}
        self._quotas = {
            entity: dict(sorted(given[entity].items()))
            for entity in sorted(given, key=in_order)
            if given[entity]
        }

    @classmethod
    def of(cls, configured: Iterable[ConfiguredQuota]) -> QuotaSet:
        """The quotas of a cluster. Raises `QuotasError` for a kind of entity unknown here."""
        quotas: dict[Entity, dict[str, float]] = {}
        for quota in configured:
            entity = from_admin(quota.entity)
            quotas.setdefault(entity, {})[quota.key] = quota.value
        return cls(quotas)

    def __getitem__(self, entity: Entity) -> Mapping[str, float]:
        return self._quotas[entity]

    def __iter__(self) -> Iterator[Entity]:
        return iter(self._quotas)

    def __len__(self) -> int:
        return len(self._quotas)

    def __repr__(self) -> str:
        return f"QuotaSet({self._quotas!r})"

    def items_by_key(self) -> Iterator[tuple[Entity, str, float]]:
        """Every single quota."""
        for entity, values in self._quotas.items():
            for key, value in values.items():
                yield entity, key, value

    def tables(self) -> dict[QuotaType, QuotaRules]:
        """The rules of each quota type, ready to be resolved; addresses and keys unknown here have no part in it."""
        tables = {kind: QuotaRules() for kind in QuotaType}
        for entity, key, value in self.items_by_key():
            kind = QuotaType.of_quota_key(key)
            if kind is not None and isinstance(entity, QuotaEntity):
                tables[kind].set(entity, value)
        return tables

    def of_entities(self, entities: Iterable[Entity]) -> QuotaSet:
        """Those of some entities only."""
        return QuotaSet(
            {entity: self[entity] for entity in entities if entity in self._quotas}
        )
