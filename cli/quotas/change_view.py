"""A change of quotas in the terminal and as JSON: changed rules and affected entities."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite

from rich.console import Group, RenderableType
from rich.constrain import Constrain
from rich.table import Table
from rich.text import Text

from quotascope.exporter.diagnosis.impact import Impact, IpImpact
from quotascope.exporter.diagnosis.misnamed import Misnamed
from quotascope.exporter.diagnosis.units import (
    NOT_APPLICABLE,
    UNKNOWN_NUMBER,
    UNLIMITED,
    amount,
    entity_name,
    measured,
    percent,
    rule_name,
    type_name,
)
from quotascope.exporter.snapshot import LimitState
from quotascope.exporter.snapshot.entity import finite
from quotascope.exporter.untrusted import one_line
from quotascope.metrics.kafka.entities import LEVELS_LEGEND, QuotaEntity, QuotaType, Resolution
from quotascope.pages.baseline import HELD_BACK, lower_bound
from quotascope.quotas import Entity, IpEntity, QuotaSet, RuleChange, number_text, overruling_rules

from ..fitted import Fitted
from ..usage_table import QUOTA, WIDEST
from . import misnamed_view


@dataclass(frozen=True, slots=True)
class Affected:
    """Entities with another limit or rule after the change."""

    clients: Sequence[Impact]
    addresses: Sequence[IpImpact]
    incomplete: bool = False
    """True if there may be more, since not all clients could be read."""


_UNKNOWN = "the affected clients are unknown: give --source, --discover or --exporter"
_NONE_AFFECTED = "no client that brokers measure separately now is affected"
_NONE_READ = "the affected clients are unknown: not all clients could be read"


def view(
    changes: Sequence[RuleChange],
    affected: Affected | None,
    max_rows: int,
    overruled: Mapping[tuple[Entity, str], QuotaEntity] | None = None,
) -> RenderableType:
    """
    Return a change as text.

    Args:
        changes: The changed rules.
        affected: The affected entities; None if they are unknown.
        max_rows: Most affected entities that are shown.
        overruled: Rules that overrule new quotas for every client, by entity and key.

    """
    warnings = [Text(line, "yellow") for line in overruled_lines(overruled or {})]
    return Group(changes_view(changes), *warnings, Text(), *_affected(affected, max_rows), Text())


def changes_view(changes: Sequence[RuleChange]) -> RenderableType:
    """Return the changes of quotas below their entities: `+` for a new one, `-` for a removed one, `~` for another."""
    lines = Text()
    last_entity = None
    for change in changes:
        if change.entity != last_entity:
            lines.append(f"{change.entity.rule}\n")
            last_entity = change.entity
        old, new = (None if value is None else number_text(value) for value in (change.old, change.new))
        mark, style, text = "~", "yellow", f"{old} -> {new}"
        if old is None:
            mark, style, text = "+", "green", f"{new}"
        elif new is None:
            mark, style, text = "-", "red", old
        lines.append(f"  {mark} {one_line(change.key)} {text}\n", style=style)
    lines.rstrip()
    return lines


def overruled_changes(changes: Iterable[RuleChange], new: QuotaSet) -> Mapping[tuple[Entity, str], QuotaEntity]:
    """
    Return the rules that overrule new quotas for every client, by the entity and the key of the new quota.

    Args:
        changes: The changed rules.
        new: The quotas after the change.

    """
    overruling = {kind.quota_key: overruling_rules(table) for kind, table in new.tables().items()}
    overruled: dict[tuple[Entity, str], QuotaEntity] = {}
    for change in changes:
        if change.new is None or not isinstance(change.entity, QuotaEntity):
            continue
        rule = overruling[change.key].get(change.entity)
        if rule is not None:
            overruled[change.entity, change.key] = rule
    return overruled


def overruled_lines(overruled: Mapping[tuple[Entity, str], QuotaEntity]) -> Iterator[str]:
    """Yield a line for each quota that would apply to no client, with the rule that applies instead."""
    for (entity, key), rule in overruled.items():
        yield (
            f"! {key} of {entity.rule} would apply to no client: overruled by {rule.rule} for every client that "
            "sends a client-id"
        )


def changes_json(
    changes: Iterable[RuleChange],
    doubtful: Mapping[Entity, Misnamed],
    connection: Sequence[str] = (),
    overruled: Mapping[tuple[Entity, str], QuotaEntity] | None = None,
) -> list[dict[str, object]]:
    """
    Return the changes for programs.

    ``misnamed`` is null for a rule whose name is not doubtful, and for a removed one. ``overruled_by`` is the rule that
    applies to every client in place of the new one.
    """
    documents = []
    for change in changes:
        overruling_rule = (overruled or {}).get((change.entity, change.key))
        misnamed = None if change.new is None else misnamed_view.as_json(doubtful.get(change.entity), connection)
        documents.append(
            {
                **change.as_json(),
                "overruled_by": None if overruling_rule is None else overruling_rule.rule,
                "misnamed": misnamed,
            }
        )
    return documents


def as_json(
    changes: Sequence[RuleChange],
    affected: Affected | None,
    max_rows: int,
    doubtful: Mapping[Entity, Misnamed] | None = None,
    connection: Sequence[str] = (),
    overruled: Mapping[tuple[Entity, str], QuotaEntity] | None = None,
) -> dict[str, object]:
    """
    Return a change for programs: rules as `quotas diff` prints them, limits and usage in the units of the metrics.

    If ``held_back``, ``usage`` and ``new_utilization`` are lower bounds. ``affected`` is null if unknown, and may be
    incomplete if ``affected_complete`` is false; a limit is a number only if its state is ``limited``.
    """
    rows = None
    if affected is not None and (affected.clients or affected.addresses or not affected.incomplete):
        rows = [*map(_client_json, affected.clients), *map(_address_json, affected.addresses)]
    return {
        "changes": changes_json(changes, doubtful or {}, connection, overruled),
        "affected_total": None if rows is None else len(rows),
        "affected_complete": affected is not None and not affected.incomplete,
        "affected": None if rows is None else rows[:max_rows],
    }


def _address_json(impact: IpImpact) -> dict[str, object]:
    """Return an affected address for programs."""
    return {
        "ip": impact.ip,
        "usage": impact.usage,
        **_limit_json("limit", impact.old_limit),
        **_limit_json("new_limit", impact.new_limit),
        "new_utilization": finite(impact.utilization_after),
        "held_back": impact.held_back,
    }


def _client_json(impact: Impact) -> dict[str, object]:
    """Return an affected client for programs."""
    new_entity = None if impact.new_rule is None else impact.new_rule.entity
    return {
        "user": impact.user,
        "client_id": impact.client_id,
        "quota_type": impact.quota_type.label,
        "usage": impact.usage,
        **_limit_json("limit", _limit_of(impact.quota_type, impact.old_rule)),
        **_limit_json("new_limit", _limit_of(impact.quota_type, impact.new_rule)),
        "new_utilization": finite(impact.utilization_after),
        "held_back": impact.held_back,
        "new_rule": None if new_entity is None else new_entity.rule,
        "window_restarts": impact.window_restarts,
    }


def _limit_of(quota_type: QuotaType, resolution: Resolution | None) -> float | None:
    """Return the limit of a rule in the unit of the metrics; infinity without a limit, None if the rule is unknown."""
    if resolution is None:
        return None
    return inf if resolution.bound is None else quota_type.in_base_unit(resolution.bound)


def _limit_json(name: str, limit: float | None) -> dict[str, object]:
    """Return a limit and its state; None is an unknown limit, infinity an unlimited client."""
    if limit is None or not isfinite(limit):
        state = LimitState.UNKNOWN if limit is None else LimitState.UNLIMITED
        return {name: None, f"{name}_state": state}
    return {name: limit, f"{name}_state": LimitState.LIMITED}


def _affected(affected: Affected | None, max_rows: int) -> Iterator[RenderableType]:
    """Yield a table of the affected entities, and notes below it."""
    if affected is None:
        yield Text(_UNKNOWN, style="dim")
        return
    rows = [*map(_client_cells, affected.clients), *map(_address_cells, affected.addresses)]
    if not rows:
        yield Text(_NONE_READ if affected.incomplete else _NONE_AFFECTED, style="dim")
    elif max_rows:
        table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold", expand=True)
        table.add_column("affected now", no_wrap=True, overflow="ellipsis", ratio=3)
        table.add_column("quota", max_width=QUOTA)
        for header in ("usage", "limit", "new limit", "then"):
            table.add_column(header, no_wrap=True, justify="right")
        table.add_column("rule then", no_wrap=True, overflow="ellipsis", ratio=3)
        for row in rows[:max_rows]:
            table.add_row(*row)
        yield Constrain(Fitted(table), WIDEST)
        yield Text(LEVELS_LEGEND, style="dim")
    if rows and affected.incomplete:
        yield Text("and maybe more: not all clients could be read", style="dim")
    if len(rows) > max_rows:
        yield Text(f"and {len(rows) - max_rows} more: --top shows more", style="dim")
    impacts: list[Impact | IpImpact] = [*affected.clients, *affected.addresses]
    if any(impact.held_back for impact in impacts[:max_rows]):
        yield Text(HELD_BACK, style="dim")
    if any(impact.window_restarts for impact in affected.clients[:max_rows]):
        yield Text("* counted from scratch: its window starts empty, its bucket full", style="dim")


def _client_cells(impact: Impact) -> Iterator[Text]:
    """Yield the cells of an affected client."""
    kind, usage = impact.quota_type, impact.usage
    name = entity_name(impact.user, impact.client_id)
    yield Text(f"{name} *" if impact.window_restarts else name)
    yield Text(type_name(kind))
    yield Text("?" if usage is None else measured(kind, usage, impact.limit_after))
    yield Text(_bound(kind, impact.old_rule))
    yield Text(_bound(kind, impact.new_rule))
    has_no_limit = impact.new_rule is not None and impact.new_rule.bound in (None, inf)
    yield _utilization_after(impact, without_limit=has_no_limit)
    if impact.new_rule is None:
        yield Text(f"that of each {'client-id' if impact.user else 'user'} or pair")
    else:
        yield Text(rule_name(impact.new_rule))


def _bound(kind: QuotaType, resolution: Resolution | None) -> str:
    """Return the limit of a rule as text."""
    if resolution is None:
        return UNKNOWN_NUMBER
    return UNLIMITED if resolution.bound is None else amount(kind, resolution.bound)


def _address_cells(impact: IpImpact) -> Iterator[Text]:
    """Yield the cells of an affected address."""
    limits = (
        UNKNOWN_NUMBER if limit is None else amount(None, limit) for limit in (impact.old_limit, impact.new_limit)
    )
    yield Text(str(IpEntity(impact.ip)))
    yield Text("connect")
    yield Text("?" if impact.usage is None else amount(None, impact.usage))
    yield from map(Text, limits)
    yield _utilization_after(impact, without_limit=impact.new_limit == inf)
    yield Text()


def _utilization_after(impact: Impact | IpImpact, *, without_limit: bool) -> Text:
    """
    Return the utilization under the new limit as text.

    It does not apply without a limit. It is unknown if the limit or the usage is unknown, and a lower bound for a
    client that is held back now.
    """
    ratio = impact.utilization_after
    if ratio is None:
        return Text(NOT_APPLICABLE if without_limit else UNKNOWN_NUMBER)
    return Text(lower_bound(percent(ratio), held_back=impact.held_back), style="bold red" if ratio > 1 else "")
