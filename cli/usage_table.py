"""Quota entities as a table in the terminal: usage, limit, the rule that decides, throttling."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.style import Style
from rich.table import Table
from rich.text import Text

from quotascope.exporter.diagnosis.selection import NEAR
from quotascope.exporter.diagnosis.units import (
    UNKNOWN_NUMBER,
    entity_name,
    level_name,
    rule_name,
    seconds,
    short_type,
    usage_of_limit,
    used_name,
)
from quotascope.exporter.snapshot import EntityUsage, LimitState

from .table_column import TableColumn

WIDEST: Final = 150
"""In columns; a wider table would only have wider gaps."""


def usage_table(entities: Iterable[EntityUsage], width: int) -> Table:
    """
    One row for each entity.

    The widths of the columns do not depend on what is in them, so that a table that is drawn again and again stands
    still; a narrow terminal shows fewer columns.

    Args:
        entities: in the order of the rows.
        width: columns of the terminal.

    """
    columns = next(columns for least, columns in _LAYOUTS if width >= least)
    grid = Table(
        box=box.SIMPLE_HEAD,
        width=min(width, WIDEST),
        padding=0,
        pad_edge=False,
        show_edge=False,
    )
    for column in columns:
        column.add_to(grid)
    for usage in entities:
        grid.add_row(*(column.cell(usage) for column in columns))
    return grid


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

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> RenderResult:
        """Draw it over the whole width of the cell."""
        if self._ratio is None:
            return
        full, empty = ("#", ".") if options.ascii_only else ("█", "░")
        filled = round(min(1.0, max(0.0, self._ratio)) * options.max_width)
        yield Segment(full * filled, console.get_style(self._style))
        yield Segment(empty * (options.max_width - filled), Style(dim=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column(TableColumn):
    """One column of the table."""

    cell: Callable[[EntityUsage], Text | UsageBar]


def _style(usage: EntityUsage) -> str:
    """Red while throttled, yellow near the limit; the numbers show the same without colors."""
    if usage.throttle_time_seconds > 0:
        return "red"
    ratio = usage.utilization
    if ratio is None:
        return "dim"
    return "yellow" if ratio >= NEAR else "green"


def _shown(text: str, usage: EntityUsage) -> Text:
    return Text(text, style=_style(usage))


def _rule(usage: EntityUsage) -> Text:
    limited = usage.entity.limit_state is LimitState.LIMITED
    return Text(rule_name(usage.entity.resolution), style="" if limited else "dim")


def _delay(usage: EntityUsage) -> Text:
    if not usage.throttle_known:
        return Text("unknown")
    return _shown(seconds(usage.throttle_time_seconds), usage)


def _requests(usage: EntityUsage) -> Text:
    count = usage.throttled_requests_total
    return Text(UNKNOWN_NUMBER if count is None else f"{count:.0f}")


_WHO = _Column(
    header="who",
    cell=lambda usage: _shown(
        entity_name(usage.entity.user, usage.entity.client_id), usage
    ),
    share=22,
)
_QUOTA = _Column(
    header="quota",
    cell=lambda usage: Text(short_type(usage.entity.quota_type)),
    width=8,
)
_AMOUNT = _Column(
    header="usage / limit",
    cell=lambda usage: Text(usage_of_limit(usage)),
    width=19,
    right=True,
)
_PERCENT = _Column(
    header="used",
    cell=lambda usage: _shown(used_name(usage.entity, usage.utilization), usage),
    width=4,
    right=True,
)
_BAR = _Column(
    header="",
    cell=lambda usage: UsageBar(usage.utilization, _style(usage)),
    width=5,
)
_RULE = _Column(header="rule that decides", cell=_rule, share=23)
_LEVEL = _Column(
    header="level",
    cell=lambda usage: Text(level_name(usage.entity.resolution), style="dim"),
    width=27,
)
_DELAY = _Column(header="delay", cell=_delay, width=6, right=True)
_WAITED = _Column(
    header="waited",
    cell=lambda usage: Text(seconds(usage.throttled_seconds_total)),
    width=6,
    right=True,
)
_REQUESTS = _Column(header="requests", cell=_requests, width=8, right=True)

_NARROW = (_WHO, _PERCENT, _WAITED)
_SMALL = (_WHO, _QUOTA, _AMOUNT, _PERCENT, _WAITED)
_USUAL = (_WHO, _QUOTA, _AMOUNT, _PERCENT, _RULE, _WAITED)
_LARGE = (_WHO, _QUOTA, _AMOUNT, _BAR, _PERCENT, _RULE, _DELAY, _WAITED)
_WIDE = (*_LARGE[:6], _LEVEL, _DELAY, _WAITED, _REQUESTS)

_LAYOUTS = ((140, _WIDE), (96, _LARGE), (76, _USUAL), (56, _SMALL), (0, _NARROW))
"""The least width for each choice of columns."""
