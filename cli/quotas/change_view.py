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
    """Return the changes, and up to ``max_rows`` of the affected entities; these are None if unknown."""
    to_no_client = [Text(line, "yellow") for line in overruled_lines(overruled or {})]
    return Group(changes_view(changes), *to_no_client, Text(), *_affected(affected, max_rows), Text())


def changes_view(changes: Sequence[RuleChange]) -> RenderableType:
    """Return each entity, and below it the old and the new value of each quota: `+` set, `-` removed, `~` changed."""
    lines = Text()
    last_entity = None
    for change in changes:
        if change.entity != last_entity:
            lines.append(f"{change.entity.rule}\n")
            last_entity = change.entity
        old, new = (None if value is None else number_text(value) for value in (change.old, change.new))
        mark, style, text = (
            ("+", "green", new)
            if old is None
            else ("-", "red", old)
            if new is None
            else ("~", "yellow", f"{old} -> {new}")
        )
        lines.append(f"  {mark} {one_line(change.key)} {text}\n", style=style)
    lines.rstrip()
    return lines


def overruled_changes(changes: Iterable[RuleChange], new: QuotaSet) -> Mapping[tuple[Entity, str], QuotaEntity]:
    """Return, by entity and key, the rules that overrule quotas to be set for every client."""
    overruling = {kind.quota_key: overruling_rules(table) for kind, table in new.tables().items()}
    return {
        (change.entity, change.key): overruling[change.key][change.entity]
        for change in changes
        if change.new is not None and isinstance(change.entity, QuotaEntity) and change.entity in overruling[change.key]
    }


def overruled_lines(overruled: Mapping[tuple[Entity, str], QuotaEntity]) -> Iterator[str]:
    """Yield a line for each quota that would apply to no client, with the rule that does."""
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
    by = overruled or {}
    return [
        {
            **change.as_json(),
            "overruled_by": None if (rule := by.get((change.entity, change.key))) is None else rule.rule,
            "misnamed": None if change.new is None else misnamed_view.as_json(doubtful.get(change.entity), connection),
        }
        for change in changes
    ]


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
        rows = [
            *map(_client_json, affected.clients),
            *(
                {
                    "ip": impact.ip,
                    "usage": impact.usage,
                    **_limit_json("limit", impact.old_limit),
                    **_limit_json("new_limit", impact.new_limit),
                    "new_utilization": finite(impact.utilization_after),
                    "held_back": impact.held_back,
                }
                for impact in affected.addresses
            ),
        ]
    return {
        "changes": changes_json(changes, doubtful or {}, connection, overruled),
        "affected_total": None if rows is None else len(rows),
        "affected_complete": affected is not None and not affected.incomplete,
        "affected": None if rows is None else rows[:max_rows],
    }


def _client_json(impact: Impact) -> dict[str, object]:
    kind = impact.quota_type
    old_limit, new_limit = (
        None if rule is None else inf if rule.bound is None else kind.in_base_unit(rule.bound)
        for rule in (impact.old_rule, impact.new_rule)
    )
    rule = impact.new_rule and impact.new_rule.entity
    return {
        "user": impact.user,
        "client_id": impact.client_id,
        "quota_type": kind.label,
        "usage": impact.usage,
        **_limit_json("limit", old_limit),
        **_limit_json("new_limit", new_limit),
        "new_utilization": finite(impact.utilization_after),
        "held_back": impact.held_back,
        "new_rule": rule and rule.rule,
        "window_restarts": impact.window_restarts,
    }


def _limit_json(name: str, limit: float | None) -> dict[str, object]:
    """Return a limit and its state; None is an unknown limit, infinity an unlimited client."""
    if limit is None or not isfinite(limit):
        state = LimitState.UNKNOWN if limit is None else LimitState.UNLIMITED
        return {name: None, f"{name}_state": state}
    return {name: limit, f"{name}_state": LimitState.LIMITED}


def _affected(affected: Affected | None, max_rows: int) -> Iterator[RenderableType]:
    if affected is None:
        yield Text(_UNKNOWN, style="dim")
        return
    rows = [
        *map(_client, affected.clients),
        *map(_address, affected.addresses),
    ]
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


def _client(impact: Impact) -> Iterator[Text]:
    kind, usage = impact.quota_type, impact.usage
    unlimited = impact.new_rule is not None and impact.new_rule.bound in (None, inf)
    name = entity_name(impact.user, impact.client_id)
    yield Text(f"{name} *" if impact.window_restarts else name)
    yield Text(type_name(kind))
    yield Text("?" if usage is None else measured(kind, usage, impact.limit_after))
    yield Text(_bound(kind, impact.old_rule))
    yield Text(_bound(kind, impact.new_rule))
    yield _then(impact, limited=not unlimited)
    parts = "client-id" if impact.user else "user"
    yield Text(f"that of each {parts} or pair" if impact.new_rule is None else rule_name(impact.new_rule))


def _bound(kind: QuotaType, resolution: Resolution | None) -> str:
    if resolution is None:
        return UNKNOWN_NUMBER
    return UNLIMITED if resolution.bound is None else amount(kind, resolution.bound)


def _address(impact: IpImpact) -> Iterator[Text]:
    limits = (
        UNKNOWN_NUMBER if limit is None else amount(None, limit) for limit in (impact.old_limit, impact.new_limit)
    )
    yield Text(str(IpEntity(impact.ip)))
    yield Text("connect")
    yield Text("?" if impact.usage is None else amount(None, impact.usage))
    yield from map(Text, limits)
    yield _then(impact, limited=impact.new_limit != inf)
    yield Text()


def _then(impact: Impact | IpImpact, *, limited: bool) -> Text:
    """
    Return the utilization under the new limit as text.

    Without a limit there is none. It is unknown if the limit or the usage is unknown, and a lower bound for a client
    held back now.
    """
    ratio = impact.utilization_after
    if ratio is None:
        return Text(UNKNOWN_NUMBER if limited else NOT_APPLICABLE)
    return Text(lower_bound(percent(ratio), held_back=impact.held_back), style="bold red" if ratio > 1 else "")
