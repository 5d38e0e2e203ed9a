"""Which rules another one leaves without effect: Kafka's precedence, asked of the names that a rule could decide for."""

from __future__ import annotations

from itertools import count

from quotascope.metrics import NO_RULE, QuotaEntity, QuotaRules, Resolution, RuleTable
from quotascope.metrics.entities import Name


def overruling_rule(rules: RuleTable, entity: QuotaEntity) -> QuotaEntity | None:
    """
    The rule that decides instead of one of ``rules`` for every client that sends a client-id; None when it decides for some.

    ``<default>/<default>`` does so to the rule for the default user and to all for client-ids. Only names without a rule of
    their own need to be asked: a stronger rule takes further names away, and gives none back.
    """
    decision = rules.decide(*_someone(rules, entity.user, entity.client_id))
    return None if decision.entity in (entity, None) else decision.entity


def overruled_by(rules: RuleTable, added: QuotaEntity) -> list[QuotaEntity]:
    """
    The rules that would lose some clients, or all of them, to one that is added.

    Looked for among the clients that both are for; one that a third rule decides for already is no loss.
    """
    after = QuotaRules(rules)
    after.set(added, 1.0)
    lost = []
    for entity in rules:
        user, client_id = (
            _narrower(entity.user, added.user),
            _narrower(entity.client_id, added.client_id),
        )
        asked = _someone(rules, user, client_id)
        before = rules.decide(*asked).entity
        if before == entity != added and after.decide(*asked).entity == added:
            lost.append(entity)
    return lost


def decide_for_others(rules: RuleTable, user: str) -> Resolution:
    """What decides for a user under each client-id that has no rule of its own."""
    return rules.decide(user, unnamed(rules)) or NO_RULE


def unnamed(rules: RuleTable) -> str:
    """A name that no rule has, neither for a user nor for a client-id."""
    names = {name for entity in rules for name in (entity.user, entity.client_id)}
    candidates = (f"any-other-{number}" for number in count())
    return next(name for name in candidates if name not in names)


def _someone(
    rules: RuleTable, user: Name | None, client_id: Name | None
) -> tuple[str, str]:
    """A user and a client-id: the names where they are given, else some without a rule of their own."""
    other = unnamed(rules)
    return (
        user if isinstance(user, str) else other,
        client_id if isinstance(client_id, str) else other,
    )


def _narrower(one: Name | None, other: Name | None) -> Name | None:
    return one if isinstance(one, str) else other
