"""The columns of the tables of entities, and how numbers are drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import isnan
from typing import Final

import numpy as np

from quotascope.metrics import QuotaType

from ..diagnosis.selection import NEAR, Order
from ..diagnosis.trails import STEP_SECONDS, Trail
from ..diagnosis.units import (
    NOT_APPLICABLE,
    UNKNOWN,
    UNLIMITED,
    digits,
    entity_name,
    limit_name,
    measured,
    percent,
    rule_or_cause,
    throttle_name,
    type_name,
    usage_name,
)
from ..snapshot import Entity, EntityUsage, Floats, LimitState
from .render import entity_address, name

_STEP_WIDTH: Final = 4
_RECENT_HEIGHT: Final = 16
_TRAIL_WIDTH: Final = 10
_TRAIL_HEIGHT: Final = 60
_THROTTLE_HEIGHT: Final = 6
_TOP: Final = 1.25
"""The utilization at which a bar of the last minutes reaches the top."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """What the cells of a row are made of."""

    usage: EntityUsage
    recent: Sequence[float | None] = ()
    owner: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCell:
    """One cell: a text, in a color that means the same everywhere, or a drawing with its words."""

    text: str
    color: str = ""
    href: str = ""
    bar: float | None = None
    """Percent of the width that a bar fills."""
    drawing: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumn:
    """A column of a table of entities."""

    header: str
    cell: Callable[[TableRow], TableCell]
    order: Order | None = None
    """The order by which a click on the header sorts."""
    kind: str = ""
    """``name`` or ``number``."""


def color_of(used: float | None, *, throttled: bool = False) -> str:
    """``over`` (throttled, or at the limit), ``near`` or ``fine``; empty when the utilization is unknown, or there is no limit."""
    if throttled or (used is not None and used >= 1):
        return "over"
    if used is None:
        return ""
    return "near" if used >= NEAR else "fine"


def worded(text: str, color: str = "") -> TableCell:
    """A cell with a text; unknown and unlimited look different from numbers."""
    word = text if text in {UNKNOWN, UNLIMITED} else ""
    return TableCell(text=text, color=color or word)


def _nothing(row: TableRow) -> str:
    """For a number that an entity has only under a limit: without one it does not apply, else it is unknown."""
    unlimited = row.usage.entity.limit_state is LimitState.UNLIMITED
    return NOT_APPLICABLE if unlimited else UNKNOWN


def used_cell(used: float | None, without: str) -> TableCell:
    """A utilization as a bar and a number; a text ``without`` one."""
    if used is None:
        return worded(without)
    bar = 100 * min(1.0, max(0.0, used))
    return TableCell(text=percent(used), color=color_of(used), bar=bar)


def _recent(row: TableRow) -> TableCell:
    """A drawing of the last minutes, and the same in words for screen readers."""
    known = [part for part in row.recent if part is not None]
    if not known:
        return worded(_nothing(row))
    least, most = percent(min(known)), percent(max(known))
    minutes = len(row.recent) * STEP_SECONDS / 60
    text = f"last {minutes:.0f} minutes: from {least} to {most}, latest {percent(known[-1])}"
    drawing = {
        "width": _STEP_WIDTH * len(row.recent),
        "height": _RECENT_HEIGHT,
        "limit": f"{_RECENT_HEIGHT * (1 - 1 / _TOP):.1f}",
        "bars": list(_bars(row.recent, color_of, _STEP_WIDTH, _RECENT_HEIGHT, _TOP)),
        "words": text,
    }
    return TableCell(text=text, drawing=drawing)


def _tokens(row: TableRow) -> TableCell:
    usage = row.usage
    if usage.entity.quota_type is not QuotaType.CONTROLLER_MUTATION:
        return worded(NOT_APPLICABLE)
    if usage.tokens is None:
        return worded(_nothing(row))
    burst = usage.entity.burst_tokens
    size = UNKNOWN if burst is None else digits(burst)
    return worded(f"{digits(usage.tokens)} of {size}")


def entity_cell(entity: Entity, suffix: str = "", color: str = "") -> TableCell:
    """The name of an entity with a text behind it, which leads to its page."""
    text = f"{entity_name(entity.user, entity.client_id)}{suffix}"
    return TableCell(text=text, href=entity_address(entity.user, entity.client_id), color=color)


OWNER: Final = TableColumn(header="Owner", kind="name", cell=lambda row: worded(name(row.owner or NOT_APPLICABLE)))
"""Only where owners are configured."""
COLUMNS: Final = (
    TableColumn(
        header="User and client-id", order=Order.NAME, kind="name", cell=lambda row: entity_cell(row.usage.entity)
    ),
    OWNER,
    TableColumn(header="Quota", order=Order.TYPE, cell=lambda row: worded(type_name(row.usage.entity.quota_type))),
    TableColumn(header="Node", order=Order.BROKER, cell=lambda row: worded(name(row.usage.entity.broker))),
    TableColumn(
        header="Used",
        order=Order.USED,
        kind="number",
        cell=lambda row: used_cell(row.usage.used, without=_nothing(row)),
    ),
    TableColumn(header="Usage", order=Order.USAGE, kind="number", cell=lambda row: worded(usage_name(row.usage))),
    TableColumn(
        header="Limit", order=Order.LIMIT, kind="number", cell=lambda row: worded(limit_name(row.usage.entity))
    ),
    TableColumn(header="Last 5 minutes", cell=_recent),
    TableColumn(
        header="Throttle",
        order=Order.DELAY,
        kind="number",
        cell=lambda row: worded(throttle_name(row.usage), color_of(None, throttled=row.usage.throttled)),
    ),
    TableColumn(header="Tokens", order=Order.TOKENS, kind="number", cell=_tokens),
    TableColumn(header="Rule", order=Order.LEVEL, kind="name", cell=lambda row: worded(rule_or_cause(row.usage))),
)
"""The columns of a table of entities, from the left; the first is the name of the row."""
OF_ENTITY: Final = tuple(each for each in COLUMNS if each.header not in {OWNER.header, "Last 5 minutes"})
"""Those on the page of an entity, which draws more than five minutes."""


def _bars(
    values: Iterable[float | None], color: Callable[[float], str], width: int, height: int, top: float
) -> Iterator[tuple[str, int, str, str]]:
    """The bar of each value that is known: its color, its left, its upper end and its height; that of ``top`` has the whole ``height``."""
    for place, value in enumerate(values):
        if value is not None and not isnan(value):
            size = max(1.0, height * min(1.0, value / top))
            yield color(value), width * place, f"{height - size:.1f}", f"{size:.1f}"


def trail_drawing(trail: Trail, kind: QuotaType) -> dict[str, object]:
    """
    A larger drawing: utilization or, without a limit, usage; and below it the steps with a throttle.

    A step in which the entity was not seen has no bar.
    """
    limited = not np.isnan(trail.used).all()
    values: Floats = trail.used if limited else trail.usage
    known = values[~np.isnan(values)]
    # a limit of 100 % in sight, and bars of twice as much at most
    top = max(_TOP, min(float(known.max()), 2.0)) if limited else (float(known.max()) if known.size else 0.0) or 1.0
    throttled = np.flatnonzero(trail.throttle_time > 0).tolist()
    color: Callable[[float], str] = color_of if limited else lambda _: "plain"
    what = "highest utilization" if limited else "highest usage"

    def shown(value: float) -> str:
        return percent(value) if limited else measured(kind, value)

    words = "nothing was measured"
    if known.size:
        words = f"{what} in {trail.step_seconds:g} s: from {shown(float(known.min()))} to {shown(float(known.max()))}, latest {shown(float(known[-1]))}"
    steps = len(throttled)
    seen = np.count_nonzero(~np.isnan(values) | ~np.isnan(trail.throttle_time))
    return {
        "width": _TRAIL_WIDTH * len(values),
        "height": _TRAIL_HEIGHT,
        "throttle_top": _TRAIL_HEIGHT + 2,
        "throttle_height": _THROTTLE_HEIGHT,
        "step": _TRAIL_WIDTH - 2,
        "limit": f"{_TRAIL_HEIGHT * (1 - 1 / top):.1f}" if limited else None,
        "bars": list(_bars(values.tolist(), color, _TRAIL_WIDTH, _TRAIL_HEIGHT, top)),
        "throttled": [_TRAIL_WIDTH * place for place in throttled],
        "words": f"{words}; throttled in {steps} of {seen} steps" if steps else f"{words}; not throttled",
    }
