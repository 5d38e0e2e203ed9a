"""`quotascope blame`: who made whom wait for a broker's handler threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from . import outputs
from .options import Begin, End, EngineName, Folder, Html, IoThreads, Json, TimeZone, check_extra, span_of, zone_of

if TYPE_CHECKING:
    from datetime import tzinfo

    from rich.console import RenderableType

    from quotascope.pipeline.blame.summing import Blame

    from .fitted import Fitted

_MOST: Final = 8
_VICTIMS: Final = 3
"""Columns of victims, which 80 columns have room for."""
_POOLS: Final = 10

EXAMPLES = """
Examples:

quotascope blame usage

quotascope blame usage --io-threads 8 --html blame.html

quotascope blame usage --by topic --begin 2026-11-22T18:00 --end 2026-11-23T08:00 --time-zone Europe/Berlin

quotascope blame usage --json | jq '.episodes[0]'

spark-submit --master yarn "$(quotascope spark submit-script)" blame hdfs:///kafka/usage --html blame.html
"""


def blame(
    folder: Folder,
    *,
    io_threads: IoThreads = None,
    by: Annotated[
        Literal["client", "api", "topic"],
        typer.Option("--by", help="What victims and culprits are in the table."),
    ] = "client",
    begin: Begin = None,
    end: End = None,
    engine: EngineName = "auto",
    time_zone: TimeZone = "UTC",
    html: Html = None,
    json: Json = False,
) -> None:
    """
    Divide each request's queue time among the requests that held the broker's handler threads meanwhile.

    Shows which client saturated a broker, when, and who waited for how long because of it. Changes nothing.
    """
    check_extra()
    from quotascope.pipeline.report.blame import blame_json, blame_page
    from quotascope.pipeline.runs.blame import blame as blamed
    from quotascope.pipeline.runs.engine import Engine

    outputs.check(html, outputs.STDOUT if json else None)
    zone = zone_of(time_zone)
    span = span_of(begin, end, zone)
    with outputs.bar("dividing waits") as progress:
        found = blamed(folder, span, threads=io_threads, engine=Engine(engine), progress=progress)
    outputs.put(html, blame_page(found, zone) if html else "")
    if json:
        outputs.put_json(blame_json(found))
    if not json and not outputs.printed(html):
        from rich.console import Console

        Console().print(_tables(found, by, zone))


def _tables(found: Blame, by: str, zone: tzinfo) -> RenderableType:
    """The sentences, then a table for each broker, the one with most waiting first."""
    from rich.console import Group
    from rich.text import Text

    from quotascope.pages.words import period
    from quotascope.pipeline.report.blame import pools_of, sentences

    where = period(found.folder, found.plan.begin_us / 1_000, found.plan.end_us / 1_000, zone)
    parts: list[RenderableType] = [Text(where, style="dim")]
    parts += [Text(each, style="bold") for each in sentences(found, zone)]
    pools = pools_of(found)
    for pool, line in pools[:_POOLS]:
        parts += [Text(), Text(line), _table(found, pool, by)]
    if len(pools) > _POOLS:
        parts.append(Text(f"and {len(pools) - _POOLS:,} more brokers: see --html or --json", style="dim"))
    return Group(*parts)


def _table(found: Blame, pool: int, by: str) -> Fitted:
    """A row for each culprit, a column for each victim."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from quotascope.pages.words import percent
    from quotascope.pipeline.report.blame import matrix_of, waited

    from .fitted import Fitted

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
    # untrusted names: a caption that is a str would be markup
    table.caption = Text("\n".join(f"#{number} {name}" for number, name in enumerate(named, start=1)))
    table.caption_justify = "left"
    return Fitted(table)
