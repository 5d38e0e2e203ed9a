"""`quotascope mcp`: answers the questions of an assistant about a running exporter."""

from __future__ import annotations

import typer

from .options import grouped
from .settings import RunningExporter

EXAMPLES = """
Examples:

quotascope mcp --exporter http://quotascope:9749

QUOTASCOPE_EXPORTER_PASSWORD=... quotascope mcp --exporter https://quotascope:9749 --exporter-user assistant
"""


@grouped
def mcp(*, running: RunningExporter) -> None:
    """
    Answer an assistant about a running exporter, by the Model Context Protocol.

    The assistant's program starts this command and talks to it on standard input and output
    (documentation: Assistants). Its tools read what the exporter's page shows: clients, rules, episodes, changes and
    runbooks. Nothing can be changed.
    """
    import asyncio
    from importlib.util import find_spec

    from quotascope.exporter.errors import McpMissing

    if find_spec("mcp") is None:
        raise McpMissing("this needs mcp; in a clone of quotascope: pip install '.[mcp]'")
    if (exporter := running.target()) is None:
        raise typer.BadParameter("needs the address of a running exporter", param_hint="--exporter")
    from quotascope.exporter.mcp.server import serve

    asyncio.run(serve(exporter))
