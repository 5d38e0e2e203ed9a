"""Shows the rules of `quotascope quotas list` in the terminal and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import inf

from rich.console import Group, RenderableType
from rich.constrain import Constrain
from rich.table import Table
from rich.text import Text

from quotascope.exporter.diagnosis.rule_usage import Hit, IpUsage, RuleUsage
from quotascope.exporter.diagnosis.units import (
    NOT_APPLICABLE,
    UNKNOWN,
    UNKNOWN_NUMBER,
    amount,
    entity_name,
    legend,
    percent,
    type_name,
)
from quotascope.exporter.snapshot.entity import finite
from quotascope.exporter.untrusted import one_line
from quotascope.metrics.kafka.entities import QuotaEntity, QuotaType
from quotascope.pages.words import counted
from quotascope.quotas import to_admin
from quotascope.quotas.quota_set import in_order as rank
from quotascope.quotas.team_finder import TeamFinder, team_words

from ..fitted import Fitted, Names
from ..usage_table import QUOTA, WIDEST, UsageBar
from . import misnamed_view

_BAR = 7
_LEAST_RULE_WIDTH = len("5 <default> / <default>")
"""Least width of a rule, in columns of the terminal."""
_MOST_NAMES = 100
"""Number of names that even the widest table has no room for."""


def in_order(rules: Iterable[RuleUsage], *, by_use: bool) -> list[RuleUsage]:
    """Return rules by the order of precedence, or by their utilization, the highest first and unknown ones last."""
    if by_use:
        return sorted(rules, key=lambda rule: (rule.fullest is None, -(rule.fullest or 0.0)))
    return sorted(rules, key=lambda rule: (rank(rule.entity), rule.key))


def as_table(rules: Sequence[RuleUsage], near_limit: float | None, teams: TeamFinder | None = None) -> RenderableType:
    """
    Return a table of the rules with the entities under them, and a summary.

    Args:
        rules: The rules.
        near_limit: Utilization from which an entity is near its limit. None leaves out the entities.
        teams: Finds the teams of the entities; None leaves out the teams.

    """
    if not rules:
        return Text("no quota is configured: no client is limited")
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold", expand=True)
    # in a narrow terminal the rule has its width before the names under it
    table.add_column("rule", no_wrap=True, overflow="ellipsis", ratio=6, min_width=_LEAST_RULE_WIDTH)
    table.add_column("quota", max_width=QUOTA)
    table.add_column("limit", no_wrap=True, justify="right")
    if near_limit is not None:
        table.add_column("", no_wrap=True, width=_BAR)
        table.add_column("used", no_wrap=True, justify="right", width=4)
        table.add_column("by, fullest first", no_wrap=True, overflow="ellipsis", ratio=5)
        if teams is not None:
            table.add_column("teams", no_wrap=True, overflow="ellipsis", ratio=3)
    for rule in rules:
        kind = QuotaType.of_quota_key(rule.key)
        cells_of_usage = [] if near_limit is None else [*_usage_cells(rule, near_limit)]
        if near_limit is not None and teams is not None:
            cells_of_usage.append(_teams(rule, teams))
        table.add_row(
            Text(rule.entity.rule), type_name(kind) if kind else "connect", amount(kind, rule.value), *cells_of_usage
        )
    kinds = {QuotaType.of_quota_key(rule.key) for rule in rules}
    summary = f"{counted(len(rules), 'quota')}; limits are for each broker"
    if near_limit is not None:
        if unused := sum(rule.hits == () for rule in rules):
            summary += f"; {unused} apply to no client now"
        if unseen := [rule for rule in rules if rule.hits is None and rule.hidden_on]:
            nodes = ", ".join(dict.fromkeys(one_line(node) for rule in unseen for node in rule.hidden_on))
            summary += (
                f"; clients of {len(unseen)} may not be visible here (nodes {nodes}): `quotascope doctor` names the "
                "rules "
                "that their agents lack"
            )
    else:
        summary += "; for the clients under them give --source, --discover or --exporter"
    return Group(Constrain(Fitted(table), WIDEST), Text(f"{summary}\n{legend(kinds)}", "dim"))


def _usage_cells(rule: RuleUsage, near_limit: float) -> Iterator[RenderableType]:
    """Yield the cells of a rule's bar, percentage and names; unknown differs from zero and from unlimited."""
    if rule.fullest is None and (rule.hits == () or rule.value == inf):
        style, used = "dim", NOT_APPLICABLE
    elif rule.fullest is None:
        style, used = "dim", UNKNOWN_NUMBER
    else:
        pressure = rule.pressure or rule.fullest
        style, used = "green", percent(rule.fullest)
        if pressure >= 1 or rule.throttled:
            style = "red"
        elif pressure >= near_limit:
            style = "yellow"
    yield UsageBar(rule.fullest, style)
    yield Text(used, style)
    if rule.hits is None:
        yield Text("not visible here" if rule.hidden_on else UNKNOWN, "dim")
    elif rule.hits:
        yield Names(
            _first_names(
                one_line(hit.ip) if isinstance(hit, IpUsage) else entity_name(hit.entity.user, hit.entity.client_id)
                for hit in rule.hits
            ),
            before="" if rule.burst_used is None else f"burst used {percent(rule.burst_used)}:",
            behind=f"(not visible on {', '.join(map(one_line, rule.hidden_on))})" if rule.hidden_on else "",
        )
    elif rule.overruled_by is not None:
        yield Text(f"overruled by {rule.overruled_by.rule}", "dim", no_wrap=False)
    elif rule.misnamed is not None:
        yield Text(
            f"none; meant: {' or '.join(str(meant.entity) for meant in rule.misnamed.meant)}?", "dim", no_wrap=False
        )
    else:
        yield Text("none", "dim")


def _teams(rule: RuleUsage, teams: TeamFinder) -> RenderableType:
    """Return the teams of the entities of a rule; addresses have none."""
    if rule.hits is None:
        return Text(UNKNOWN, "dim")
    labels = (teams.label(hit.entity.user, hit.entity.client_id) for hit in rule.hits if not isinstance(hit, IpUsage))
    return Names(_first_names(map(team_words, labels)) or [NOT_APPLICABLE])


def _first_names(names: Iterable[str]) -> list[str]:
    """Return the first `_MOST_NAMES` distinct names, and an ellipsis for others."""
    listed: dict[str, None] = {}
    for name in names:
        if name not in listed and len(listed) == _MOST_NAMES:
            return [*listed, "…"]
        listed[name] = None
    return list(listed)


def as_json(
    rules: Iterable[RuleUsage], connection: Sequence[str] = (), teams: TeamFinder | None = None
) -> list[dict[str, object]]:
    """
    Return the rules for programs; ``value`` is in Kafka's unit, usage in the unit of the metrics.

    ``hits`` is null if unknown, for example if agents may hide clients of the nodes in ``hidden_on``, and empty if
    there are none. ``used`` is null without a hit, without a known usage, and for a used limit of 0.
    """
    return [
        {
            "entity": to_admin(rule.entity),
            "rule": rule.entity.rule,
            "level": rule.entity.level.value if isinstance(rule.entity, QuotaEntity) else None,
            "key": rule.key,
            "value": rule.value,
            "used": finite(rule.fullest),
            "hits": None if rule.hits is None else [_hit(hit, teams) for hit in rule.hits],
            "hidden_on": list(rule.hidden_on),
            "overruled_by": None if rule.overruled_by is None else to_admin(rule.overruled_by),
            "misnamed": misnamed_view.as_json(rule.misnamed, connection),
        }
        for rule in rules
    ]


def _hit(hit: Hit, teams: TeamFinder | None) -> dict[str, object]:
    """Return an entity or address under a rule for programs."""
    if isinstance(hit, IpUsage):
        return {"broker": hit.broker, "ip": hit.ip, "usage": hit.rate, "utilization": finite(hit.used)}
    entity = hit.entity
    return {
        "broker": entity.broker,
        "user": entity.user,
        "client_id": entity.client_id,
        "usage": hit.usage,
        "utilization": hit.utilization,
        "throttle_time_seconds": hit.throttle_time_seconds,
        **({} if teams is None else {"team": teams.label(entity.user, entity.client_id)}),
    }
