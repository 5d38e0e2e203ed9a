"""Quota entities as tables in the terminal: usage, limit, rule, throttling."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.style import Style
from rich.table import Table
from rich.text import Text

from quotascope.exporter.diagnosis.units import (
    NOT_APPLICABLE,
    UNKNOWN,
    entity_name,
    percent,
    rule_or_cause,
    shadow_name,
    throttle_name,
    type_name,
    usage_of_limit,
    used_name,
)
from quotascope.exporter.snapshot import EntityUsage, Snapshot, place_of
from quotascope.exporter.untrusted import one_line
from quotascope.metrics.catalog.teams import UNDECIDED, UNOWNED

if TYPE_CHECKING:
    from quotascope.quotas.team_finder import TeamFinder

WIDEST: Final = 150
"""Greatest width, in columns; a wider table would only have wider gaps."""
QUOTA: Final = 10
"""Width of a quota type in which only the first word of `controller mutation` fits."""
QUOTA_WHOLE: Final = 19
"""Width of a quota type on one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageColumn:
    """A column: its header, its width, and its cell in the row of an entity."""

    header: str
    cell: Callable[[EntityUsage, str], RenderableType]
    """Returns the cell of an entity, with the style of its row."""
    width: int | None = None
    """Width in columns; None for a share of the remaining width."""
    share: int | None = None
    """Share of the remaining width."""
    right: bool = False


Layouts = Sequence[tuple[int, Sequence[UsageColumn]]]
"""Least width of the terminal for each choice of columns, the widest first."""


def usage_table(entities: Iterable[EntityUsage], layouts: Layouts, width: int, near_limit: float) -> Table:
    """
    Return a table with a row for each entity.

    The widths of columns do not depend on their cells, so that a table that is redrawn stands still; a narrow terminal
    shows fewer columns.

    Args:
        entities: entities in the order of the rows.
        layouts: the columns.
        width: width of the terminal.
        near_limit: utilization from which on an entity is near its limit.

    """
    columns = next(columns for min_width, columns in layouts if width >= min_width)
    table = Table(box=box.SIMPLE_HEAD, width=width, padding=0, pad_edge=False, show_edge=False)
    for column in columns:
        table.add_column(
            column.header,
            justify="right" if column.right else "left",
            width=column.width,
            ratio=column.share,
            no_wrap=True,
            overflow="ellipsis",
        )
    for usage in entities:
        style = style_of(usage, near_limit)
        table.add_row(*(column.cell(usage, style) for column in columns))
    return table


class UsageBar:
    """
    A ratio as a bar that is full at 1.

    Args:
        ratio: the ratio; None for no bar.
        style: color of the bar.

    """

    def __init__(self, ratio: float | None, style: str) -> None:
        self._ratio = ratio
        self._style = style

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the bar over the full width of the cell."""
        if self._ratio is None:
            return
        full, empty = ("#", ".") if options.ascii_only else ("█", "░")
        filled = round(min(1.0, max(0.0, self._ratio)) * options.max_width)
        yield Segment(full * filled, console.get_style(self._style))
        yield Segment(empty * (options.max_width - filled), Style(dim=True))


def style_of(usage: EntityUsage, near_limit: float) -> str:
    """Return red for a throttled entity, yellow for one near its limit; numbers show the same without colors."""
    if usage.throttled:
        return "red"
    used = usage.pressure
    if used is None:
        return "dim"
    return "yellow" if used >= near_limit else "green"


def shadow_column(snapshot: Snapshot) -> Sequence[UsageColumn]:
    """Return the column of shadows, if there are any."""
    in_shadows = snapshot.in_shadows
    shadow = UsageColumn(
        header="shadow",
        cell=lambda usage, _: Text(shadow_name(in_shadows.get(place_of(usage.entity)))),
        width=7,
        right=True,
    )
    return (shadow,) if snapshot.shadows else ()


def team_column(teams: TeamFinder) -> UsageColumn:
    """Return the column of the teams that own entities."""

    def cell(usage: EntityUsage, _: str) -> Text:
        label = teams.label(usage.entity.user, usage.entity.client_id)
        return Text({UNOWNED: NOT_APPLICABLE, UNDECIDED: UNKNOWN}.get(label, one_line(label)))

    return UsageColumn(header="team", cell=cell, share=1)


def burst_column(snapshot: Snapshot) -> Sequence[UsageColumn]:
    """Return the column of the used part of buckets, if there are any."""
    columns = snapshot.measured.columns
    has_buckets = columns.burst_used is not columns.layout.absent  # one array stands for all columns without a number
    return (BURST,) if has_buckets else ()


NODE: Final = UsageColumn(header="node", cell=lambda usage, _: Text(one_line(usage.entity.broker)), width=10)
"""Column of the node; the largest id has ten digits."""
WHO: Final = UsageColumn(
    header="entity",
    cell=lambda usage, style: Text(entity_name(usage.entity.user, usage.entity.client_id), style),
    share=3,
)
QUOTA_TYPE_WHOLE: Final = UsageColumn(
    header="quota", cell=lambda usage, _: Text(type_name(usage.entity.quota_type)), width=QUOTA_WHOLE
)
QUOTA_TYPE: Final = replace(
    QUOTA_TYPE_WHOLE, cell=lambda usage, _: Text(type_name(usage.entity.quota_type).split()[0]), width=QUOTA
)
"""Column of the quota type by its first word, which tells types apart: a row has one line."""
USAGE_OF_LIMIT: Final = UsageColumn(
    header="usage / limit", cell=lambda usage, _: Text(usage_of_limit(usage)), width=20, right=True
)
BAR: Final = UsageColumn(header="", cell=lambda usage, style: UsageBar(usage.used, style), width=10)
"""Column of the utilization as a bar."""
USED: Final = UsageColumn(
    header="used",
    cell=lambda usage, style: Text(used_name(usage.entity, usage.used), style),
    width=4,
    right=True,
)
BURST: Final = UsageColumn(
    header="burst",
    cell=lambda usage, style: Text(percent(usage.burst_used) or NOT_APPLICABLE, style),
    width=5,
    right=True,
)
"""Column of the used part of a bucket of controller mutations."""
DELAY: Final = UsageColumn(
    header="delay", cell=lambda usage, style: Text(throttle_name(usage), style), width=7, right=True
)
"""Column of the throttle time."""
RULE: Final = UsageColumn(header="rule", cell=lambda usage, _: Text(rule_or_cause(usage)), share=4)
