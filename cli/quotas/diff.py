"""`quotascope quotas diff`: the cluster beside a file."""

from __future__ import annotations

import json as jsonlib
from enum import StrEnum
from typing import Annotated

import typer
from typer.core import TyperCommand

from ..grouping import grouped
from ..settings import Asking
from . import choices

EXAMPLES = """
Examples:

quotascope quotas diff quotas.yaml --bootstrap-servers broker-1:9092

quotascope quotas diff quotas.yaml --config /etc/quotascope.yaml --format kafka-configs

Exit code 0: the same. 1: an error. 2: they differ.
"""
DIFFERENT = 2


class DiffCommand(TyperCommand):
    """A command whose misuse does not look like a difference: it ends with 1 as every other error does."""

    # typer's own context has a private home in some of its versions, and so has what it raises
    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """As usual, but for the exit code of a mistake."""
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            if getattr(error, "exit_code", 0) != 0:
                error.exit_code = 1  # type: ignore[attr-defined]
            raise


class DiffFormat(StrEnum):
    """How differences are printed."""

    TEXT = "text"
    JSON = "json"
    KAFKA_CONFIGS = "kafka-configs"


@grouped
def diff(
    file: choices.QuotasFile,
    *,
    partial: Annotated[
        bool,
        typer.Option(
            "--partial",
            help="Compare only the entities that are in the file; else what is not in it is to be removed.",
        ),
    ] = False,
    output: Annotated[
        DiffFormat,
        typer.Option(
            "--format",
            help="kafka-configs prints the commands that make the cluster like the file.",
        ),
    ] = DiffFormat.TEXT,
    kafka: Asking,
) -> None:
    """Show what would have to change in the cluster to be as the file says."""
    from rich.console import Console

    from quotascope.quotas import difference, read_quotas

    from .change_view import changes_view
    from .cluster import configured
    from .commands import print_commands

    wanted = read_quotas(file)
    settings = kafka.configuration()
    current = configured(settings)
    changes = difference(current.of_entities(wanted) if partial else current, wanted)
    if output is DiffFormat.JSON:
        typer.echo(jsonlib.dumps([change.as_json() for change in changes], indent=2))
    elif output is DiffFormat.KAFKA_CONFIGS:
        print_commands(changes, settings, None)
    elif changes:
        Console().print(changes_view(changes))
    if changes:
        raise typer.Exit(DIFFERENT)
