"""How `quotascope explain` shows what decides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from quotascope.exporter.diagnosis.explain import Explanation, LevelRule
from quotascope.exporter.exposition.rows import rule_labels
from quotascope.exporter.mapping import in_base_unit
from quotascope.exporter.snapshot import LimitState
from quotascope.exporter.untrusted import one_line
from quotascope.metrics import QuotaEntity, QuotaType, Resolution

_UNITS = {
    QuotaType.PRODUCE: " B/s",
    QuotaType.FETCH: " B/s",
    QuotaType.REQUEST: " % of a thread",
    QuotaType.CONTROLLER_MUTATION: " mutations/s",
}


def as_table(
    user: str, client_id: str | None, explanations: Sequence[Explanation]
) -> RenderableType:
    """The eight levels as rows, the quota types as columns, and a sentence for each type."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("#")
    table.add_column("a quota for", overflow="fold")
    for explanation in explanations:
        name = explanation.quota_type.label.replace("_", "\n", 1)
        table.add_column(name, justify="right", vertical="bottom", no_wrap=True)
    levels = zip(*(each.levels for each in explanations), strict=True)
    for number, rules in enumerate(levels, start=1):
        cells = map(_cell, explanations, rules)
        level = Text(_level(rules[0].entity, client_id))
        table.add_row(str(number), level, *cells)
    title = f"user {one_line(user)!r}, {_asked(client_id)}\n"
    sentences = [Text(_sentence(each, user, client_id)) for each in explanations]
    legend = "> decides; - not set; B/s, percent of a thread, mutations/s\n"
    if client_id == "":
        legend = f"(…) not for clients that send no client-id; {legend}"
    bold = Text(title, style="bold")
    return Group(bold, table, Text(legend, style="dim"), *sentences)


def as_json(
    user: str,
    client_id: str | None,
    explanations: Iterable[Explanation],
    callbacks: Mapping[str, str],
) -> dict[str, object]:
    """
    The same for programs; ``limit`` is in the units of the metrics, ``configured`` in Kafka's.

    ``limit_state`` says what a missing limit means. ``callbacks`` are the nodes on which a custom quota callback decides
    instead, with its class: what is explained does not hold there.
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
            levels.append({**level, "applies": rule.applies})
        quotas.append(
            {
                "quota_type": kind.label,
                "quota_key": kind.quota_key,
                "limit_state": each.limit_state.value,
                "decision": _json_resolution(kind, each.decision),
                "fallback": _json_resolution(kind, fallback),
                "fallback_limit_state": then,
                "measured_as": measured_as
                and dict(zip(("user", "client_id"), measured_as, strict=True)),
                "levels": levels,
            }
        )
    return {
        "user": user,
        "client_id": client_id,
        "callbacks": dict(callbacks),
        "quotas": quotas,
    }


def _asked(client_id: str | None) -> str:
    if client_id is None:
        return "any client-id that no quota names"
    return f"client-id {one_line(client_id)!r}" if client_id else "no client-id"


def _level(entity: QuotaEntity, client_id: str | None) -> str:
    """What a quota would be for; one for the very client-id that is asked about is called as that is."""
    if client_id or not isinstance(entity.client_id, str):
        return _entity(entity)
    user = "" if entity.user is None else f"{_entity(QuotaEntity(entity.user))}, "
    return f"{user}{_asked(client_id)}"


def _cell(explanation: Explanation, rule: LevelRule) -> Text:
    if rule.bound is None:
        return Text("-", style="dim")
    if not rule.applies:
        return Text(f"({rule.bound:,.10g})", style="dim")
    if rule.entity == explanation.decision.entity:
        return Text(f"> {rule.bound:,.10g}", style="bold green")
    return Text(f"{rule.bound:,.10g}")


def _sentence(explanation: Explanation, user: str, client_id: str | None) -> str:
    quota_type, decision = explanation.quota_type, explanation.decision
    name = f"{quota_type.label.replace('_', ' ')}: "
    if explanation.overruled:
        return f"{name}unknown; a custom quota callback decides on every node"
    counted = _counted(explanation, user, client_id)
    if decision.entity is None or explanation.fallback is None:
        return f"{name}unlimited; {counted}"
    now = f"{_entity(decision.entity)} decides, {_amount(quota_type, decision)}"
    then = explanation.fallback
    other = "unlimited"
    if then.entity is not None:
        other = f"{_entity(then.entity)}, {_amount(quota_type, then)}"
    return f"{name}{now}; without it: {other}; {counted}"


def _counted(explanation: Explanation, user: str, client_id: str | None) -> str:
    name = one_line(user)
    match explanation.measured_as:
        case None:
            text = "not measured, for no such quota is configured"
        case ("", None):
            text = "each client-id counted for all users together"
        case ("", _):
            text = f"counted for all users with {_asked(client_id)} together"
        case (_, "") if client_id == "" and explanation.by_client:
            text = f"counted for the clients of user {name!r} without client-id"
        case (_, ""):
            text = f"counted for all clients of user {name!r} together"
        case (_, None):
            text = "each client-id of this user counted alone"
        case _:
            text = "counted for this user and client-id alone"
    return text


def _amount(quota_type: QuotaType, resolution: Resolution) -> str:
    if resolution.bound is None:
        return "unlimited"
    return f"{resolution.bound:,.10g}{_UNITS[quota_type]}"


def _entity(entity: QuotaEntity) -> str:
    return one_line(str(entity))


def _json_resolution(
    quota_type: QuotaType, resolution: Resolution | None
) -> dict[str, object] | None:
    if resolution is None or resolution.entity is None:
        return None
    return _json_rule(quota_type, resolution.entity, resolution.bound)


def _json_rule(
    quota_type: QuotaType, entity: QuotaEntity, bound: float | None
) -> dict[str, object]:
    level, rule_user, rule_client_id = rule_labels(entity)
    return {
        "level": level,
        "rule_user": rule_user,
        "rule_client_id": rule_client_id,
        "limit": None if bound is None else in_base_unit(quota_type, bound),
        "configured": bound,
    }
