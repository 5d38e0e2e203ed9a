"""`quotascope quotas diff`: the quotas of the cluster compared with a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer.core import TyperCommand

from .. import options, outputs
from ..options import grouped
from ..settings import AdminOptions, RunningExporter

EXAMPLES = """
Examples:

quotascope quotas diff quotas.yaml --bootstrap-servers broker-1:9092

quotascope quotas diff quotas.yaml --exporter http://quotascope:9749 --json

quotascope quotas diff quotas.yaml --config /etc/quotascope.yaml --kafka-configs

Exit code 0: the same. 1: an error. 2: they differ.
"""
DIFFERENT = 2


class DiffCommand(TyperCommand):
    """A command that ends with 1 after a misuse, as after any other error: 2 means a difference."""

    # typer's own context has a private home in some of its versions, and so has what it raises
    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """As usual, but for the exit code of a mistake."""
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            if getattr(error, "exit_code", 0) != 0:
                error.exit_code = 1  # type: ignore[attr-defined]
            raise


@grouped
def diff(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="YAML file with quotas, - for standard input.")],
    *,
    partial: Annotated[
        bool,
        typer.Option("--partial", help="Compare only the entities in the file; else the others are differences, too."),
    ] = False,
    json: options.Json = False,
    kafka_configs: Annotated[
        bool,
        typer.Option(
            "--kafka-configs", help="Print the commands of kafka-configs.sh that make the cluster like the file."
        ),
    ] = False,
    running: RunningExporter,
    kafka: AdminOptions,
) -> None:
    """Show the changes that would make the quotas of the cluster those of the file."""
    from rich.console import Console

    from quotascope.quotas import difference, read_quotas

    from ..cluster import configured
    from .change_view import changes_view
    from .export import print_commands

    if json and kafka_configs:
        typer.echo("quotascope: --json and --kafka-configs exclude each other", err=True)
        raise typer.Exit(1)
    wanted = read_quotas(file)
    settings = kafka.configuration()
    current = configured(settings, running.target())
    changes = difference(current.of_entities(wanted) if partial else current, wanted)
    if json:
        outputs.put_json([change.as_json() for change in changes])
    elif kafka_configs:
        print_commands(changes, settings, None)
    elif changes:
        Console().print(changes_view(changes))
    if changes:
        raise typer.Exit(DIFFERENT)
