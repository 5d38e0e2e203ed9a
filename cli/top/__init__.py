"""`quotascope top`: entities closest to their limits, refreshed in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .. import options
from ..options import grouped
from ..settings import RunningExporter, SourceOptions
from .choices import ALL_TYPES, TYPES, Choices, TopOrder, type_named

EXAMPLES = """
Examples:

quotascope top --config /etc/quotascope.yaml

quotascope top --exporter http://quotascope:9749 --sort delay

quotascope top --exporter https://quotascope:9749 --exporter-ca-file ca.pem --exporter-user me \
--exporter-password-file pw

quotascope top --bootstrap-servers broker-1:9092 --discover 'http://{host}:8778/jolokia' --type produce --filter etl

quotascope top --exporter http://quotascope:9749 | head     # no terminal: one table

quotascope top --exporter http://quotascope:9749 --json | jq '.entities[] | select(.utilization > 0.9)'

Keys: s sorts by something else, t shows one type of quota, / filters, arrows scroll, q ends.
"""

_SHORTEST_SECONDS = 0.2


@grouped
def top(
    *,
    running: RunningExporter,
    sort: Annotated[
        TopOrder,
        typer.Option(help="By urgency as on the page (throttled first), utilization, throttle time, name, or usage."),
    ] = TopOrder.URGENCY,
    kind: Annotated[
        str,
        typer.Option(
            "--type",
            parser=type_named,
            metavar=f"<{'|'.join(TYPES)}>",
            autocompletion=lambda: list(TYPES),
            help="Show one type of quota only.",
        ),
    ] = ALL_TYPES,
    text: Annotated[
        str, typer.Option("--filter", metavar="TEXT", help="Show users and client-ids that contain this text.")
    ] = "",
    teams: Annotated[Path | None, options.TEAMS] = None,
    every: options.Every = "2s",
    json: options.Json = False,
    sources: SourceOptions,
) -> None:
    """
    Show the entities that are throttled or closest to their limits, and refresh them.

    Without a terminal or with --json, show them once.
    """
    import asyncio

    from rich.console import Console

    from quotascope.exporter.config import seconds_of
    from quotascope.exporter.logs import configure_logs

    from ..teams import team_finder
    from ..terminal import can_redraw
    from .show import open_reader, print_once, watch

    seconds = seconds_of(every, "--every")
    if seconds < _SHORTEST_SECONDS:
        raise typer.BadParameter(f"--every takes {_SHORTEST_SECONDS:g}s or more", param_hint="--every")
    settings = sources.configuration(log_level="error")
    configure_logs(settings.log)
    reader = open_reader(settings, running.target())
    console = Console(highlight=False)
    file = teams or settings.teams
    choices = Choices(order=sort, kind=kind, text=text, teams=None if file is None else team_finder(file))
    if can_redraw(console) and not json:
        asyncio.run(watch(reader, console, choices, seconds, running.target()))
    else:
        asyncio.run(print_once(reader, console, choices, running.target(), as_json=json))
