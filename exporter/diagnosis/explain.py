"""Which quota applies to a user and a client-id, and why: as values, as JSON and in words. The terminal, the page and the API show the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Final

from quotascope.metrics import Level, QuotaEntity, QuotaRules, QuotaType, Resolution, spelled
from quotascope.quotas import unnamed

from ..exposition.rows import rule_labels
from ..limits import Limits
from ..mapping import in_base_unit
from ..snapshot import LimitState, NodeUsage
from ..snapshot.entity import finite
from .units import type_name

PRINCIPAL_TYPE: Final = "User:"
"""How the string form of a principal begins (`KafkaPrincipal.toString`)."""
_UNITS = {
    QuotaType.PRODUCE: " B/s",
    QuotaType.FETCH: " B/s",
    QuotaType.REQUEST: " % of a thread",
    QuotaType.CONTROLLER_MUTATION: " mutations/s",
}


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
        return LimitState.UNKNOWN if self.overruled else _state(self.decision)


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


def as_json(
    user: str | None, client_id: str | None, explanations: Iterable[Explanation], callbacks: Mapping[str, str]
) -> dict[str, object]:
    """
    An explanation for programs; ``limit`` is in the units of the metrics, ``configured`` in Kafka's.

    ``limit_state`` says what a missing limit means. ``callbacks`` are the nodes on which a custom quota callback decides
    instead, with its class: what is explained does not hold there. ``shared`` are the limits of Strimzi's quotas plugin there, null when unlimited.
    """
    quotas = []
    for each in explanations:
        kind, fallback, measured_as = each.quota_type, each.fallback, each.measured_as
        then = None if fallback is None else _state(fallback)
        levels = []
        for rule in each.levels:
            level = _json_rule(kind, rule.entity, rule.bound)
            if client_id is None and isinstance(rule.entity.client_id, str):
                level["rule_client_id"] = None
            if user is None and isinstance(rule.entity.user, str):
                level["rule_user"] = None
            levels.append({**level, "applies": rule.applies})
        quotas.append(
            {
                "quota_type": kind.label,
                "quota_key": kind.quota_key,
                "limit_state": each.limit_state.value,
                "decision": _json_resolution(kind, each.decision),
                "fallback": _json_resolution(kind, fallback),
                "fallback_limit_state": then,
                "shared": {node: finite(in_base_unit(kind, bound)) for node, bound in each.shared.items()},
                "measured_as": measured_as and dict(zip(("user", "client_id"), measured_as, strict=True)),
                "levels": levels,
            }
        )
    return {
        "user": user,
        "client_id": client_id,
        "callbacks": dict(callbacks),
        "quotas": quotas,
    }


def asked_user(user: str | None) -> str:
    """The user that an explanation is for."""
    return "any user that no quota names" if user is None else spelled(user, None)


def asked_client(client_id: str | None) -> str:
    """The client-id that an explanation is for."""
    if client_id is None:
        return "any client-id that no quota names"
    return spelled(None, client_id) if client_id else "no client-id"


def level_text(entity: QuotaEntity, user: str | None, client_id: str | None) -> str:
    """What a quota would be for; one for the very names that are asked about is called as they are."""
    unnamed_user = user is None and isinstance(entity.user, str)
    if not unnamed_user and (client_id or not isinstance(entity.client_id, str)):
        return str(entity)
    names = []
    if entity.user is not None:
        names.append(asked_user(None) if unnamed_user else str(QuotaEntity(entity.user)))
    if isinstance(entity.client_id, str):
        names.append(asked_client(client_id))
    elif entity.client_id is not None:
        names.append(str(QuotaEntity(None, entity.client_id)))
    return ", ".join(names)


def sentence(explanation: Explanation, user: str | None, client_id: str | None) -> str:
    """Which rule applies for a quota type, which would without it, and what the broker counts together."""
    quota_type, decision = explanation.quota_type, explanation.decision
    name = f"{type_name(quota_type)}: "
    if explanation.shared:
        return f"{name}{_shared(explanation)}"
    if explanation.overruled:
        return f"{name}unknown; a custom quota callback sets it on every node"
    counted = _counted(explanation, user, client_id)
    if decision.entity is None or explanation.fallback is None:
        return f"{name}unlimited; {counted}"
    now = f"{decision.entity.rule} applies, {_amount(quota_type, decision.bound)}"
    then = explanation.fallback
    other = "unlimited"
    if then.entity is not None:
        other = f"{then.entity.rule}, {_amount(quota_type, then.bound)}"
    return f"{name}{now}; without it: {other}; {counted}"


def _shared(explanation: Explanation) -> str:
    """The limits of Strimzi's quotas plugin, and its rule as it is configured."""
    kind, limits = explanation.quota_type, explanation.shared
    amounts = {node: _amount(kind, bound) for node, bound in limits.items()}
    if kind is QuotaType.CONTROLLER_MUTATION:
        return "unlimited under Strimzi's quotas plugin"
    each = f"{next(iter(amounts.values()))} on each node"
    if len({*limits.values()}) > 1:
        each = ", ".join(f"{text} on node {node}" for node, text in amounts.items())
    rule = f"client.quota.callback.static.{kind.label}"
    return f"{each}, for all clients together except excluded principals ({rule})"


def _counted(explanation: Explanation, user: str | None, client_id: str | None) -> str:
    name = asked_user(user)
    match explanation.measured_as:
        case None:
            text = "not measured, because no such quota is configured"
        case ("", None):
            text = "each client-id counted for all users together"
        case ("", _):
            text = f"counted for all users with {asked_client(client_id)} together"
        case (_, "") if client_id == "" and explanation.by_client:
            text = f"counted for the clients of {name} without client-id"
        case (_, ""):
            text = f"counted for all clients of {name} together"
        case (_, None):
            text = "each client-id of this user counted alone"
        case _:
            text = "counted for this user and client-id alone"
    return text


def _amount(quota_type: QuotaType, bound: float | None) -> str:
    return "unlimited" if bound is None or not isfinite(bound) else f"{bound:,.10g}{_UNITS[quota_type]}"


def _state(resolution: Resolution) -> LimitState:
    return LimitState.UNLIMITED if resolution.bound in {None, inf} else LimitState.LIMITED


def _json_resolution(quota_type: QuotaType, resolution: Resolution | None) -> dict[str, object] | None:
    if resolution is None or resolution.entity is None:
        return None
    return _json_rule(quota_type, resolution.entity, resolution.bound)


def _json_rule(quota_type: QuotaType, entity: QuotaEntity, bound: float | None) -> dict[str, object]:
    rule, level, rule_user, rule_client_id = rule_labels(entity)
    return {
        "rule": rule,
        "level": level,
        "rule_user": rule_user,
        "rule_client_id": rule_client_id,
        "limit": None if bound is None else finite(in_base_unit(quota_type, bound)),
        "configured": bound,
    }
