"""A set of quotas, and which of its rules leave others without effect by Kafka's precedence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, count

from quotascope.clients.quota_admin import ConfiguredQuota
from quotascope.metrics import QuotaEntity, QuotaRules, QuotaType, RuleTable
from quotascope.metrics.entities import Name

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


def overruling_rules(rules: RuleTable) -> Mapping[QuotaEntity, QuotaEntity]:
    """
    For each rule that decides for no client that sends a client-id, the one that decides in its place.

    ``<default>/<default>`` overrules so the rule for the default user and all rules for client-ids. Only names without a rule
    of their own need to be asked: a stronger rule takes further names away, and gives none back.
    """
    other = unnamed(rules)
    decisions = (
        (entity, _decided(rules, entity.user, entity.client_id, other))
        for entity in rules
    )
    return {
        entity: decided
        for entity, decided in decisions
        if decided is not None and decided != entity
    }


def overruled_by(rules: RuleTable, added: QuotaEntity) -> list[QuotaEntity]:
    """
    The rules that would lose some clients, or all of them, to one that is added.

    Looked for among the clients that both are for; one that a third rule decides for already is no loss.
    """
    after = QuotaRules(rules)
    after.set(added, 1.0)
    other = unnamed(after)
    lost = []
    for entity in rules:
        user = _narrower(entity.user, added.user)
        client_id = _narrower(entity.client_id, added.client_id)
        before = _decided(rules, user, client_id, other)
        if before == entity and _decided(after, user, client_id, other) != entity:
            lost.append(entity)
    return lost


def unnamed(*tables: RuleTable) -> str:
    """A name that no rule of any of these tables has, neither for a user nor for a client-id."""
    entities = chain.from_iterable(tables)
    names = {name for entity in entities for name in (entity.user, entity.client_id)}
    candidates = (f"any-other-{number}" for number in count())
    return next(name for name in candidates if name not in names)


def _decided(
    rules: RuleTable, user: Name | None, client_id: Name | None, other: str
) -> QuotaEntity | None:
    """What decides for these names; where there is none, for names without a rule of their own."""
    return rules.decide(
        user if isinstance(user, str) else other,
        client_id if isinstance(client_id, str) else other,
    ).entity


def _narrower(one: Name | None, other: Name | None) -> Name | None:
    return one if isinstance(one, str) else other
