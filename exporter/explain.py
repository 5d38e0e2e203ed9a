"""Which quota would decide for a user and a client id, and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from quotascope.metrics import (
    Level,
    QuotaEntity,
    QuotaRules,
    QuotaType,
    Resolution,
    RuleTable,
)

from .limits import Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One of the eight entities that a quota could be configured for."""

    level: Level
    entity: QuotaEntity
    bound: float | None
    """In Kafka's unit; None when no quota is configured for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What decides for one user and client id, for one quota type."""

    quota_type: QuotaType
    candidates: tuple[Candidate, ...]
    """All eight levels, strongest first."""
    decision: Resolution
    """What applies now."""
    fallback: Resolution | None
    """What would apply if the deciding rule were removed; None when no rule decides."""
    measured_as: tuple[str, str] | None
    """User and client id under which the broker counts; empty when not told apart, None when it does not count."""


def explain(limits: Limits, user: str, client_id: str) -> list[Explanation]:
    """The explanation for each quota type. Needs no traffic: it follows from the configured quotas alone."""
    return [
        _explain(kind, limits.rules.get(kind, QuotaRules()), user, client_id)
        for kind in QuotaType
    ]


def overruling(limits: Limits) -> dict[str, str]:
    """The custom quota callback of each node that has one, by node id: there it decides, and not the configured quotas."""
    return {
        node_id: settings.quota_callback_class
        for node_id, settings in limits.nodes.items()
        if settings.quota_callback_class is not None
    }


def _explain(
    quota_type: QuotaType, rules: RuleTable, user: str, client_id: str
) -> Explanation:
    decision = rules.decide(user, client_id)
    return Explanation(
        quota_type=quota_type,
        candidates=tuple(_candidates(rules, user, client_id)),
        decision=decision,
        fallback=_without(rules, decision, user, client_id),
        measured_as=rules.metric_tags(user, client_id) if rules.enabled else None,
    )


def _candidates(rules: RuleTable, user: str, client_id: str) -> Iterator[Candidate]:
    for level, entity, bound in rules.candidates(user, client_id):
        yield Candidate(level=level, entity=entity, bound=bound)


def _without(
    rules: RuleTable, decision: Resolution, user: str, client_id: str
) -> Resolution | None:
    if decision.entity is None:
        return None
    rest = QuotaRules(rules)
    rest.remove(decision.entity)
    return rest.decide(user, client_id)
