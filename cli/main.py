"""The command `quotascope`: puts the rooms together, one file for each command."""

from __future__ import annotations

import os
import sys
from importlib.metadata import version
from io import TextIOWrapper
from typing import Annotated

import typer

from quotascope.alerts.errors import AlertsError
from quotascope.clients.errors import ClientError
from quotascope.dashboards.errors import DashboardsError
from quotascope.exporter.errors import ExporterError
from quotascope.exporter.untrusted import one_line

from . import demo, explain, serve, status
from .alerts import alerts
from .config import config
from .dashboards import dashboards
from .rules import rules

app = typer.Typer(
    name="quotascope",
    help="Quota observability for Apache Kafka: who is throttled, by which rule, and how close is everyone else.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.command(epilog=serve.EXAMPLES)(serve.serve)
app.command(epilog=status.EXAMPLES)(status.status)
app.command(epilog=explain.EXAMPLES)(explain.explain)
app.command(epilog=demo.EXAMPLES)(demo.demo)
app.add_typer(config)
app.add_typer(dashboards)
app.add_typer(alerts)
app.add_typer(rules)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"quotascope {version('quotascope')}")
        raise typer.Exit


@app.callback()
def root(
    *,
    _version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_show_version,
            is_eager=True,
            help="Show the version and exit.",
        ),
    ] = False,
) -> None:
    """Quota observability for Apache Kafka."""


def main() -> None:
    """Run the command line; mistakes and failures become one message and an exit code."""
    _never_fail_to_encode()
    try:
        app()
    except (AlertsError, DashboardsError, ExporterError, ClientError) as error:
        _fail(str(error))
    except Exception as error:
        if "QUOTASCOPE_TRACEBACK" in os.environ:
            raise
        _fail(
            f"unexpected {type(error).__name__}: {one_line(str(error))}\n"
            "This is a defect of quotascope. QUOTASCOPE_TRACEBACK=1 shows where it is."
        )


def _never_fail_to_encode() -> None:
    # names of strangers may hold characters that the terminal's encoding lacks
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


def _fail(message: str) -> None:
    typer.echo(f"quotascope: {message}", err=True)
    sys.exit(1)
