"""How `quotascope explain` shows what decides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from quotascope.exporter.explain import Candidate, Explanation
from quotascope.exporter.exposition.limits import in_base_unit, rule_labels
from quotascope.exporter.untrusted import one_line
from quotascope.metrics import QuotaEntity, QuotaType, Resolution

_UNITS = {
    QuotaType.PRODUCE: " B/s",
    QuotaType.FETCH: " B/s",
    QuotaType.REQUEST: " % of a thread",
    QuotaType.CONTROLLER_MUTATION: " mutations/s",
}


def as_table(
    user: str, client_id: str, explanations: Sequence[Explanation]
) -> RenderableType:
    """The eight levels as rows, the quota types as columns, and a sentence for each type."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("#")
    table.add_column("a quota for", overflow="fold")
    for explanation in explanations:
        name = explanation.quota_type.label.replace("_", "\n", 1)
        table.add_column(name, justify="right", vertical="bottom", no_wrap=True)
    levels = zip(*(each.candidates for each in explanations), strict=True)
    for number, candidates in enumerate(levels, start=1):
        cells = map(_cell, explanations, candidates)
        table.add_row(str(number), Text(_entity(candidates[0].entity)), *cells)
    title = f"user {one_line(user)!r}, client-id {one_line(client_id)!r}\n"
    sentences = [Text(_sentence(each, user, client_id)) for each in explanations]
    legend = Text("> decides; B/s, percent of a thread, mutations/s\n", style="dim")
    return Group(Text(title, style="bold"), table, legend, *sentences)


def as_json(
    user: str, client_id: str, explanations: Iterable[Explanation]
) -> dict[str, object]:
    """The same for programs; ``limit`` is in the units of the metrics, ``configured`` in Kafka's."""
    quotas = [_json(explanation) for explanation in explanations]
    return {"user": user, "client_id": client_id, "quotas": quotas}


def _cell(explanation: Explanation, candidate: Candidate) -> Text:
    if candidate.bound is None:
        return Text("-", style="dim")
    if candidate.entity == explanation.decision.entity:
        return Text(f"> {candidate.bound:,.10g}", style="bold green")
    return Text(f"{candidate.bound:,.10g}")


def _sentence(explanation: Explanation, user: str, client_id: str) -> str:
    quota_type, decision = explanation.quota_type, explanation.decision
    counted = _counted(explanation, user, client_id)
    name = f"{quota_type.label.replace('_', ' ')}: "
    if decision.entity is None or explanation.fallback is None:
        return f"{name}unlimited; {counted}"
    now = f"{_entity(decision.entity)} decides, {_amount(quota_type, decision)}"
    then = explanation.fallback
    other = "unlimited" if then.entity is None else _then(quota_type, then)
    return f"{name}{now}; without it: {other}; {counted}"


def _then(quota_type: QuotaType, resolution: Resolution) -> str:
    entity = _entity(resolution.entity) if resolution.entity else ""
    return f"{entity}, {_amount(quota_type, resolution)}"


def _counted(explanation: Explanation, user: str, client_id: str) -> str:
    match explanation.measured_as:
        case None:
            return "not measured, for no such quota is configured"
        case ("", _):
            return (
                f"counted for all users with client-id {one_line(client_id)!r} together"
            )
        case (_, ""):
            return f"counted for all clients of user {one_line(user)!r} together"
    return "counted for this user and client-id alone"


def _amount(quota_type: QuotaType, resolution: Resolution) -> str:
    if resolution.bound is None:
        return "unlimited"
    return f"{resolution.bound:,.10g}{_UNITS[quota_type]}"


def _entity(entity: QuotaEntity) -> str:
    return one_line(str(entity))


def _json(explanation: Explanation) -> dict[str, object]:
    quota_type = explanation.quota_type
    measured_as = explanation.measured_as
    return {
        "quota_type": quota_type.label,
        "quota_key": quota_type.quota_key,
        "decision": _json_resolution(quota_type, explanation.decision),
        "fallback": _json_resolution(quota_type, explanation.fallback),
        "measured_as": measured_as
        and dict(zip(("user", "client_id"), measured_as, strict=True)),
        "levels": [
            _json_rule(quota_type, candidate.entity, candidate.bound)
            for candidate in explanation.candidates
        ],
    }


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
