"""How a change of quotas is shown: what changes, and for whom."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf, isfinite

from rich.console import Group, RenderableType
from rich.constrain import Constrain
from rich.table import Table
from rich.text import Text

from quotascope.exporter.diagnosis.impact import Impact, IpImpact
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
from quotascope.exporter.mapping import in_base_unit
from quotascope.exporter.snapshot import LimitState
from quotascope.exporter.snapshot.entity import finite
from quotascope.exporter.untrusted import one_line
from quotascope.metrics import LEVELS_LEGEND, QuotaType, Resolution
from quotascope.quotas import IpEntity, RuleChange, number_text

from ..fitted import Fitted
from ..usage_table import QUOTA, WIDEST


@dataclass(frozen=True, slots=True)
class Affected:
    """Entities with another limit or rule after the change."""

    clients: Sequence[Impact]
    addresses: Sequence[IpImpact]
    incomplete: bool = False
    """Whether there may be more: not all clients could be read."""


_UNKNOWN = "the affected clients are unknown: give --source, --discover or --exporter"
_NONE_AFFECTED = "no client that brokers measure separately now is affected"
_NONE_READ = "the affected clients are unknown: not all clients could be read"


def view(changes: Sequence[RuleChange], affected: Affected | None, most: int) -> RenderableType:
    """The changes, and up to ``most`` of the entities that they affect; None when these are unknown."""
    return Group(changes_view(changes), Text(), *_affected(affected, most), Text())


def changes_view(changes: Sequence[RuleChange]) -> RenderableType:
    """Each entity, and below it the old and the new value of each quota: `+` set, `-` removed, `~` changed."""
    lines = Text()
    last = None
    for change in changes:
        if change.entity != last:
            lines.append(f"{change.entity.rule}\n")
            last = change.entity
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


def as_json(changes: Sequence[RuleChange], affected: Affected | None, most: int) -> dict[str, object]:
    """
    The same for programs: changes as `quotas diff` prints them, limits and usage in the units of the metrics.

    ``affected`` is null when it is unknown, and may lack some where ``affected_complete`` is false; a limit is a number only if its state is ``limited``.
    """
    rows = None
    if affected is not None and (affected.clients or affected.addresses or not affected.incomplete):
        rows = [
            *map(_client_json, affected.clients),
            *(
                {
                    "ip": impact.ip,
                    "usage": impact.usage,
                    **_limit_json("limit", impact.before),
                    **_limit_json("new_limit", impact.after),
                    "new_utilization": finite(impact.utilization_after),
                }
                for impact in affected.addresses
            ),
        ]
    return {
        "changes": [change.as_json() for change in changes],
        "affected_total": None if rows is None else len(rows),
        "affected_complete": affected is not None and not affected.incomplete,
        "affected": None if rows is None else rows[:most],
    }


def _client_json(impact: Impact) -> dict[str, object]:
    kind = impact.quota_type
    before, after = (
        None if rule is None else inf if rule.bound is None else in_base_unit(kind, rule.bound)
        for rule in (impact.before, impact.after)
    )
    rule = impact.after and impact.after.entity
    return {
        "user": impact.user,
        "client_id": impact.client_id,
        "quota_type": kind.label,
        "usage": impact.usage,
        **_limit_json("limit", before),
        **_limit_json("new_limit", after),
        "new_utilization": finite(impact.utilization_after),
        "new_rule": rule and rule.rule,
        "window_restarts": impact.window_restarts,
    }


def _limit_json(name: str, limit: float | None) -> dict[str, object]:
    """A limit and its state; None when it is unknown, infinite for none."""
    if limit is None or not isfinite(limit):
        state = LimitState.UNKNOWN if limit is None else LimitState.UNLIMITED
        return {name: None, f"{name}_state": state}
    return {name: limit, f"{name}_state": LimitState.LIMITED}


def _affected(affected: Affected | None, most: int) -> Iterator[RenderableType]:
    if affected is None:
        yield Text(_UNKNOWN, style="dim")
        return
    rows = [
        *map(_client, affected.clients),
        *map(_address, affected.addresses),
    ]
    if not rows:
        yield Text(_NONE_READ if affected.incomplete else _NONE_AFFECTED, style="dim")
    elif most:
        table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold", expand=True)
        table.add_column("affected now", no_wrap=True, overflow="ellipsis", ratio=3)
        table.add_column("quota", max_width=QUOTA)
        for header in ("usage", "limit", "new limit", "then"):
            table.add_column(header, no_wrap=True, justify="right")
        table.add_column("rule then", no_wrap=True, overflow="ellipsis", ratio=3)
        for row in rows[:most]:
            table.add_row(*row)
        yield Constrain(Fitted(table), WIDEST)
        yield Text(LEVELS_LEGEND, style="dim")
    if rows and affected.incomplete:
        yield Text("and maybe more: not all clients could be read", style="dim")
    if len(rows) > most:
        yield Text(f"and {len(rows) - most} more: --top shows more", style="dim")
    if any(impact.window_restarts for impact in affected.clients[:most]):
        yield Text("* counted from scratch: its window starts empty, its bucket full", style="dim")


def _client(impact: Impact) -> Iterator[Text]:
    kind, usage = impact.quota_type, impact.usage
    unlimited = impact.after is not None and impact.after.bound in (None, inf)
    name = entity_name(impact.user, impact.client_id)
    yield Text(f"{name} *" if impact.window_restarts else name)
    yield Text(type_name(kind))
    yield Text("?" if usage is None else measured(kind, usage, impact.limit_after))
    yield Text(_bound(kind, impact.before))
    yield Text(_bound(kind, impact.after))
    yield _then(impact.utilization_after, limited=not unlimited)
    parts = "client-id" if impact.user else "user"
    yield Text(f"that of each {parts} or pair" if impact.after is None else rule_name(impact.after))


def _bound(kind: QuotaType, resolution: Resolution | None) -> str:
    if resolution is None:
        return UNKNOWN_NUMBER
    return UNLIMITED if resolution.bound is None else amount(kind, resolution.bound)


def _address(impact: IpImpact) -> Iterator[Text]:
    limits = (UNKNOWN_NUMBER if limit is None else amount(None, limit) for limit in (impact.before, impact.after))
    yield Text(str(IpEntity(impact.ip)))
    yield Text("connect")
    yield Text("?" if impact.usage is None else amount(None, impact.usage))
    yield from map(Text, limits)
    yield _then(impact.utilization_after, limited=impact.after != inf)
    yield Text()


def _then(ratio: float | None, *, limited: bool) -> Text:
    """The utilization under the new limit: none without a limit, unknown if the limit or the usage is."""
    if ratio is None:
        return Text(UNKNOWN_NUMBER if limited else NOT_APPLICABLE)
    return Text(percent(ratio), style="bold red" if ratio > 1 else "")
