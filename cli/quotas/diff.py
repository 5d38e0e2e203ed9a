"""`quotascope quotas diff`: the quotas of the cluster compared with a file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from .. import options, outputs
from ..app import Command
from ..options import grouped
from ..settings import AdminOptions, RunningExporter

EXAMPLES = """
Examples:

quotascope quotas diff quotas.yaml --bootstrap-servers broker-1:9092

quotascope quotas diff quotas.yaml --exporter http://quotascope:9749 --json

quotascope quotas diff quotas.yaml --config /etc/quotascope.yaml --kafka-configs

kubectl get kafkausers -o yaml | quotascope quotas diff - --partial --config /etc/quotascope.yaml

Exit code 0: the same. 1: an error. 2: they differ.
"""
DIFFERENT = 2


class DiffCommand(Command):
    """A command that ends with 1 after a misuse, as after any other error: 2 means a difference."""

    # some versions of typer have their context and exceptions in private modules
    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Parse arguments as the base class does, but exit with 1 after a mistake."""
        with _misuse_is_an_error():
            return super().parse_args(ctx, args)

    def invoke(self, ctx: typer.Context) -> object:  # type: ignore[override]
        """Run the command, but exit with 1 after a mistake in the value of an option."""
        with _misuse_is_an_error():
            return super().invoke(ctx)


@contextmanager
def _misuse_is_an_error() -> Iterator[None]:
    """Give usage errors of the block the exit code 1."""
    try:
        yield
    except Exception as error:
        if hasattr(error, "format_message"):
            error.exit_code = 1  # type: ignore[attr-defined]
        raise


@grouped
def diff(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="YAML file with quotas, or Strimzi's KafkaUser manifests; - for standard input."
        ),
    ],
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
    """Show how the quotas of the cluster differ from the file, as the changes that would make them equal."""
    from rich.console import Console

    from quotascope.quotas import difference, merged, read_quotas

    from ..cluster import quotas_and_snapshot
    from . import misnamed_view
    from .change_view import changes_json, changes_view, overruled_changes, overruled_lines
    from .export import print_commands

    if json and kafka_configs:
        typer.echo("quotascope: --json and --kafka-configs exclude each other", err=True)
        raise typer.Exit(1)
    target = read_quotas(file)
    settings = kafka.configuration()
    current, snapshot = quotas_and_snapshot(settings, running.target())
    changes = difference(current.of_entities(target) if partial else current, target)
    doubtful = misnamed_view.of_changes(changes, current, snapshot)
    overruled = overruled_changes(changes, merged(current, target) if partial else target)
    if json:
        outputs.put_json(changes_json(changes, doubtful, kafka.connection, overruled))
    elif kafka_configs:
        print_commands(changes, settings, None)
    elif changes:
        Console().print(changes_view(changes))
        for line in (*overruled_lines(overruled), *misnamed_view.lines(doubtful.values(), kafka.connection)):
            typer.echo(line)
    if changes:
        raise typer.Exit(DIFFERENT)
