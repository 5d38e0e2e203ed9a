"""`quotascope status`: the state of the cluster once, in the terminal."""

from __future__ import annotations

import typer

from . import options
from .options import grouped
from .settings import RunningExporter, SourceOptions

EXAMPLES = """
Examples:

quotascope status --config /etc/quotascope.yaml

quotascope status --source http://broker-1:8778/jolokia --bootstrap-servers broker-1:9092 --top 20

quotascope status --bootstrap-servers broker-1:9092 --discover 'http://{host}:8778/jolokia'

quotascope status --exporter http://quotascope:9749 --json

Exit code 0: all sources and the limits could be read. 1: something could not.
"""


@grouped
def status(
    *, running: RunningExporter, top: options.Top = 10, json: options.Json = False, sources: SourceOptions
) -> None:
    """
    Read the brokers once, or a running exporter.

    Shows sources, limits, and the entities that are throttled or close to a limit.
    """
    import asyncio
    from functools import partial

    from rich.console import Console

    from quotascope.exporter.api.documents import encoded
    from quotascope.exporter.diagnosis.catalog import FindingSeverity, worst

    from .cluster import observe
    from .status_view import as_json, view

    configuration = partial(sources.configuration, log_level="error")
    snapshot, findings = asyncio.run(observe(configuration, running.target()))
    if json:
        typer.echo(encoded(as_json(snapshot, findings, top), indent=2), nl=False)
    else:
        Console().print(view(snapshot, findings, top))
    if worst(findings) is FindingSeverity.ERROR:
        raise typer.Exit(1)
