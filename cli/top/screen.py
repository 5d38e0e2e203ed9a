"""The screen of `quotascope top`: a summary, the rows, and the keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from quotascope.exporter.diagnosis.cluster_usage import cluster_sentence, cluster_usages
from quotascope.exporter.diagnosis.selection import Order, Selection, in_order, matching
from quotascope.exporter.diagnosis.trails import Trails
from quotascope.exporter.diagnosis.units import (
    limits_unknown,
    muted,
    throttled_clients,
    throttles_unknown,
    unseen_clients,
)
from quotascope.exporter.snapshot import EntityUsage, LimitState, Snapshot, Usages
from quotascope.exporter.untrusted import one_line
from quotascope.metrics.kafka.entities import QuotaType
from quotascope.pages.words import counted
from quotascope.quotas.team_finder import TeamFinder

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
    burst_column,
    shadow_column,
    team_column,
    usage_table,
)
from .choices import Choices

_LINES_AROUND: Final = 5
"""Number of lines beside the rows: the summary, the header of the table and its line, the legend, and the keys."""
_WITH_CLUSTER: Final = 10
"""Least height of a terminal that also shows what the first row's entity uses on the cluster."""
_WITH_TEAMS: Final = 100
"""Least width of a terminal whose table has teams."""
_WITH_RULES: Final = 78
"""Least width of a terminal whose table has rules."""
_LEVELS: Final = "a rule's digit is its level: 1 (user / client-id) wins over 8 (client-id <default>)"


_BARS: Final = "▁▂▃▄▅▆▇█"
_ASCII_BARS: Final = "_.-=+*%#"


def screen(
    snapshot: Snapshot, trails: Trails, choices: Choices, width: int, height: int, problem: str = ""
) -> RenderableType:
    """Return the contents of a terminal; ``problem`` is the reason why there are no newer values."""
    rows = chosen(snapshot, choices)
    cluster_lines = 1 if height >= _WITH_CLUSTER else 0
    table_rows = max(1, height - _LINES_AROUND - cluster_lines)
    top_row = min(choices.scrolled, max(0, len(rows) - table_rows))
    table = entity_table(rows[top_row : top_row + table_rows], trails, width, snapshot, choices.teams)
    head = Text("quotascope top  ", "bold")
    of_type = chosen(snapshot, Choices(kind=choices.kind))
    head.append(summary(snapshot, of_type), "not bold")
    levels = _cut(Text("; ".join(_legend(width, choices)), "dim"))
    first = Usages(rows.columns, rows.rows[top_row : top_row + 1])
    of_cluster = [_cut(Text(one_line(cluster_sentence(usage)))) for usage in cluster_usages(snapshot, first)]
    return Group(_cut(head), table, *of_cluster[:cluster_lines], levels, _cut(_last_line(choices, problem)))


def _legend(width: int, choices: Choices) -> Iterator[str]:
    """Yield the explanations of the columns that a terminal of this width shows."""
    if hint := hint_of_teams(width, choices):
        yield hint
    if width >= _WITH_RULES:
        yield _LEVELS


def hint_of_teams(width: int, choices: Choices) -> str:
    """Return a hint if there are teams for which the terminal is too narrow, else an empty text."""
    return f"teams: needs {_WITH_TEAMS} columns" if choices.teams is not None and width < _WITH_TEAMS else ""


def summary(snapshot: Snapshot, usages: Usages) -> str:
    """Return a line of sources, limited and throttled clients, and muted connections."""
    up = sum(source.up for source in snapshot.sources)
    unseen = unseen_clients(snapshot)
    if not snapshot.nodes or (unseen and not snapshot.measured):
        counts = "entities unknown"
    else:
        limited = sum(usage.entity.limit_state is LimitState.LIMITED for usage in usages)
        counts = f"{limited} limited, {counted(throttled_clients(usages), 'client')} throttled lately"
    gaps = [unseen] if unseen else []
    if snapshot.limits is None:
        gaps.append("limits unknown")
    elif without_limit := limits_unknown(usages):
        gaps.append(f"limits of {without_limit} unknown")
    if without_time := throttles_unknown(usages):
        gaps.append(f"throttle times of {without_time} unknown")
    if snapshot.unsent:
        gaps.append(f"{snapshot.unsent} more, which the exporter did not send, unknown")
    return "; ".join((f"sources up {up}/{len(snapshot.sources)}", counts, f"muted now {muted(snapshot)}", *gaps))


def entity_table(
    rows: Sequence[EntityUsage], trails: Trails, width: int, snapshot: Snapshot, teams: TeamFinder | None = None
) -> Table:
    """Return a row for each entity of a node; a narrow terminal shows fewer columns."""
    lately = UsageColumn(
        header="last 5 minutes", cell=lambda usage, style: _Trail(trails.utilization(usage), style), width=20
    )
    shadow = shadow_column(snapshot)
    digits = max((len(one_line(usage.broker)) for usage in snapshot.nodes), default=0)
    node = replace(NODE, width=max(len(NODE.header), min(digits, NODE.width or 0)))
    burst = burst_column(snapshot)
    team = () if teams is None else (team_column(teams),)
    small = (node, WHO, QUOTA_TYPE, USAGE_OF_LIMIT, USED, *burst, DELAY)
    wide = (node, WHO, *team, QUOTA_TYPE, USAGE_OF_LIMIT, BAR, USED, *burst, DELAY, *shadow, lately, RULE)
    wider = tuple(QUOTA_TYPE_WHOLE if column is QUOTA_TYPE else column for column in wide)
    usual = (node, WHO, *team, QUOTA_TYPE, USAGE_OF_LIMIT, USED, *burst, DELAY, *shadow, RULE)
    # the rule is more useful than the amounts, as the used part is shown
    tight = (node, WHO, QUOTA_TYPE, USED, *burst, DELAY, *shadow, RULE)
    layouts = (
        (140, wider),
        (116, wide),
        (_WITH_TEAMS, usual),
        (_WITH_RULES, tight),
        (60, small),
        (0, _NARROW),
    )
    return usage_table(rows, layouts, width, snapshot.thresholds.near_limit)


def chosen(snapshot: Snapshot, choices: Choices) -> Usages:
    """Return all limited or throttled entities of the chosen type and names, in the chosen order."""
    types = {kind.label: kind for kind in QuotaType}
    selection = Selection(
        near_limit=snapshot.thresholds.near_limit,
        order=Order(choices.order.value),
        quota_type=types.get(choices.kind),
        text=choices.text,
    )
    return in_order(matching(snapshot.measured, selection), selection)


def sparkline(parts: Sequence[float | None], *, ascii_only: bool = False) -> str:
    """
    Return ratios as a line of small bars: a full one from 1 on, a blank for an unknown ratio.

    >>> sparkline([None, 0.0, 0.5, 0.99, 1.0, float('inf')])
    ' ▁▅██'
    """
    bars = _ASCII_BARS if ascii_only else _BARS
    full = len(bars) - 1
    return "".join(" " if part is None else bars[int(full * min(1.0, max(0.0, part)))] for part in parts)


def _last_line(choices: Choices, problem: str) -> Text:
    """Return the problem, if there is one, or else the keys and the choices."""
    text = one_line(choices.text)
    if choices.typing:
        return Text(f"filter: {text}_   Enter keeps it, Esc drops it", "yellow")
    if problem:
        return Text(one_line(problem), "bold red")
    filtered = f": {text}" if text else ""
    return Text(f"s sort: {choices.order}   t type: {choices.kind}   / filter{filtered}   arrows scroll   q end", "dim")


def _cut(text: Text) -> Text:
    """Return a text that stays on one line of a narrow terminal."""
    text.no_wrap = True
    text.overflow = "ellipsis"
    return text


class _Trail:
    """The utilization of the last minutes, in characters that the terminal has."""

    def __init__(self, parts: Sequence[float | None], style: str) -> None:
        self._parts = parts
        self._style = style

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> RenderResult:
        """Yield as many of the latest values as fit."""
        parts = self._parts[-options.max_width :]
        yield Text(sparkline(parts, ascii_only=options.ascii_only), self._style)


_NARROW = (WHO, QUOTA_TYPE, USED, DELAY)
