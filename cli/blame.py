"""`quotascope blame`: culprits and victims of waits for a broker's handler threads."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

import typer

from . import outputs
from .options import Begin, End, EngineName, Folder, IoThreads, TimeZone, check_extra, grouped, span_of, zone_of

EXAMPLES = """
Examples:

quotascope blame usage

quotascope blame usage --io-threads 8 --html blame.html

quotascope blame usage --by topic --begin 2026-11-22T18:00 --end 2026-11-23T08:00 --time-zone Europe/Berlin

quotascope blame usage --json | jq '.episodes[0]'

spark-submit --master yarn "$(quotascope spark submit-script)" blame hdfs:///kafka/usage --html blame.html
"""


@grouped
def blame(
    folder: Folder,
    *,
    io_threads: IoThreads = None,
    by: Annotated[
        Literal["client", "api", "topic"],
        typer.Option("--by", help="What victims and culprits are."),
    ] = "client",
    begin: Begin = None,
    end: End = None,
    engine: EngineName = "auto",
    time_zone: TimeZone = "UTC",
    results: outputs.Results,
) -> None:
    """
    Divide each request's queue time among the requests that held the broker's handler threads meanwhile.

    Shows which client saturated a broker, when, and who waited for how long because of it. Changes nothing.
    """
    check_extra()
    from quotascope.pipeline.runs import blame as question
    from quotascope.pipeline.runs.engine import EngineChoice

    outputs.check(*results.files)
    zone = zone_of(time_zone)
    span = span_of(begin, end, zone)
    with outputs.bar("dividing waits") as progress:
        waits = question.blame(folder, span, threads=io_threads, engine=EngineChoice(engine), progress=progress)
    outputs.write(
        results,
        report=partial(question.report, waits, zone, by),
        document=partial(question.document, waits),
        csv=partial(question.as_csv, waits),
    )
