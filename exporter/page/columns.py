"""The columns of the tables of entities, and how numbers are drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import zip_longest
from math import isnan
from typing import Final

import numpy as np

from quotascope.metrics.catalog.teams import UNDECIDED, UNOWNED
from quotascope.metrics.kafka.entities import QuotaType

from ..diagnosis.selection import Order
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
    """The data of the cells of a row."""

    usage: EntityUsage
    near_limit: float
    """The utilization from which on it is near its limit."""
    recent: Sequence[float | None] = ()
    throttled: Sequence[bool] = ()
    team: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCell:
    """One cell: a text in a color that has one meaning everywhere, or a drawing with its words."""

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


def color_of(used: float | None, near_limit: float, *, throttled: bool = False) -> str:
    """
    Return ``over`` (throttled, or at the limit), ``near`` or ``fine``.

    The text is empty when the utilization is unknown, or there is no limit.
    """
    if throttled or (used is not None and used >= 1):
        return "over"
    if used is None:
        return ""
    return "near" if used >= near_limit else "fine"


def worded(text: str, color: str = "") -> TableCell:
    """Return a cell with a text; unknown and unlimited look different from numbers."""
    word = text if text in {UNKNOWN, UNLIMITED} else ""
    return TableCell(text=text, color=color or word)


def _nothing(row: TableRow) -> str:
    """Return the text for a missing number that depends on a limit: unknown, or not applicable without a limit."""
    unlimited = row.usage.entity.limit_state is LimitState.UNLIMITED
    return NOT_APPLICABLE if unlimited else UNKNOWN


def used_cell(used: float | None, near_limit: float, *, without: str, throttled: bool = False) -> TableCell:
    """Return a utilization as a bar and a number, in the color of ``color_of``, or else the text ``without``."""
    if used is None:
        return worded(without)
    bar = 100 * min(1.0, max(0.0, used))
    return TableCell(text=percent(used), color=color_of(used, near_limit, throttled=throttled), bar=bar)


def _recent(row: TableRow) -> TableCell:
    """Return a drawing of the last minutes, and the same in words for screen readers."""
    values = [part for part in row.recent if part is not None]
    if not values:
        return worded(_nothing(row))
    lowest, highest = percent(min(values)), percent(max(values))
    minutes = len(row.recent) * STEP_SECONDS / 60
    text = f"last {minutes:.0f} minutes: from {lowest} to {highest}, latest {percent(values[-1])}"
    drawing = {
        "width": _STEP_WIDTH * len(row.recent),
        "height": _RECENT_HEIGHT,
        "limit": f"{_RECENT_HEIGHT * (1 - 1 / _TOP):.1f}",
        "bars": list(
            _bars(
                row.recent,
                row.throttled,
                size=(_STEP_WIDTH, _RECENT_HEIGHT),
                top=_TOP,
                color=partial(color_of, near_limit=row.near_limit),
            )
        ),
        "words": text,
    }
    return TableCell(text=text, drawing=drawing)


def _burst(row: TableRow) -> TableCell:
    """Return the used part of a burst, and the tokens that are left in it."""
    usage = row.usage
    if usage.entity.quota_type is not QuotaType.CONTROLLER_MUTATION:
        return worded(NOT_APPLICABLE)
    if usage.tokens is None:
        return worded(_nothing(row))
    burst, used = usage.entity.burst_tokens, usage.burst_used
    size = UNKNOWN if burst is None else digits(burst)
    part = "" if used is None else f"{percent(used)}, "
    return worded(f"{part}{digits(usage.tokens)} of {size} left", color_of(used, row.near_limit))


def entity_cell(entity: Entity, suffix: str = "", color: str = "") -> TableCell:
    """Return the name of an entity as a link to its page, with a text behind it."""
    text = f"{entity_name(entity.user, entity.client_id)}{suffix}"
    return TableCell(text=text, href=entity_address(entity.user, entity.client_id), color=color)


def _team(team: str | None) -> TableCell:
    """Return the name of a team; an entity that no team owns differs from one of which the team is unknown."""
    words = {None: NOT_APPLICABLE, UNOWNED: NOT_APPLICABLE, UNDECIDED: UNKNOWN}
    return worded(words[team] if team in words else name(str(team)))


TEAM: Final = TableColumn(header="Team", kind="name", cell=lambda row: _team(row.team))
"""Column of teams, which is only shown where teams are configured."""
COLUMNS: Final = (
    TableColumn(
        header="User and client-id", order=Order.NAME, kind="name", cell=lambda row: entity_cell(row.usage.entity)
    ),
    TEAM,
    TableColumn(header="Quota", order=Order.TYPE, cell=lambda row: worded(type_name(row.usage.entity.quota_type))),
    TableColumn(header="Node", order=Order.BROKER, cell=lambda row: worded(name(row.usage.entity.broker))),
    TableColumn(
        header="Used",
        order=Order.USED,
        kind="number",
        cell=lambda row: used_cell(
            row.usage.used, row.near_limit, without=_nothing(row), throttled=row.usage.throttled
        ),
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
        cell=lambda row: worded(
            throttle_name(row.usage), color_of(None, row.near_limit, throttled=row.usage.throttled)
        ),
    ),
    TableColumn(header="Burst used", order=Order.TOKENS, kind="number", cell=_burst),
    TableColumn(header="Rule", order=Order.LEVEL, kind="name", cell=lambda row: worded(rule_or_cause(row.usage))),
)
"""The columns of a table of entities, from the left; the first is the name of the row."""
ENTITY_PAGE_COLUMNS: Final = tuple(column for column in COLUMNS if column.header not in {TEAM.header, "Last 5 minutes"})
"""Columns on the page of an entity, which draws more than five minutes."""


def _bars(
    values: Sequence[float | None],
    throttled: Sequence[bool],
    *,
    size: tuple[int, int],
    top: float,
    color: Callable[..., str],
) -> Iterator[tuple[str, int, str, str]]:
    """
    Yield the bar of each value that is known.

    A bar is its color, left end, upper end and height; ``size`` is the width of a bar and the height at the value
    ``top``.
    """
    width, height = size
    for place, (value, in_throttle) in enumerate(zip_longest(values, throttled, fillvalue=False)):
        if value is not None and not isnan(value):
            length = max(1.0, height * min(1.0, value / top))
            yield color(value, throttled=in_throttle), width * place, f"{height - length:.1f}", f"{length:.1f}"


def trail_drawing(trail: Trail, kind: QuotaType, near_limit: float) -> dict[str, object]:
    """
    Return a larger drawing: utilization or, without a limit, usage; and below it the steps with a throttle.

    A step in which the entity was not seen has no bar.
    """
    limited = not np.isnan(trail.used).all()
    values: Floats = trail.used if limited else trail.usage
    known_values = values[~np.isnan(values)]
    highest = float(known_values.max()) if known_values.size else 0.0
    # the limit (100 %) is in sight, and bars end at twice the limit
    top = max(_TOP, min(highest, 2.0)) if limited else (highest or 1.0)
    in_throttle: list[bool] = (trail.throttle_time > 0).tolist()
    throttled_places = np.flatnonzero(in_throttle).tolist()

    def color_without_limit(_value: float, *, throttled: bool) -> str:
        return "over" if throttled else "plain"

    color: Callable[..., str] = color_without_limit
    if limited:
        color = partial(color_of, near_limit=near_limit)
    quantity = "highest utilization" if limited else "highest usage"

    def text_of(value: float) -> str:
        return percent(value) if limited else measured(kind, value)

    words = "nothing was measured"
    if known_values.size:
        words = (
            f"{quantity} in {trail.step_seconds:g} s: from {text_of(float(known_values.min()))} "
            f"to {text_of(float(known_values.max()))}, latest {text_of(float(known_values[-1]))}"
        )
    throttled_steps = len(throttled_places)
    seen_steps = np.count_nonzero(~np.isnan(values) | ~np.isnan(trail.throttle_time))
    return {
        "width": _TRAIL_WIDTH * len(values),
        "height": _TRAIL_HEIGHT,
        "throttle_top": _TRAIL_HEIGHT + 2,
        "throttle_height": _THROTTLE_HEIGHT,
        "step": _TRAIL_WIDTH - 2,
        "limit": f"{_TRAIL_HEIGHT * (1 - 1 / top):.1f}" if limited else None,
        "bars": list(_bars(values.tolist(), in_throttle, size=(_TRAIL_WIDTH, _TRAIL_HEIGHT), top=top, color=color)),
        "throttled": [_TRAIL_WIDTH * place for place in throttled_places],
        "words": (
            f"{words}; throttled in {throttled_steps} of {seen_steps} steps"
            if throttled_steps
            else f"{words}; not throttled"
        ),
    }
