"""How `quotascope recommend` shows limits in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from quotascope.exporter.diagnosis.units import type_name
from quotascope.metrics import spelled
from quotascope.pipeline.rates import rate
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
from quotascope.quotas import Commands

from .fitted import Fitted
from .quotas.change_view import changes_view
from .usage_table import QUOTA

_MOST = 40
_HIT_MOST = 20


def show(console: Console, advice: Advice, commands: Commands) -> None:
    """Limits, what they would change, the clients that they would throttle, and the commands: one a line, to be copied."""
    console.print(Text(headline(advice), style="bold"))
    console.print(Text("\n".join((*caveats(advice), "")), style="yellow"))
    recommended = [
        (
            spelled(*made.names),
            type_name(made.kind),
            configured(advice, made),
            limit(advice, made),
            rate(made.kind, made.lowest),
            peak_hour(made),
        )
        for made in advice.recommended
    ]
    if recommended:
        _show_rows(console, "Limits", recommended, _MOST, "now", "recommended", "lowest", "peak hour")
    if advice.now is not None:
        console.print(Text("What would change", style="bold"))
        changes = changes_view(advice.changes) if advice.changes else Text("nothing")
        console.print(changes)
        console.print()
    if advice.hits:
        throttled = [
            (spelled(hit.user, hit.client_id), type_name(hit.kind), rate(hit.kind, hit.limit), *hit_figures(hit))
            for hit in advice.hits
        ]
        heads = ("limit", "throttled for", "share", "longest", "throttled now")
        _show_rows(console, "Throttled clients", throttled, _HIT_MOST, *heads)
    elif recommended:
        console.print(Text(f"{verdict(advice)}\n"))
    console.print("Commands, none of which was run", style="bold")
    left_out = (f"# left out: {sentence}" for sentence in commands.left_out)
    for line in (*(commands.lines or ("# nothing to change",)), *left_out):
        console.print(Text(line), soft_wrap=True)
    console.print()
    console.print(Text("\n".join(notes(advice)), style="dim"))


def _show_rows(console: Console, title: str, rows: Sequence[Sequence[str]], most: int, *heads: str) -> None:
    """Rows of entity, quota and figures, up to a number of them: a table, or a block for each where the terminal has no room for all figures."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("entity", overflow="fold")
    table.add_column("quota", max_width=QUOTA)
    for head in heads:
        table.add_column(head.replace(" ", "\n"), justify="left" if head == "peak hour" else "right", no_wrap=True)
    for cells in rows[:most]:
        table.add_row(*map(Text, cells))
    console.print(Text(title, style="bold"))
    console.print(Fitted(table))
    if len(rows) > most:
        console.print(Text(f"and {len(rows) - most:,} more: see all with --html, --csv or --json", style="dim"))
