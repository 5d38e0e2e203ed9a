"""How `quotascope recommend` shows limits in the terminal."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from quotascope.exporter.diagnosis.units import type_name
from quotascope.metrics import spelled
from quotascope.pipeline.recommend.advice import Advice
from quotascope.pipeline.report.recommend_page import (
    caveats,
    configured,
    headline,
    hit_figures,
    limit,
    notes,
    peak_hour,
    verdict,
)
from quotascope.pipeline.report.words import rate
from quotascope.quotas import Commands

from .quotas.change_view import changes_view
from .usage_table import QUOTA

_MOST = 40
_HIT_MOST = 20
_NAME = 16


def show(console: Console, advice: Advice, commands: Commands) -> None:
    """Limits, what they would change, the clients that they would throttle, and the commands: one a line, to be copied."""
    console.print(Text(headline(advice), style="bold"))
    console.print(Text("\n".join((*caveats(advice), "")), style="yellow"))
    console.print(_limits(advice))
    if advice.now is not None:
        console.print(Text("What would change", style="bold"))
        changes = changes_view(advice.changes) if advice.changes else Text("nothing")
        console.print(changes)
        console.print()
    console.print(_hits(advice))
    console.print("Commands, none of which was run", style="bold")
    left_out = (f"# left out: {sentence}" for sentence in commands.left_out)
    for line in (*(commands.lines or ("# nothing to change",)), *left_out):
        console.print(Text(line), soft_wrap=True)
    console.print()
    console.print(Text("\n".join(notes(advice)), style="dim"))


def _limits(advice: Advice) -> RenderableType:
    table = _table("Limits")
    table.add_column("entity", overflow="fold", min_width=_NAME)
    table.add_column("quota", max_width=QUOTA)
    for name in ("now", "recommended", "lowest"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("peak hour", no_wrap=True)
    for made in advice.recommended[:_MOST]:
        cells = (
            spelled(*made.names),
            type_name(made.kind),
            configured(advice, made),
            limit(advice, made),
            rate(made.kind, made.lowest),
            peak_hour(made),
        )
        table.add_row(*map(Text, cells))
    return _with_rest(table, len(advice.recommended), _MOST)


def _hits(advice: Advice) -> RenderableType:
    if not advice.hits:
        return Text(f"{verdict(advice)}\n")
    table = _table("Throttled clients")
    table.add_column("entity", overflow="fold", min_width=_NAME)
    table.add_column("quota", max_width=QUOTA)
    for name in ("limit", "throttled for", "share", "longest", "throttled now"):
        table.add_column(name, justify="right", no_wrap=True)
    for hit in advice.hits[:_HIT_MOST]:
        cells = (
            spelled(hit.user, hit.client_id),
            type_name(hit.kind),
            rate(hit.kind, hit.limit),
            *hit_figures(hit),
        )
        table.add_row(*map(Text, cells))
    return _with_rest(table, len(advice.hits), _HIT_MOST)


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)


def _with_rest(table: Table, rows: int, most: int) -> Table:
    if rows > most:
        table.caption = f"and {rows - most:,} more: see all with --html, --csv or --json"
    return table
