"""How `quotascope recommend` shows limits in the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from quotascope.exporter.diagnosis.units import short_type
from quotascope.pages.words import seconds
from quotascope.pipeline.recommend.advice import Advice, Hit
from quotascope.pipeline.recommend.recommendation import Recommendation
from quotascope.pipeline.report.recommend_page import (
    caveats,
    configured,
    headline,
    limit,
    muted_now,
    notes,
    verdict,
)
from quotascope.pipeline.report.words import percent, rate, who
from quotascope.pipeline.week import hour_name
from quotascope.quotas import Commands

from .quotas.change_view import changes_view

_MOST = 40
_HIT_MOST = 20
_NAME = 16


def show(console: Console, advice: Advice, commands: Commands) -> None:
    """Limits, what they would change, who would be hit, and the commands: each on a line of its own, to be copied."""
    console.print(Group(*_tables(advice)))
    console.print("Commands, none of which was run", style="bold")
    for line in _lines(commands):
        console.print(Text(line), soft_wrap=True)
    console.print()
    console.print(Text("\n".join(notes(advice)), style="dim"))


def _tables(advice: Advice) -> Iterator[RenderableType]:
    yield Text(headline(advice), style="bold")
    yield Text("\n".join((*caveats(advice), "")), style="yellow")
    yield _limits(advice)
    if advice.now is not None:
        yield Text("What would change", style="bold")
        yield changes_view(advice.changes) if advice.changes else Text("nothing")
        yield Text()
    yield _hits(advice)


def _lines(commands: Commands) -> Iterator[str]:
    yield from commands.lines or ("# nothing to change",)
    for sentence in commands.left_out:
        yield f"# left out: {sentence}"


def _limits(advice: Advice) -> RenderableType:
    table = _table("Limits")
    table.add_column("who", overflow="fold", min_width=_NAME)
    table.add_column("quota", no_wrap=True)
    for name in ("now", "recommended", "lowest"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("decided by", no_wrap=True)
    for made in advice.recommended[:_MOST]:
        table.add_row(*_limit(made, advice))
    return _with_rest(table, len(advice.recommended), _MOST)


def _limit(made: Recommendation, advice: Advice) -> Iterable[Text]:
    user, client_id = (
        name if isinstance(name, str) else None
        for name in (made.entity.user, made.entity.client_id)
    )
    cells = (
        who(user, client_id),
        short_type(made.kind),
        configured(advice, made),
        limit(advice, made),
        rate(made.kind, made.lowest),
        "any hour" if made.hour is None else hour_name(made.hour),
    )
    return map(Text, cells)


def _hits(advice: Advice) -> RenderableType:
    if not advice.hits:
        return Text(f"{verdict(advice)}\n")
    table = _table("Who would be hit")
    table.add_column("who", overflow="fold", min_width=_NAME)
    table.add_column("quota", no_wrap=True)
    for name in ("limit", "for", "share", "longest", "now for"):
        table.add_column(name, justify="right", no_wrap=True)
    for hit in advice.hits[:_HIT_MOST]:
        table.add_row(*_hit(hit))
    return _with_rest(table, len(advice.hits), _HIT_MOST)


def _hit(hit: Hit) -> Iterable[Text]:
    cells = (
        who(hit.user, hit.client_id),
        short_type(hit.kind),
        rate(hit.kind, hit.limit),
        seconds(hit.muted_ms / 1_000),
        percent(hit.share),
        seconds(hit.longest_ms / 1_000),
        muted_now(hit),
    )
    return map(Text, cells)


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)


def _with_rest(table: Table, rows: int, most: int) -> Table:
    if rows > most:
        table.caption = f"and {rows - most:,} more: --html, --csv or --json have all"
    return table
