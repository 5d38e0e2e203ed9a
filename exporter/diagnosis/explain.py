"""
Explains the quota that applies to a user and a client-id: as values, as JSON and in words.

The terminal, the page and the API show the same explanation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import inf, isfinite

from quotascope.metrics.kafka.entities import Level, QuotaEntity, QuotaType, Resolution, spelled
from quotascope.metrics.kafka.rules import QuotaRules
from quotascope.quotas import PRINCIPAL_TYPE, unnamed

from ..coverage import EntityKind
from ..exposition.rows import rule_labels
from ..limits import Limits
from ..names import asked_as
from ..snapshot import Entity, LimitState, NodeUsage
from ..snapshot.entity import finite
from ..snapshot.visibility import Visibility
from ..untrusted import shown
from .releases import unenforced_text
from .units import type_name


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelRule:
    """One of the eight entities that a quota can be configured for, and its quota."""

    level: Level
    entity: QuotaEntity
    bound: float | None
    """Its quota in Kafka's unit; None if none is configured."""
    applies: bool = True
    """False for a level with a client-id, if the client sends none: it escapes such quotas (KIP-55)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The quota of one type that applies to one user and client-id."""

    quota_type: QuotaType
    levels: tuple[LevelRule, ...]
    """All eight, strongest first."""
    decision: Resolution
    """The rule that applies now."""
    fallback: Resolution | None
    """The rule that would apply if the deciding rule were removed; None when no rule decides."""
    measured_as: tuple[str | None, str | None] | None
    """
    User and client-id under which the broker measures the client; None if it does not measure it.

    A name that the broker does not distinguish is empty. A name is None if every user, or every client-id, is measured
    separately.
    """
    by_client: bool = False
    """True if the broker measures clients of the user that send a client-id by their client-id."""
    overruled: bool = False
    """True if a custom quota callback decides on every node, so that no limit is known."""
    unenforced: str | None = None
    """The reason why a quota of this type has no effect in this cluster; None if it has."""
    shared: Mapping[str, float] = field(default_factory=dict)
    """
    Limits of Strimzi's quotas plugin by node, in Kafka's unit; infinite if unlimited.

    All clients of the node share the limit, except the excluded ones.
    """

    hidden_on: tuple[str, ...] = ()
    """The nodes whose agents may not show the client, though the node measures it."""

    @property
    def limit_state(self) -> LimitState:
        """Return whether the client has a limit of this type."""
        if self.unenforced is not None:
            return LimitState.UNLIMITED
        return LimitState.UNKNOWN if self.overruled else _state(self.decision)


def explain(
    limits: Limits, user: str | None, client_id: str | None, nodes: Iterable[NodeUsage] = ()
) -> list[Explanation]:
    """
    Return the explanation for each quota type, which depends on the configured quotas and not on traffic.

    Args:
        limits: The configured quotas.
        user: The principal's name; None for any user that no quota names.
        client_id: The name that the client sends; empty for a client that sends none, None for any client-id that no
            quota names.
        nodes: The reports of the nodes about themselves, which may have limits of Strimzi's quotas plugin.

    """
    tables = [limits.rules.get(kind, QuotaRules()) for kind in QuotaType]
    nodes_read = list(nodes)
    visibility = Visibility(nodes_read, limits)
    unnamed_client = unnamed(*tables)  # a placeholder for any name that no rule has
    callbacks = overruling(limits)
    overruled = bool(callbacks) and callbacks.keys() == limits.nodes.keys()
    name = unnamed_client if user is None else asked_as(user)
    sent = unnamed_client if client_id is None else asked_as(client_id)
    explanations = []
    for kind, rules in zip(QuotaType, tables, strict=True):
        decision, fallback = rules.decide(name, sent), None
        if decision.entity is not None:
            other_rules = QuotaRules(rules)
            other_rules.remove(decision.entity)
            fallback = other_rules.decide(name, sent)
        tags = rules.metric_tags(name, sent)
        by_user, by_client = (None if tag == unnamed_client else tag for tag in tags)
        _, tag_of_any_client_id = rules.metric_tags(name, unnamed_client)
        seen_as = EntityKind.of(*tags)
        explanations.append(
            Explanation(
                quota_type=kind,
                levels=tuple(
                    LevelRule(level=level, entity=entity, bound=bound, applies=sent != "" or entity.client_id is None)
                    for level, entity, bound in rules.candidates(name, sent)
                ),
                decision=decision,
                fallback=fallback,
                measured_as=(by_user, by_client) if rules.enabled else None,
                by_client=rules.enabled and tag_of_any_client_id != "",
                overruled=overruled,
                unenforced=unenforced_text(limits.releases, kind),
                shared={node.broker: node.static_limits[kind] for node in nodes_read if kind in node.static_limits},
                hidden_on=visibility.hidden_on(kind, seen_as) if nodes_read and rules.enabled and seen_as else (),
            )
        )
    return explanations


def counting(explanations: Iterable[Explanation], user: str | None, client_id: str | None) -> Callable[[Entity], bool]:
    """
    Return a function that tests whether the requests of a client are counted under a measured entity.

    Args:
        explanations: The explanations for the client.
        user: The principal's name; None for any.
        client_id: The client-id; None for any.

    """
    # an entity of exactly these names counts in any case
    pairs = {kind: {(user or "", client_id or "")} for kind in QuotaType}
    users = set[tuple[QuotaType, str]]()
    for explanation in explanations:
        by_user, by_client = explanation.measured_as or (None, None)
        if by_user is not None and by_client is not None:
            pairs[explanation.quota_type].add((by_user, by_client))
        elif by_user:  # each client-id of this user is measured alone
            users.add((explanation.quota_type, by_user))

    def counts(entity: Entity) -> bool:
        kind = entity.quota_type
        return (entity.user, entity.client_id) in pairs[kind] or (kind, entity.user) in users

    return counts


def user_of(limits: Limits, name: str) -> str:
    """
    Return the user of a principal's string form such as ``User:alice``; any other name unchanged.

    Quotas have the name alone. A name that really begins with ``User:`` is recognized only if a quota names it.
    """
    names = {entity.user for rules in limits.rules.values() for entity in rules}
    return name if name in names else name.removeprefix(PRINCIPAL_TYPE)


def overruling(limits: Limits) -> dict[str, str]:
    """
    Return the classes of custom quota callbacks by node id.

    On these nodes, the callback decides instead of the configured quotas.
    """
    return {
        node_id: settings.quota_callback_class
        for node_id, settings in limits.nodes.items()
        if settings.quota_callback_class is not None
    }


def as_json(
    user: str | None, client_id: str | None, explanations: Iterable[Explanation], callbacks: Mapping[str, str]
) -> dict[str, object]:
    """
    Return an explanation for programs.

    ``limit`` is in the units of the metrics, ``configured`` in Kafka's. ``limit_state`` tells unlimited from unknown.
    ``callbacks`` has the nodes with a custom quota callback and its class: the explanation does not hold for them.
    ``shared`` has the limits of Strimzi's quotas plugin by node, null if unlimited.
    """
    quotas = []
    for explanation in explanations:
        kind, fallback, measured_as = explanation.quota_type, explanation.fallback, explanation.measured_as
        fallback_state = None if fallback is None else _state(fallback)
        names_measured = None
        if measured_as is not None:
            names_measured = dict(zip(("user", "client_id"), measured_as, strict=True))
        levels = []
        for rule in explanation.levels:
            level = _json_rule(kind, rule.entity, rule.bound)
            if client_id is None and isinstance(rule.entity.client_id, str):
                level["rule_client_id"] = None
            if user is None and isinstance(rule.entity.user, str):
                level["rule_user"] = None
            if None in {user, client_id}:  # the rule may hold the placeholder for any name, which no client has
                level_number = str(level["rule"]).partition(" ")[0]
                level["rule"] = f"{level_number} {level_text(rule.entity, user, client_id)}"
            levels.append({**level, "applies": rule.applies})
        quotas.append(
            {
                "quota_type": kind.label,
                "quota_key": kind.quota_key,
                "limit_state": explanation.limit_state.value,
                "not_enforced": explanation.unenforced,
                "decision": _json_resolution(kind, explanation.decision),
                "fallback": _json_resolution(kind, fallback),
                "fallback_limit_state": fallback_state,
                "shared": {node: finite(kind.in_base_unit(bound)) for node, bound in explanation.shared.items()},
                "hidden_on": list(explanation.hidden_on),
                "measured_as": names_measured,
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
    """Return the user of an explanation in words."""
    return "any user that no quota names" if user is None else spelled(user, None)


def asked_client(client_id: str | None) -> str:
    """Return the client-id of an explanation in words."""
    if client_id is None:
        return "any client-id that no quota names"
    return spelled(None, client_id) if client_id else "no client-id"


def level_text(entity: QuotaEntity, user: str | None, client_id: str | None) -> str:
    """Return the clients of a quota of a level in words; names that stand for any name are replaced by words."""
    stands_for_any_user = user is None and isinstance(entity.user, str)
    stands_for_other_client_id = not client_id and isinstance(entity.client_id, str)  # for any, or for none
    if not stands_for_any_user and not stands_for_other_client_id:
        return str(entity)
    names = []
    if entity.user is not None:
        names.append(asked_user(None) if stands_for_any_user else str(QuotaEntity(entity.user)))
    if isinstance(entity.client_id, str):
        names.append(asked_client(client_id))
    elif entity.client_id is not None:
        names.append(str(QuotaEntity(None, entity.client_id)))
    return ", ".join(names)


def sentence(explanation: Explanation, user: str | None, client_id: str | None) -> str:
    """Return a sentence on the rule that applies, the rule that would apply without it, and the measured clients."""
    quota_type, decision = explanation.quota_type, explanation.decision
    name = f"{type_name(quota_type)}: "
    if explanation.shared:
        return f"{name}{_shared_text(explanation)}"
    if explanation.overruled:
        return f"{name}unknown; a custom quota callback sets it on every node"
    counted = _measured_text(explanation, user, client_id)
    if hidden := explanation.hidden_on:
        nodes = f"{'node' if len(hidden) == 1 else 'nodes'} {', '.join(map(shown, hidden))}"
        counted += f"; not visible here on {nodes}: it is not read, or its agent does not show it"
    if decision.entity is None or explanation.fallback is None:
        return f"{name}unlimited; {counted}"
    if explanation.unenforced is not None:
        bound = _amount(quota_type, decision.bound)
        return f"{name}unlimited; {decision.entity.rule}, {bound}, has no effect: {explanation.unenforced}"
    deciding_rule = f"{decision.entity.rule} applies, {_amount(quota_type, decision.bound)}"
    fallback = explanation.fallback
    alternative = "unlimited"
    if fallback.entity is not None:
        alternative = f"{fallback.entity.rule}, {_amount(quota_type, fallback.bound)}"
    return f"{name}{deciding_rule}; without it: {alternative}; {counted}"


def _shared_text(explanation: Explanation) -> str:
    """Return a clause on the limits of Strimzi's quotas plugin, with the setting that has them."""
    kind, limits = explanation.quota_type, explanation.shared
    amounts = {node: _amount(kind, bound) for node, bound in limits.items()}
    if kind is QuotaType.CONTROLLER_MUTATION:
        return "unlimited under Strimzi's quotas plugin"
    limits_by_node = f"{next(iter(amounts.values()))} on each node"
    if len({*limits.values()}) > 1:
        limits_by_node = ", ".join(f"{text} on node {node}" for node, text in amounts.items())
    rule = f"client.quota.callback.static.{kind.label}"
    return f"{limits_by_node}, for all clients together except excluded principals ({rule})"


def _measured_text(explanation: Explanation, user: str | None, client_id: str | None) -> str:
    """Return a clause on the requests that the broker counts together."""
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
    """Return a quota in Kafka's unit as text."""
    return "unlimited" if bound is None or not isfinite(bound) else f"{bound:,.10g} {quota_type.unit.words}"


def _state(resolution: Resolution) -> LimitState:
    """Return whether a rule sets a limit."""
    return LimitState.UNLIMITED if resolution.bound in {None, inf} else LimitState.LIMITED


def _json_resolution(quota_type: QuotaType, resolution: Resolution | None) -> dict[str, object] | None:
    """Return the rule that applies for programs; None without one."""
    if resolution is None or resolution.entity is None:
        return None
    return _json_rule(quota_type, resolution.entity, resolution.bound)


def _json_rule(quota_type: QuotaType, entity: QuotaEntity, bound: float | None) -> dict[str, object]:
    """Return a rule for programs."""
    rule, level, rule_user, rule_client_id = rule_labels(entity)
    return {
        "rule": rule,
        "level": level,
        "rule_user": rule_user,
        "rule_client_id": rule_client_id,
        "limit": None if bound is None else finite(quota_type.in_base_unit(bound)),
        "configured": bound,
    }
