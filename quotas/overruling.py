"""Which rules another one leaves without effect: Kafka's precedence, asked of the names that a rule could decide for."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain, count

from quotascope.metrics import QuotaEntity, QuotaRules, RuleTable
from quotascope.metrics.entities import Name


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
