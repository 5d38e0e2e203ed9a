"""How `quotascope blame` shows waits in the terminal: the sentences, and a table of culprits and victims for each broker."""

from __future__ import annotations

from datetime import tzinfo

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from quotascope.pages.words import percent
from quotascope.pipeline.blame.summing import Blame
from quotascope.pipeline.report.blame import matrix_of, pools_of, sentences, waited

_MOST = 8
_VICTIMS = 3
"""Columns of victims, which 80 columns have room for."""
_POOLS = 10


def as_tables(found: Blame, by: str, zone: tzinfo) -> RenderableType:
    """The sentences, then a table for each broker, the one with most waiting first."""
    parts: list[RenderableType] = [Text(each, style="bold") for each in sentences(found, zone)]
    pools = pools_of(found)
    for pool, line in pools[:_POOLS]:
        parts += [Text(), Text(line), _table(found, pool, by)]
    if len(pools) > _POOLS:
        parts.append(Text(f"and {len(pools) - _POOLS:,} more brokers: see --html or --json", style="dim"))
    return Group(*parts)


def _table(found: Blame, pool: int, by: str) -> Table:
    """A row for each culprit, a column for each victim."""
    matrix = matrix_of(found, pool, by, most=_MOST)
    named = matrix.victims[:-1][:_VICTIMS]
    total = sum(map(sum, matrix.waits)) or 1
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("culprit", overflow="fold", min_width=16)
    for head in ("caused", "share", *(f"#{number}" for number, _ in enumerate(named, start=1)), "others"):
        table.add_column(head, justify="right", no_wrap=True)
    for name, row in zip(matrix.culprits, matrix.waits, strict=True):
        if sum(row):
            cells = (sum(row), *row[: len(named)], sum(row[len(named) :]))
            caused, *waits = (waited(ns) if ns else "-" for ns in cells)
            table.add_row(Text(name), caused, percent(sum(row) / total), *waits)
    table.caption = "\n".join(f"#{number} {name}" for number, name in enumerate(named, start=1))
    table.caption_justify = "left"
    return table
