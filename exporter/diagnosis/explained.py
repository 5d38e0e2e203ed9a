"""An explanation in words and as JSON: the terminal, the page and the API show the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite

from quotascope.metrics import QuotaEntity, QuotaType, Resolution, spelled

from ..exposition.rows import rule_labels
from ..mapping import in_base_unit
from ..snapshot import LimitState
from .explain import Explanation

_UNITS = {
    QuotaType.PRODUCE: " B/s",
    QuotaType.FETCH: " B/s",
    QuotaType.REQUEST: " % of a thread",
    QuotaType.CONTROLLER_MUTATION: " mutations/s",
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
        then = None
        if fallback is not None:
            limited = fallback.bound is not None
            then = LimitState.LIMITED if limited else LimitState.UNLIMITED
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
                "shared": {
                    node: in_base_unit(kind, bound) if isfinite(bound) else None for node, bound in each.shared.items()
                },
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
    name = f"{quota_type.label.replace('_', ' ')}: "
    if explanation.shared:
        return f"{name}{_shared(explanation)}"
    if explanation.overruled:
        return f"{name}unknown; a custom quota callback decides on every node"
    counted = _counted(explanation, user, client_id)
    if decision.entity is None or explanation.fallback is None:
        return f"{name}unlimited; {counted}"
    now = f"{decision.entity.rule} decides, {_amount(quota_type, decision)}"
    then = explanation.fallback
    other = "unlimited"
    if then.entity is not None:
        other = f"{then.entity.rule}, {_amount(quota_type, then)}"
    return f"{name}{now}; without it: {other}; {counted}"


def _shared(explanation: Explanation) -> str:
    """The limits of Strimzi's quotas plugin, and its rule as it is configured."""
    kind, limits = explanation.quota_type, explanation.shared
    amounts = {
        node: f"{bound:,.10g}{_UNITS[kind]}" if isfinite(bound) else "unlimited" for node, bound in limits.items()
    }
    if kind is QuotaType.CONTROLLER_MUTATION:
        return "unlimited under Strimzi's quotas plugin"
    each = f"{next(iter(amounts.values()))} on each node"
    if len({*limits.values()}) > 1:
        each = ", ".join(f"{text} on node {node}" for node, text in amounts.items())
    rule = f"client.quota.callback.static.{kind.label}"
    return f"{each}, for all clients together but excluded principals ({rule})"


def _counted(explanation: Explanation, user: str | None, client_id: str | None) -> str:
    name = asked_user(user)
    match explanation.measured_as:
        case None:
            text = "not measured, for no such quota is configured"
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


def _amount(quota_type: QuotaType, resolution: Resolution) -> str:
    if resolution.bound is None:
        return "unlimited"
    return f"{resolution.bound:,.10g}{_UNITS[quota_type]}"


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
        "limit": None if bound is None else in_base_unit(quota_type, bound),
        "configured": bound,
    }
