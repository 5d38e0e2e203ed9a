"""Which quota would decide for a user and a client id, and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from quotascope.metrics import (
    Level,
    QuotaEntity,
    QuotaRules,
    QuotaType,
    Resolution,
    RuleTable,
)
from quotascope.quotas import unnamed

from .limits import Limits
from .snapshot import LimitState

PRINCIPAL_TYPE: Final = "User:"
"""How the string form of a principal begins (`KafkaPrincipal.toString`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One of the eight entities that a quota could be configured for."""

    level: Level
    entity: QuotaEntity
    bound: float | None
    """In Kafka's unit; None when no quota is configured for it."""
    applies: bool = True
    """False at the levels with a client-id for a client that sends none: such a client escapes them (KIP-55)."""


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
    measured_as: tuple[str, str | None] | None
    """
    User and client id under which the broker counts; empty when not told apart, None when it does not count.

    The client id is None when it is each client's own.
    """
    by_client: bool = False
    """Whether the broker counts the user's clients that send a client-id by that."""
    overruled: bool = False
    """Whether a custom quota callback decides on every node, so that no limit is known."""

    @property
    def limit_state(self) -> LimitState:
        """Whether the client has a limit of this type."""
        if self.overruled:
            return LimitState.UNKNOWN
        limited = self.decision.bound is not None
        return LimitState.LIMITED if limited else LimitState.UNLIMITED


def explain(limits: Limits, user: str, client_id: str | None) -> list[Explanation]:
    """
    The explanation for each quota type. Needs no traffic: it follows from the configured quotas alone.

    Args:
        limits: the configured quotas.
        user: the principal's name.
        client_id: what the client sends; empty for a client that sends none, None for any client-id that no quota names.

    """
    tables = [limits.rules.get(kind, QuotaRules()) for kind in QuotaType]
    other = unnamed(*tables)
    callbacks = overruling(limits)
    overruled = bool(callbacks) and callbacks.keys() == limits.nodes.keys()
    return [
        _explain(kind, rules, user, client_id, other=other, overruled=overruled)
        for kind, rules in zip(QuotaType, tables, strict=True)
    ]


def user_of(limits: Limits, name: str) -> str:
    """
    The user that a principal's string form such as ``User:alice`` means; any other name as it is.

    Kafka's quotas have the name alone. One that really begins so is one that some quota names.
    """
    names = {entity.user for rules in limits.rules.values() for entity in rules}
    return name if name in names else name.removeprefix(PRINCIPAL_TYPE)


def overruling(limits: Limits) -> dict[str, str]:
    """The custom quota callback of each node that has one, by node id: there it decides, and not the configured quotas."""
    return {
        node_id: settings.quota_callback_class
        for node_id, settings in limits.nodes.items()
        if settings.quota_callback_class is not None
    }


def _explain(
    quota_type: QuotaType,
    rules: RuleTable,
    user: str,
    client_id: str | None,
    *,
    other: str,
    overruled: bool,
) -> Explanation:
    asked = other if client_id is None else client_id
    decision = rules.decide(user, asked)
    measured_as: tuple[str, str | None] | None = None
    if rules.enabled:
        tags = rules.metric_tags(user, asked)
        measured_as = (tags[0], None) if tags[1] == other else tags
    return Explanation(
        quota_type=quota_type,
        candidates=tuple(_candidates(rules, user, asked)),
        decision=decision,
        fallback=_without(rules, decision, user, asked),
        measured_as=measured_as,
        by_client=rules.enabled and rules.metric_tags(user, other)[1] != "",
        overruled=overruled,
    )


def _candidates(rules: RuleTable, user: str, client_id: str) -> Iterator[Candidate]:
    for level, entity, bound in rules.candidates(user, client_id):
        applies = client_id != "" or entity.client_id is None
        yield Candidate(level=level, entity=entity, bound=bound, applies=applies)


def _without(
    rules: RuleTable, decision: Resolution, user: str, client_id: str
) -> Resolution | None:
    if decision.entity is None:
        return None
    rest = QuotaRules(rules)
    rest.remove(decision.entity)
    return rest.decide(user, client_id)
