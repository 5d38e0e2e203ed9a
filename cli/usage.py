"""`quotascope usage`: usage of clients by quota type and topic."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from . import options, outputs
from .options import check_extra, grouped, span_of, zone_of

EXAMPLES = """
Examples:

quotascope usage usage --by-topic

quotascope usage usage --user alice --begin 2026-11-22T18:00 --end 2026-11-23T08:00 --time-zone Europe/Berlin

quotascope usage usage --by-user --html usage.html --csv usage.csv

quotascope usage usage --json | jq '.clients[0]'
"""


@grouped
def usage(
    folder: options.Folder,
    *,
    user: Annotated[str | None, options.USER] = None,
    client_id: options.ClientId = None,
    by_topic: Annotated[
        bool,
        typer.Option("--by-topic", help="Also show the topics of each client, by bytes."),
    ] = False,
    by_user: options.ByUser = False,
    begin: options.Begin = None,
    end: options.End = None,
    time_zone: options.TimeZone = "UTC",
    top: options.Top = 20,
    results: outputs.Results,
) -> None:
    """Show who used how much of which quota over a period, from a usage history, and for which topics."""
    check_extra()
    from quotascope.pipeline.runs import usage as question

    outputs.check(*results.files)
    zone = zone_of(time_zone)
    with outputs.bar("adding up"):
        answer = question.find_usage(folder, (user, client_id), span_of(begin, end, zone))
    if by_user:
        answer = question.by_user(answer)
    outputs.write(
        results,
        report=partial(question.report, answer, zone, limit=top, by_topic=by_topic),
        document=partial(question.document, answer),
        csv=partial(question.as_csv, answer),
    )
