"""`quotascope config`: check a configuration without running anything."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .settings import configuration

config = typer.Typer(
    name="config",
    help="Check a configuration, or print the reference.",
    no_args_is_help=True,
)


@config.command(
    epilog="Examples:\n\nquotascope config check /etc/quotascope.yaml\n\nquotascope config example | quotascope config check -"
)
def check(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="YAML file; - is standard input.")
    ],
) -> None:
    """
    Report all mistakes in a configuration, without connecting to anything.

    Exit code 0: it can be used, as far as this is known without a connection. 1: it cannot.
    """
    from quotascope.exporter.errors import ConfigError
    from quotascope.quotas import named

    from .compose import build_exporter

    settings = configuration(file)
    try:
        build_exporter(settings)
    except ConfigError as error:
        subject = (
            named(file)
            if error.subject == "configuration"
            else f"{named(file)}: {error.subject}"
        )
        raise ConfigError(subject, error.problems) from None
    count = len(settings.sources)
    found = ", and those that are found" if settings.discovery.wanted else ""
    typer.echo(f"{named(file)}: fine, {count} source{'' if count == 1 else 's'}{found}")


@config.command(epilog="Examples:\n\nquotascope config example > /etc/quotascope.yaml")
def example() -> None:
    """Print the reference configuration: every key with its default and what it means."""
    from quotascope.exporter.config.reference import reference

    typer.echo(reference(), nl=False)
