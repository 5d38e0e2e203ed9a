"""`quotascope rules`: rules files for the agents of brokers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .outputs import put

rules = typer.Typer(name="rules", help="Write rules for the agents of brokers.", no_args_is_help=True)
EXAMPLES = """
Examples:

quotascope rules jmx-exporter > quotascope.yml

quotascope rules jmx-exporter --output /etc/kafka/quotascope.yml
"""


@rules.command(epilog=EXAMPLES)
def jmx_exporter(
    *,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to write; a file there is replaced.")
    ] = None,
) -> None:
    """
    Write a rules file for jmx_exporter: Kafka's quotas under quotascope's names and units, and nothing else.

    Sources need no setting for it: its names are detected.
    """
    from quotascope.exporter.rules import jmx_exporter_rules

    text = jmx_exporter_rules()
    if output is None:
        typer.echo(text, nl=False)
        return
    put(output, text)
    typer.echo(output)
