"""How `quotascope top` looks: a line about the whole, the rows, and the keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from rich import box
from rich.console import (
    Console,
    ConsoleOptions,
    Group,
    RenderableType,
    RenderResult,
)
from rich.table import Table
from rich.text import Text

from quotascope.exporter.diagnosis.selection import (
    NEAR,
    Order,
    Selection,
    in_order,
    matching,
)
from quotascope.exporter.diagnosis.trails import Trails, used_part
from quotascope.exporter.diagnosis.units import (
    entity_name,
    limits_unknown,
    muted,
    rule_or_cause,
    short_type,
    throttle_name,
    throttles_unknown,
    usage_of_limit,
    used_name,
)
from quotascope.exporter.snapshot import (
    EntityUsage,
    LimitState,
    Snapshot,
    Usages,
)
from quotascope.exporter.untrusted import one_line
from quotascope.metrics import QuotaType

from ..table_column import TableColumn
from ..usage_table import UsageBar
from .choices import Choices

_LINES_AROUND: Final = 5
"""The first line, the header of the table and its line, an empty line, and the keys."""


_BARS: Final = "▁▂▃▄▅▆▇█"
_ASCII_BARS: Final = "_.-=+*%#"


def screen(
    snapshot: Snapshot,
    trails: Trails,
    choices: Choices,
    width: int,
    height: int,
    problem: str = "",
) -> RenderableType:
    """All that fits into a terminal; ``problem`` is why there is nothing newer."""
    rows = chosen(snapshot.measured, choices)
    fit = max(1, height - _LINES_AROUND)
    first = min(choices.first, max(0, len(rows) - fit))
    table = entity_table(rows[first : first + fit], trails, width)
    head = Text("quotascope top  ", "bold")
    of_type = chosen(snapshot.measured, Choices(kind=choices.kind))
    head.append(summary(snapshot, of_type), "not bold")
    return Group(_cut(head), table, Text(), _cut(_last_line(choices, problem)))


def summary(snapshot: Snapshot, shown: Usages) -> str:
    """The whole in one line: sources, who waits, connections that are muted at this moment."""
    up = sum(source.up for source in snapshot.sources)
    throttled = sum(usage.throttle_time_seconds > 0 for usage in shown)
    limited = sum(usage.entity.limit_state is LimitState.LIMITED for usage in shown)
    unknown = limits_unknown(shown)
    rest = f"; limits of {unknown} unknown" if unknown else ""
    if snapshot.limits is None:
        rest = "; limits unknown"
    if untimed := throttles_unknown(shown):
        rest += f"; throttle times of {untimed} unknown"
    return (
        f"sources up {up}/{len(snapshot.sources)}; {limited} limited, {throttled} throttled lately;"
        f" muted now {muted(snapshot)}{rest}"
    )


def entity_table(rows: Sequence[EntityUsage], trails: Trails, width: int) -> Table:
    """One row for each entity of a node; a narrow terminal shows fewer columns."""
    columns = next(columns for least, columns in _LAYOUTS if width >= least)
    table = Table(
        box=box.SIMPLE_HEAD, width=width, padding=0, pad_edge=False, show_edge=False
    )
    for column in columns:
        column.add_to(table)
    for usage in rows:
        table.add_row(*(column.cell(usage, trails) for column in columns))
    return table


def chosen(measured: Usages, choices: Choices) -> Usages:
    """All entities that are limited or throttled, of the chosen type and names, in the chosen order."""
    types = {short_type(each): each for each in QuotaType}
    wanted = Selection(
        order=Order(choices.order.value),
        quota_type=types.get(choices.kind.value),
        text=choices.text,
    )
    return in_order(matching(measured, wanted), wanted)


def sparkline(parts: Sequence[float | None], *, ascii_only: bool = False) -> str:
    """
    Ratios as a line of small bars: a full one from 1 on, a blank where the ratio is unknown.

    >>> sparkline([None, 0.0, 0.5, 0.99, 1.0, 7.0])
    ' ▁▅██'
    """
    bars = _ASCII_BARS if ascii_only else _BARS
    most = len(bars) - 1
    return "".join(
        " " if part is None else bars[min(most, max(0, int(part * most)))]
        for part in parts
    )


def _last_line(choices: Choices, problem: str) -> Text:
    """What is wrong, if something is, or else the keys and what they chose."""
    text = one_line(choices.text)
    if choices.typing:
        return Text(f"filter: {text}_   Enter keeps it, Esc drops it", "yellow")
    if problem:
        return Text(one_line(problem), "bold red")
    filtered = f": {text}" if text else ""
    return Text(
        f"s sort: {choices.order}   t type: {choices.kind}   / filter{filtered}   arrows scroll   q end",
        "dim",
    )


def _cut(text: Text) -> Text:
    """On one line, however narrow the terminal is."""
    text.no_wrap = True
    text.overflow = "ellipsis"
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column(TableColumn):
    """One column of the table."""

    cell: Callable[[EntityUsage, Trails], RenderableType]


class _Trail:
    """The last minutes, in characters that the terminal has."""

    def __init__(self, parts: Sequence[float | None], style: str) -> None:
        self._parts = parts
        self._style = style

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> RenderResult:
        """As many of the latest as fit."""
        parts = self._parts[-options.max_width :]
        yield Text(sparkline(parts, ascii_only=options.ascii_only), self._style)


def _style(usage: EntityUsage) -> str:
    if usage.throttle_time_seconds > 0:
        return "red"
    used = used_part(usage)
    if used is None:
        return "dim"
    return "yellow" if used >= NEAR else "green"


_NODE = _Column(
    header="node", cell=lambda usage, _: Text(one_line(usage.entity.broker)), width=4
)
_WHO = _Column(
    header="who",
    cell=lambda usage, _: Text(
        entity_name(usage.entity.user, usage.entity.client_id), _style(usage)
    ),
    share=3,
)
_QUOTA = _Column(
    header="quota",
    cell=lambda usage, _: Text(short_type(usage.entity.quota_type)),
    width=8,
)
_AMOUNT = _Column(
    header="usage / limit",
    cell=lambda usage, _: Text(usage_of_limit(usage)),
    width=20,
    right=True,
)
_BAR = _Column(
    header="", cell=lambda usage, _: UsageBar(used_part(usage), _style(usage)), width=10
)
_USED = _Column(
    header="used",
    cell=lambda usage, _: Text(
        used_name(usage.entity, used_part(usage)), _style(usage)
    ),
    width=4,
    right=True,
)
_DELAY = _Column(
    header="delay",
    cell=lambda usage, _: Text(throttle_name(usage), _style(usage)),
    width=7,
    right=True,
)
_LATELY = _Column(
    header="last 5 minutes",
    cell=lambda usage, trails: _Trail(trails.of(usage), _style(usage)),
    width=20,
)
_RULE = _Column(
    header="rule that decides",
    cell=lambda usage, _: Text(rule_or_cause(usage)),
    share=3,
)

_NARROW = (_WHO, _QUOTA, _USED, _DELAY)
_SMALL = (_NODE, _WHO, _QUOTA, _AMOUNT, _USED, _DELAY)
_USUAL = (_NODE, _WHO, _QUOTA, _AMOUNT, _USED, _DELAY, _RULE)
_WIDE = (_NODE, _WHO, _QUOTA, _AMOUNT, _BAR, _USED, _DELAY, _LATELY, _RULE)

_LAYOUTS: Final = ((116, _WIDE), (84, _USUAL), (60, _SMALL), (0, _NARROW))
"""The least width for each choice of columns."""
