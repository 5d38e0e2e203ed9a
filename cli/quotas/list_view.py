"""How `quotascope quotas list` shows rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import inf

from rich.console import Group, RenderableType
from rich.constrain import Constrain
from rich.table import Table
from rich.text import Text

from quotascope.exporter.diagnosis.rule_usage import Hit, IpUsage, RuleUsage
from quotascope.exporter.diagnosis.selection import NEAR
from quotascope.exporter.diagnosis.units import (
    NOT_APPLICABLE,
    UNKNOWN,
    UNKNOWN_NUMBER,
    amount,
    entity_name,
    percent,
    type_name,
)
from quotascope.exporter.snapshot.entity import finite
from quotascope.exporter.untrusted import one_line
from quotascope.metrics import LEVELS_LEGEND, QuotaEntity, QuotaType
from quotascope.pages.words import counted
from quotascope.quotas import to_admin
from quotascope.quotas.quota_set import in_order as rank

from ..fitted import Fitted
from ..usage_table import QUOTA, WIDEST, UsageBar

_BAR = 7
_WHOM = 20
"""Columns that a rule has at least."""
_MOST_NAMES = 100
"""More than fit into the widest table."""


def in_order(rules: Iterable[RuleUsage], *, by_use: bool) -> list[RuleUsage]:
    """By whom they are for, or the fullest first."""
    if by_use:
        return sorted(rules, key=lambda r: (r.fullest is None, -(r.fullest or 0.0)))
    return sorted(rules, key=lambda rule: (rank(rule.entity), rule.key))


def as_table(rules: Sequence[RuleUsage], *, known: bool) -> RenderableType:
    """One row for each rule; the last columns are the entities under it, where they are known."""
    if not rules:
        return Text("no quota is configured: no client is limited")
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold", expand=True)
    # what it is for comes before the names under it where the terminal is narrow
    table.add_column("rule", no_wrap=True, overflow="ellipsis", ratio=5, min_width=_WHOM)
    table.add_column("quota", max_width=QUOTA)
    table.add_column("limit", no_wrap=True, justify="right")
    if known:
        table.add_column("", no_wrap=True, width=_BAR)
        table.add_column("used", no_wrap=True, justify="right", width=4)
        table.add_column("by, fullest first", no_wrap=True, overflow="ellipsis", ratio=5)
    for rule in rules:
        kind = QuotaType.of_quota_key(rule.key)
        table.add_row(
            Text(rule.entity.rule),
            type_name(kind) if kind else "connect",
            amount(kind, rule.value),
            *(_use(rule) if known else ()),
        )
    last = f"{counted(len(rules), 'quota')}; limits are for each broker"
    if known:
        if unused := sum(rule.hits == () for rule in rules):
            last += f"; {unused} apply to no client now"
    else:
        last += "; for the clients under them give --source, --discover or --exporter"
    return Group(Constrain(Fitted(table), WIDEST), Text(f"{last}\n{LEVELS_LEGEND}", "dim"))


def _use(rule: RuleUsage) -> Iterator[RenderableType]:
    """Bar, percentage and names; what is unknown differs from what is zero or not limited."""
    if rule.fullest is None:
        style, used = "dim", NOT_APPLICABLE if rule.hits == () or rule.value == inf else UNKNOWN_NUMBER
    else:
        near = "yellow" if rule.fullest >= NEAR else "green"
        style = "red" if rule.fullest >= 1 or rule.throttled else near
        used = percent(rule.fullest)
    yield UsageBar(rule.fullest, style)
    yield Text(used, style)
    if rule.hits is None:
        names = UNKNOWN
    elif rule.hits:
        called = (
            one_line(hit.ip) if isinstance(hit, IpUsage) else entity_name(hit.entity.user, hit.entity.client_id)
            for hit in rule.hits[:_MOST_NAMES]
        )
        names = ", ".join(dict.fromkeys(called))
    elif rule.overruled_by is not None:
        names = f"overruled by {rule.overruled_by.rule}"
    else:
        names = "none"
    yield Text(names, "" if rule.hits else "dim")


def as_json(rules: Iterable[RuleUsage]) -> list[dict[str, object]]:
    """
    The same for programs; ``value`` is in Kafka's unit, usage in that of the metrics.

    ``hits`` is null where unknown, and empty where there are none. ``used`` is null without a hit, where no usage is known, and where a limit of 0 is used.
    """
    return [
        {
            "entity": to_admin(rule.entity),
            "rule": rule.entity.rule,
            "level": rule.entity.level.value if isinstance(rule.entity, QuotaEntity) else None,
            "key": rule.key,
            "value": rule.value,
            "used": finite(rule.fullest),
            "hits": None if rule.hits is None else [_hit(hit) for hit in rule.hits],
            "overruled_by": rule.overruled_by and to_admin(rule.overruled_by),
        }
        for rule in rules
    ]


def _hit(hit: Hit) -> dict[str, object]:
    if isinstance(hit, IpUsage):
        who: dict[str, object] = {"broker": hit.broker, "ip": hit.ip, "usage": hit.rate}
        return {**who, "utilization": finite(hit.used)}
    entity = hit.entity
    return {
        "broker": entity.broker,
        "user": entity.user,
        "client_id": entity.client_id,
        "usage": hit.usage,
        "utilization": hit.utilization,
        "throttle_time_seconds": hit.throttle_time_seconds,
    }
