"""Commands for Kafka's own tool on standard output, and what they cannot say on standard error."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from quotascope.exporter.config import Config
    from quotascope.quotas import RuleChange


def print_commands(
    changes: Iterable[RuleChange], config: Config, command_config: str | None
) -> None:
    """One command for each entity. Raises ``ConfigError`` when the configuration does not say where Kafka is."""
    from quotascope.quotas import kafka_configs

    from ..compose import kafka_of

    commands = kafka_configs(
        changes,
        bootstrap_servers=",".join(kafka_of(config).bootstrap_servers),
        command_config=command_config,
    )
    for line in commands.lines:
        typer.echo(line)
    report_left_out(commands.left_out)


def report_left_out(left_out: Iterable[str]) -> None:
    """What is missing on standard output, and why."""
    for sentence in left_out:
        typer.echo(f"quotascope: left out: {sentence}", err=True)
