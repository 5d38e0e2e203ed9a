"""The table of entities, and the links to its other orders and parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final
from xml.etree.ElementTree import Element

from quotascope.metrics import QuotaType
from quotascope.pages.markup import Child, element

from ..diagnosis.selection import Order, Show
from ..diagnosis.trails import used_part
from ..diagnosis.units import (
    NOT_APPLICABLE,
    UNKNOWN,
    digits,
    entity_name,
    level_name,
    limit_name,
    measured,
    percent,
    rule_name,
    seconds,
    short_type,
)
from ..exposition.rows import rule_labels
from ..snapshot import EntityUsage, LimitState, ThrottleCause
from .drawings import bar, state, trail
from .query import address_of
from .table import name, scrolled
from .view import View

_UPWARDS: Final = (Order.NAME, Order.TOKENS, Order.LEVEL, Order.TYPE, Order.BROKER)
"""Orders that begin with what is first or least."""
_CAPTION: Final = "Quota entities"


def entity_table(view: View) -> Element:
    """One row for each entity of a node."""
    head = element("tr", *(_header(column, view) for column in _COLUMNS))
    rows = (_row(usage, view) for usage in view.rows)
    table = element(
        "table",
        element("caption", _caption(view)),
        element("thead", head),
        element("tbody", *rows),
    )
    return scrolled(table, _CAPTION)


def parts(view: View) -> Element:
    """Links to what comes before and after."""
    links = ((view.before, "Previous", "prev"), (view.following, "Next", "next"))
    made = [
        element("a", text, href=address, rel=rel, id=rel)
        for address, text, rel in links
        if address is not None
    ]
    return element("nav", *made, class_="parts", aria_label="Parts of the table")


def _caption(view: View) -> str:
    unknown = ""
    if view.limits_unknown and view.query.selection.show is Show.NEAR:
        unknown = f" The limits of {view.limits_unknown} entities are unknown: they may be close to them or over."
    if not view.total:
        return f"No entity is like that.{unknown}"
    first = view.query.offset + 1
    if not view.rows:
        return f"There are {view.total}; this is behind the last."
    return f"{first} to {first + len(view.rows) - 1} of {view.total}.{unknown}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """One column of the table."""

    header: str
    cell: Callable[[EntityUsage, View], Child]
    order: Order | None = None
    """By what a click on the header sorts."""
    class_: str = ""


def _header(column: _Column, view: View) -> Element:
    selection = view.query.selection
    if column.order is None:
        return element("th", column.header, scope="col", class_=column.class_)
    sorted_so = column.order is selection.order
    turned = replace(
        selection,
        order=column.order,
        backwards=sorted_so and not selection.backwards,
    )
    address = address_of(replace(view.query, selection=turned, offset=0))
    link = element("a", column.header, href=address, id=f"by-{column.order.value}")
    made = element("th", link, scope="col", class_=column.class_)
    if sorted_so:
        upwards = (column.order in _UPWARDS) is not selection.backwards
        made.set("aria-sort", "ascending" if upwards else "descending")
    return made


def _row(usage: EntityUsage, view: View) -> Element:
    cells = (
        element(
            "th" if column.header == _WHO else "td",
            column.cell(usage, view),
            class_=column.class_,
            **({"scope": "row"} if column.header == _WHO else {}),
        )
        for column in _COLUMNS
    )
    return element("tr", *cells, class_=_state(usage))


def _state(usage: EntityUsage) -> str:
    return state(used_part(usage), throttled=usage.throttle_time_seconds > 0)


def _who(usage: EntityUsage, _: View) -> Child:
    entity = usage.entity
    return entity_name(name(entity.user), name(entity.client_id))


def _amount(usage: EntityUsage, _: View) -> Child:
    if usage.usage is None:
        return UNKNOWN
    return measured(usage.entity.quota_type, usage.usage)


def _limit(usage: EntityUsage, _: View) -> Child:
    return limit_name(usage.entity)


def _used(usage: EntityUsage, _: View) -> Child:
    used = used_part(usage)
    if used is None:
        return _nothing(usage)
    drawn = bar(used, _state(usage))
    return element("span", drawn, element("span", percent(used)), class_="used")


def _trail(usage: EntityUsage, view: View) -> Child:
    known = view.trails.of(usage)
    if all(part is None for part in known):
        return _nothing(usage)
    return trail(known)


def _tokens(usage: EntityUsage, _: View) -> Child:
    entity = usage.entity
    if entity.quota_type is not QuotaType.CONTROLLER_MUTATION:
        return NOT_APPLICABLE
    if usage.tokens is None:
        return _nothing(usage)
    burst = entity.burst_tokens
    return f"{digits(usage.tokens)} of {UNKNOWN if burst is None else digits(burst)}"


def _nothing(usage: EntityUsage) -> str:
    """Instead of a number that an entity has only under a limit: without one it does not apply, else it is unknown."""
    unlimited = usage.entity.limit_state is LimitState.UNLIMITED
    return NOT_APPLICABLE if unlimited else UNKNOWN


def _rule(usage: EntityUsage, _: View) -> Child:
    if usage.cause is ThrottleCause.CONTROLLER_MUTATION:
        return "throttled by a mutation quota"
    if usage.cause is ThrottleCause.UNKNOWN:
        return "unknown: its own quota or a mutation quota"
    rule = usage.entity.resolution
    if rule is None or rule.entity is None:
        return rule_name(rule)
    user, client_id = rule_labels(rule.entity)[1:]
    text = entity_name(name(user), name(client_id))
    level = element("span", level_name(rule).replace("_", " "), class_="level")
    return element("span", level, f" {text}")


_WHO: Final = "User and client-id"
_COLUMNS: Final = (
    _Column(
        header="Node",
        cell=lambda usage, _: name(usage.entity.broker),
        order=Order.BROKER,
    ),
    _Column(
        header="Quota",
        cell=lambda usage, _: short_type(usage.entity.quota_type),
        order=Order.TYPE,
    ),
    _Column(header=_WHO, cell=_who, order=Order.NAME, class_="name"),
    _Column(header="Usage", cell=_amount, order=Order.USAGE, class_="number"),
    _Column(header="Limit", cell=_limit, order=Order.LIMIT, class_="number"),
    _Column(header="Used", cell=_used, order=Order.USED, class_="number"),
    _Column(header="Last 5 minutes", cell=_trail),
    _Column(
        header="Throttle",
        cell=lambda usage, _: (
            seconds(usage.throttle_time_seconds) if usage.throttle_known else "unknown"
        ),
        order=Order.DELAY,
        class_="number",
    ),
    _Column(header="Tokens", cell=_tokens, order=Order.TOKENS, class_="number"),
    _Column(
        header="Level and rule",
        cell=_rule,
        order=Order.LEVEL,
        class_="name",
    ),
)
