"""Quota entities as tables in the terminal: usage, limit, the rule that decides, throttling."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.style import Style
from rich.table import Table
from rich.text import Text

from quotascope.exporter.diagnosis.selection import NEAR
from quotascope.exporter.diagnosis.units import (
    entity_name,
    rule_or_cause,
    shadow_name,
    throttle_name,
    type_name,
    usage_of_limit,
    used_name,
)
from quotascope.exporter.snapshot import EntityUsage, Snapshot, place_of
from quotascope.exporter.untrusted import one_line

WIDEST: Final = 150
"""In columns; a wider table would only have wider gaps."""
QUOTA: Final = 10
"""Columns for a quota type, where `controller mutation` is on two lines."""
QUOTA_WHOLE: Final = 19
"""Columns for any quota type on one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageColumn:
    """A column: its header, its width, and its cell in the row of an entity."""

    header: str
    cell: Callable[[EntityUsage], RenderableType]
    width: int | None = None
    """None for a share of what the others leave."""
    share: int | None = None
    """How large a share."""
    right: bool = False


Layouts = Sequence[tuple[int, Sequence[UsageColumn]]]
"""The least width of the terminal for each choice of columns, the widest first."""


def usage_table(entities: Iterable[EntityUsage], layouts: Layouts, width: int) -> Table:
    """
    One row for each entity.

    The widths of the columns do not depend on what is in them, so that a table that is drawn again and again stands
    still; a narrow terminal shows fewer columns.

    Args:
        entities: in the order of the rows.
        layouts: the columns.
        width: of the terminal.

    """
    columns = next(columns for least, columns in layouts if width >= least)
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
        table.add_row(*(column.cell(usage) for column in columns))
    return table


class UsageBar:
    """
    A ratio as a bar that is full at 1.

    Args:
        ratio: what to draw; None for nothing.
        style: its color.

    """

    def __init__(self, ratio: float | None, style: str) -> None:
        self._ratio = ratio
        self._style = style

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw it over the whole width of the cell."""
        if self._ratio is None:
            return
        full, empty = ("#", ".") if options.ascii_only else ("█", "░")
        filled = round(min(1.0, max(0.0, self._ratio)) * options.max_width)
        yield Segment(full * filled, console.get_style(self._style))
        yield Segment(empty * (options.max_width - filled), Style(dim=True))


def style_of(usage: EntityUsage) -> str:
    """Red while throttled, yellow near the limit; the numbers show the same without colors."""
    if usage.throttled:
        return "red"
    used = usage.used
    if used is None:
        return "dim"
    return "yellow" if used >= NEAR else "green"


def shadow_column(snapshot: Snapshot) -> Sequence[UsageColumn]:
    """What shadows would do, where there are any."""
    in_shadows = snapshot.in_shadows
    shadow = UsageColumn(
        header="shadow",
        cell=lambda usage: Text(shadow_name(in_shadows.get(place_of(usage.entity)))),
        width=7,
        right=True,
    )
    return (shadow,) if snapshot.shadows else ()


NODE: Final = UsageColumn(header="node", cell=lambda usage: Text(one_line(usage.entity.broker)), width=10)
"""Ten digits are those of the largest id."""
WHO: Final = UsageColumn(
    header="entity",
    cell=lambda usage: Text(entity_name(usage.entity.user, usage.entity.client_id), style_of(usage)),
    share=3,
)
QUOTA_TYPE: Final = UsageColumn(
    header="quota", cell=lambda usage: Text(type_name(usage.entity.quota_type)), width=QUOTA
)
QUOTA_TYPE_WHOLE: Final = replace(QUOTA_TYPE, width=QUOTA_WHOLE)
USAGE_OF_LIMIT: Final = UsageColumn(
    header="usage / limit", cell=lambda usage: Text(usage_of_limit(usage)), width=20, right=True
)
BAR: Final = UsageColumn(header="", cell=lambda usage: UsageBar(usage.used, style_of(usage)), width=10)
"""The utilization, or the used part of the burst where that is higher, as the next."""
USED: Final = UsageColumn(
    header="used",
    cell=lambda usage: Text(used_name(usage.entity, usage.used), style_of(usage)),
    width=4,
    right=True,
)
DELAY: Final = UsageColumn(
    header="delay", cell=lambda usage: Text(throttle_name(usage), style_of(usage)), width=7, right=True
)
"""The throttle time."""
RULE: Final = UsageColumn(header="rule", cell=lambda usage: Text(rule_or_cause(usage)), share=4)
