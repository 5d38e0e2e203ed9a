"""`quotascope blame`: who made whom wait for a broker's handler threads."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from . import outputs
from .options import (
    EngineName,
    Folder,
    Html,
    IoThreads,
    Json,
    TimeZone,
    check_extra,
    zone_of,
)

EXAMPLES = """
Examples:

quotascope blame usage

quotascope blame usage --io-threads 8 --html blame.html

quotascope blame usage --by topic

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

    from .terminal import bar

    outputs.check(html)
    zone = zone_of(time_zone)
    with bar("dividing waits") as progress:
        found = blamed(folder, threads=io_threads, engine=Engine(engine), progress=progress)
    outputs.put(html, blame_page(found, zone) if html else "")
    if json:
        outputs.put(outputs.STDOUT, blame_json(found))
    if not json and not outputs.printed(html):
        from rich.console import Console

        from .blame_view import as_tables

        Console().print(as_tables(found, by, zone))
