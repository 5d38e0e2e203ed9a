"""The page of all rules, with the entities that they apply to now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC
from enum import StrEnum
from itertools import islice
from typing import Annotated, Final

from pydantic import WithJsonSchema

from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity, QuotaType
from quotascope.pages.words import moment

from ..diagnosis.rule_usage import Hit, IpUsage, RuleUsage, rule_usage
from ..diagnosis.selection import Selection, in_order
from ..diagnosis.units import UNKNOWN, amount, percent, type_name
from ..limits import LimitChange
from ..snapshot import Snapshot, Usages
from .columns import TableCell, entity_cell, used_cell, worded
from .page import TYPES
from .query import Kind, PartQuery, Text, shown_part
from .render import PageFrame, as_of, entity_address, name, render

_CHANGES: Final = 20
"""Changes of rules that are shown."""
_NAMED: Final = 3
"""Entities that are named in the row of a rule."""


class RuleShow(StrEnum):
    """The rules that are shown."""

    ALL = "all"
    NEAR = "near"
    """Rules under which an entity is throttled, or close to its limit."""
    UNUSED = "unused"
    """Rules that apply to no entity that is measured."""


_SHOW_OPTIONS: Final = (
    (RuleShow.ALL.value, "all"),
    (RuleShow.NEAR.value, "an entity close to it, or throttled"),
    (RuleShow.UNUSED.value, "without an entity"),
)


class RuleQuery(PartQuery):
    """The rules that a client asks for, and the part of them."""

    show: Annotated[RuleShow, WithJsonSchema({"enum": [*RuleShow]})] = RuleShow.ALL
    type: Kind = None
    q: Text = ""
    """Only rules with a user, client-id or address that contains it, ignoring case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RulesResult:
    """The rules that a query finds."""

    snapshot: Snapshot
    query: RuleQuery
    total: int
    rules: Sequence[RuleUsage]
    """The rules of the part that is shown, the most urgent first."""


def find_rules(snapshot: Snapshot, query: RuleQuery) -> RulesResult:
    """
    Return the rules of a query: those with throttled entities first, then by the highest utilization.

    Among the others, rules with unknown entities come before rules without any.
    """
    rules = rule_usage(snapshot.limits, snapshot) if snapshot.limits else []
    matching = [rule for rule in rules if _matches(rule, query, snapshot.thresholds.near_limit)]

    def rank(rule: RuleUsage) -> tuple[bool, float, bool, bool]:
        has_known_hits = rule.hits is not None
        return not rule.throttled, -(rule.pressure or 0.0), _unused(rule), has_known_hits

    matching.sort(key=rank)
    return RulesResult(
        snapshot=snapshot, query=query, total=len(matching), rules=matching[query.offset : query.offset + query.size]
    )


def _matches(rule: RuleUsage, query: RuleQuery, near_limit: float) -> bool:
    """Return whether a query selects a rule."""
    pressure = rule.pressure
    near = bool(rule.throttled) or (pressure is not None and pressure >= near_limit)
    return (
        (query.show is not RuleShow.NEAR or near)
        and (query.show is not RuleShow.UNUSED or _unused(rule))
        and (query.type is None or rule.key == query.type.quota_key)
        and query.q.casefold() in str(rule.entity).casefold()
    )


def _unused(rule: RuleUsage) -> bool:
    """Return whether a rule is known to apply to no entity."""
    return rule.hits is not None and not len(rule.hits)


def rules_page(result: RulesResult | None, frame: PageFrame, problem: str = "") -> str:
    """Return the page as HTML; None before the first collection."""
    values: dict[str, object] = {}
    if result is not None:
        query = result.query
        caption = "The configured quotas are unknown."
        if result.snapshot.limits is not None:
            caption = shown_part(query.offset, len(result.rules), result.total) or "No rule matches."
        values = {
            **as_of(result.snapshot),
            "given": query.parameters(),
            "types": TYPES,
            "show": query.show.value,
            "shows": _SHOW_OPTIONS,
            "caption": caption,
            "rules": [_row(rule, result.snapshot.thresholds.near_limit) for rule in result.rules],
            "misnamed": {rule.misnamed.entity: rule.misnamed for rule in result.rules if rule.misnamed}.values(),
            "changes": [_change(change) for change in result.snapshot.limits_health.changes[:_CHANGES]],
            "before": query.before,
            "following": query.following(result.total),
            "json": f"api/v1/rules{query.address}",
        }
    return render("rules.html", frame, here="rules", result=result, problem=problem, **values)


def _change(change: LimitChange) -> tuple[str, str, str, str, str]:
    """Return the cells of a changed rule: time, entity, quota type, old and new value."""
    kind = QuotaType.of_quota_key(change.key)
    old, new = ("none" if value is None else amount(kind, value) for value in (change.old, change.new))
    return (
        moment(1_000 * change.read_at, UTC),
        name(change.entity),
        "connections" if kind is None else type_name(kind),
        old,
        new,
    )


def _row(rule: RuleUsage, near_limit: float) -> dict[str, object]:
    """Return the values of the row of a rule."""
    kind = QuotaType.of_quota_key(rule.key)
    count = None if rule.hits is None else len(rule.hits)
    throttled = rule.throttled
    hits = rule.hits or ()
    if isinstance(hits, Usages):
        hits = in_order(hits, Selection(near_limit=near_limit), _NAMED)
    entity, href = rule.entity, ""
    if isinstance(entity, QuotaEntity) and DEFAULT not in {entity.user, entity.client_id}:
        href = entity_address(str(entity.user or ""), str(entity.client_id or ""))
    missing_text = "-" if count == 0 else UNKNOWN
    throttled_text = missing_text if throttled is None or not count else str(throttled)
    state = UNKNOWN if count is None else str(count or "none")
    hidden = ", ".join(map(name, rule.hidden_on[:_NAMED])) + (" …" if len(rule.hidden_on) > _NAMED else "")
    meant = () if rule.misnamed is None else rule.misnamed.meant
    return {
        "rule": entity.rule,
        "href": href,
        "quota": "connections" if kind is None else type_name(kind),
        "limit": amount(kind, rule.value),
        "count": worded(state, "none" if count == 0 else ""),
        "throttled": TableCell(text=throttled_text, color="over" if throttled else ""),
        "used": used_cell(rule.fullest, near_limit, without=missing_text, throttled=bool(throttled)),
        "burst": "" if rule.burst_used is None else percent(rule.burst_used),
        "hits": list(map(_hit, islice(hits, _NAMED))),
        "more": max(0, (count or 0) - _NAMED),
        "hidden": hidden,
        "overruled_by": "" if rule.overruled_by is None else rule.overruled_by.rule,
        "meant": " or ".join(str(candidate.entity) for candidate in meant),
    }


def _hit(hit: Hit) -> TableCell:
    """Return the cell of an entity or address that a rule applies to."""
    if isinstance(hit, IpUsage):
        return TableCell(text=f"{name(hit.ip)} on node {name(hit.broker)}")
    suffix = f" on node {name(hit.entity.broker)}"
    return entity_cell(hit.entity, suffix, "over" if hit.throttled and not hit.referring else "")
