"""Which quota applies to a user and a client-id, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from quotascope.metrics import Level, QuotaEntity, QuotaRules, QuotaType, Resolution
from quotascope.quotas import unnamed

from ..limits import Limits
from ..snapshot import LimitState, NodeUsage

PRINCIPAL_TYPE: Final = "User:"
"""How the string form of a principal begins (`KafkaPrincipal.toString`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelRule:
    """One of the eight entities that a quota can be configured for, and its quota."""

    level: Level
    entity: QuotaEntity
    bound: float | None
    """In Kafka's unit; None when no quota is configured for it."""
    applies: bool = True
    """False at the levels with a client-id for a client that sends none: such a client escapes them (KIP-55)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Which quota of one type applies to one user and client-id."""

    quota_type: QuotaType
    levels: tuple[LevelRule, ...]
    """All eight, strongest first."""
    decision: Resolution
    """What applies now."""
    fallback: Resolution | None
    """What would apply if the deciding rule were removed; None when no rule decides."""
    measured_as: tuple[str | None, str | None] | None
    """
    User and client-id under which the broker measures; empty for a dimension that it does not separate, None when it does not measure.

    A name is None when each user, or each client, has its own.
    """
    by_client: bool = False
    """Whether the broker measures those clients of the user that send a client-id by it."""
    overruled: bool = False
    """Whether a custom quota callback decides on every node, so that no limit is known."""
    shared: Mapping[str, float] = field(default_factory=dict)
    """By node the limit that Strimzi's quotas plugin sets to all its clients but the excluded ones together, in Kafka's unit; infinite when unlimited."""

    @property
    def limit_state(self) -> LimitState:
        """Whether the client has a limit of this type."""
        if self.overruled:
            return LimitState.UNKNOWN
        limited = self.decision.bound is not None
        return LimitState.LIMITED if limited else LimitState.UNLIMITED


def explain(
    limits: Limits, user: str | None, client_id: str | None, nodes: Iterable[NodeUsage] = ()
) -> list[Explanation]:
    """
    The explanation for each quota type. Needs no traffic: it follows from the configured quotas alone.

    Args:
        limits: the configured quotas.
        user: the principal's name; None for any user that no quota names.
        client_id: what the client sends; empty for a client that sends none, None for any client-id that no quota names.
        nodes: what the nodes report of themselves, which may be limits of Strimzi's quotas plugin.

    """
    tables = [limits.rules.get(kind, QuotaRules()) for kind in QuotaType]
    other = unnamed(*tables)
    callbacks = overruling(limits)
    overruled = bool(callbacks) and callbacks.keys() == limits.nodes.keys()
    name = other if user is None else user
    sent = other if client_id is None else client_id
    found = []
    for kind, rules in zip(QuotaType, tables, strict=True):
        decision, fallback = rules.decide(name, sent), None
        if decision.entity is not None:
            rest = QuotaRules(rules)
            rest.remove(decision.entity)
            fallback = rest.decide(name, sent)
        tags = rules.metric_tags(name, sent)
        by_user, by_client = (None if tag == other else tag for tag in tags)
        found.append(
            Explanation(
                quota_type=kind,
                levels=tuple(
                    LevelRule(level=level, entity=entity, bound=bound, applies=sent != "" or entity.client_id is None)
                    for level, entity, bound in rules.candidates(name, sent)
                ),
                decision=decision,
                fallback=fallback,
                measured_as=(by_user, by_client) if rules.enabled else None,
                by_client=rules.enabled and rules.metric_tags(name, other)[1] != "",
                overruled=overruled,
                shared={node.broker: node.static_limits[kind] for node in nodes if kind in node.static_limits},
            )
        )
    return found


def user_of(limits: Limits, name: str) -> str:
    """
    The user that a principal's string form such as ``User:alice`` means; any other name unchanged.

    Kafka's quotas hold the name alone. A name that really begins with ``User:`` is one that some quota names.
    """
    names = {entity.user for rules in limits.rules.values() for entity in rules}
    return name if name in names else name.removeprefix(PRINCIPAL_TYPE)


def overruling(limits: Limits) -> dict[str, str]:
    """The custom quota callback of each node that has one, by node id: it decides there instead of the configured quotas."""
    return {
        node_id: settings.quota_callback_class
        for node_id, settings in limits.nodes.items()
        if settings.quota_callback_class is not None
    }
