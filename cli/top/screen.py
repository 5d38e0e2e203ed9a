"""How `quotascope top` looks: a line about the whole, the rows, and the keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from quotascope.exporter.diagnosis.selection import Order, Selection, in_order, matching
from quotascope.exporter.diagnosis.trails import Trails
from quotascope.exporter.diagnosis.units import limits_unknown, muted, throttles_unknown
from quotascope.exporter.snapshot import EntityUsage, LimitState, Snapshot, Usages
from quotascope.exporter.untrusted import one_line
from quotascope.metrics import QuotaType

from ..usage_table import (
    BAR,
    DELAY,
    NODE,
    QUOTA_TYPE,
    QUOTA_TYPE_WHOLE,
    RULE,
    USAGE_OF_LIMIT,
    USED,
    WHO,
    UsageColumn,
    shadow_column,
    style_of,
    usage_table,
)
from .choices import Choices

_LINES_AROUND: Final = 5
"""The first line, the header of the table and its line, what levels are or an empty line, and the keys."""
_WITH_RULES: Final = 84
"""Columns from which on the table has rules."""
_LEVELS: Final = "a rule's digit is its level: 1 (user / client-id) wins over 8 (client-id <default>)"


_BARS: Final = "▁▂▃▄▅▆▇█"
_ASCII_BARS: Final = "_.-=+*%#"


def screen(
    snapshot: Snapshot, trails: Trails, choices: Choices, width: int, height: int, problem: str = ""
) -> RenderableType:
    """All that fits into a terminal; ``problem`` is why there is nothing newer."""
    rows = chosen(snapshot.measured, choices)
    fit = max(1, height - _LINES_AROUND)
    first = min(choices.first, max(0, len(rows) - fit))
    table = entity_table(rows[first : first + fit], trails, width, snapshot)
    head = Text("quotascope top  ", "bold")
    of_type = chosen(snapshot.measured, Choices(kind=choices.kind))
    head.append(summary(snapshot, of_type), "not bold")
    levels = Text(_LEVELS if width >= _WITH_RULES else "", "dim")
    return Group(_cut(head), table, levels, _cut(_last_line(choices, problem)))


def summary(snapshot: Snapshot, shown: Usages) -> str:
    """The whole in one line: sources, who waits, connections that are muted at this moment."""
    up = sum(source.up for source in snapshot.sources)
    throttled = sum(usage.throttled for usage in shown)
    limited = sum(usage.entity.limit_state is LimitState.LIMITED for usage in shown)
    unknown = limits_unknown(shown)
    rest = f"; limits of {unknown} unknown" if unknown else ""
    if snapshot.limits is None:
        rest = "; limits unknown"
    if untimed := throttles_unknown(shown):
        rest += f"; throttle times of {untimed} unknown"
    if snapshot.unsent:
        rest += f"; {snapshot.unsent} more, which the exporter did not send, unknown"
    counts = f"{limited} limited, {throttled} throttled lately" if snapshot.nodes else "entities unknown"
    return f"sources up {up}/{len(snapshot.sources)}; {counts}; muted now {muted(snapshot)}{rest}"


def entity_table(rows: Sequence[EntityUsage], trails: Trails, width: int, snapshot: Snapshot) -> Table:
    """One row for each entity of a node; a narrow terminal shows fewer columns."""
    lately = UsageColumn(
        header="last 5 minutes", cell=lambda usage: _Trail(trails.of(usage), style_of(usage)), width=20
    )
    beside = shadow_column(snapshot)
    digits = max((len(one_line(each.broker)) for each in snapshot.nodes), default=0)
    node = replace(NODE, width=max(len(NODE.header), min(digits, NODE.width or 0)))
    small = (node, *_NARROW[:2], USAGE_OF_LIMIT, *_NARROW[2:])
    wide = (*small[:4], BAR, *small[4:], *beside, lately, RULE)
    wider = (*wide[:2], QUOTA_TYPE_WHOLE, *wide[3:])
    usual = (*small, *beside, RULE)
    layouts = (
        (140, wider),
        (116, wide),
        (_WITH_RULES, usual),
        (60, small),
        (0, _NARROW),
    )
    return usage_table(rows, layouts, width)


def chosen(measured: Usages, choices: Choices) -> Usages:
    """All entities that are limited or throttled, of the chosen type and names, in the chosen order."""
    types = {each.label: each for each in QuotaType}
    wanted = Selection(order=Order(choices.order.value), quota_type=types.get(choices.kind.value), text=choices.text)
    return in_order(matching(measured, wanted), wanted)


def sparkline(parts: Sequence[float | None], *, ascii_only: bool = False) -> str:
    """
    Ratios as a line of small bars: a full one from 1 on, a blank where the ratio is unknown.

    >>> sparkline([None, 0.0, 0.5, 0.99, 1.0, float('inf')])
    ' ▁▅██'
    """
    bars = _ASCII_BARS if ascii_only else _BARS
    most = len(bars) - 1
    return "".join(" " if part is None else bars[int(most * min(1.0, max(0.0, part)))] for part in parts)


def _last_line(choices: Choices, problem: str) -> Text:
    """What is wrong, if something is, or else the keys and what they chose."""
    text = one_line(choices.text)
    if choices.typing:
        return Text(f"filter: {text}_   Enter keeps it, Esc drops it", "yellow")
    if problem:
        return Text(one_line(problem), "bold red")
    filtered = f": {text}" if text else ""
    return Text(f"s sort: {choices.order}   t type: {choices.kind}   / filter{filtered}   arrows scroll   q end", "dim")


def _cut(text: Text) -> Text:
    """On one line, however narrow the terminal is."""
    text.no_wrap = True
    text.overflow = "ellipsis"
    return text


class _Trail:
    """The last minutes, in characters that the terminal has."""

    def __init__(self, parts: Sequence[float | None], style: str) -> None:
        self._parts = parts
        self._style = style

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> RenderResult:
        """As many of the latest as fit."""
        parts = self._parts[-options.max_width :]
        yield Text(sparkline(parts, ascii_only=options.ascii_only), self._style)


_NARROW = (WHO, QUOTA_TYPE, USED, DELAY)
