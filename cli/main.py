"""The command `quotascope`: puts the rooms together, one file for each command."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from typing import Annotated, NoReturn

import typer

from . import (
    demo,
    doctor,
    explain,
    ingest,
    recommend,
    request_topic,
    serve,
    status,
    top,
    whatif,
)
from .alerts import alerts
from .config import config
from .dashboards import dashboards
from .history import history
from .quotas import quotas
from .rules import rules
from .spark import spark

app = typer.Typer(
    name="quotascope",
    help="Quota observability for Apache Kafka: who is throttled, by which rule, and how close is everyone else.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.command(epilog=serve.EXAMPLES)(serve.serve)
app.command(epilog=status.EXAMPLES)(status.status)
app.command(epilog=top.EXAMPLES)(top.top)
app.command(epilog=doctor.EXAMPLES)(doctor.doctor)
app.command(epilog=explain.EXAMPLES)(explain.explain)
app.command(epilog=ingest.EXAMPLES)(ingest.ingest)
app.command(epilog=request_topic.EXAMPLES)(request_topic.request_topic)
app.command(epilog=whatif.EXAMPLES)(whatif.whatif)
app.command(epilog=recommend.EXAMPLES)(recommend.recommend)
app.command(epilog=demo.EXAMPLES)(demo.demo)
app.add_typer(history)
app.add_typer(quotas)
app.add_typer(config)
app.add_typer(dashboards)
app.add_typer(alerts)
app.add_typer(rules)
app.add_typer(spark)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

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
    # client names are untrusted: they may hold characters that the terminal's encoding lacks
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        app(prog_name="quotascope")
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and not str(error.name).startswith("quotascope"):  # fmt: skip
            _fail(f"{error.name} is missing: pip install --force-reinstall quotascope")  # fmt: skip
        if _expected(error):
            _fail(str(error))
        if "QUOTASCOPE_TRACEBACK" in os.environ:
            raise
        from quotascope.exporter.untrusted import one_line

        _fail(
            f"unexpected {type(error).__name__}: {one_line(str(error))}\n"
            "This is a defect of quotascope. QUOTASCOPE_TRACEBACK=1 shows where it is."
        )


def _fail(message: str) -> NoReturn:
    sys.stderr.write(f"quotascope: {message}\n")
    sys.exit(1)


def _expected(error: Exception) -> bool:
    # a room that is not loaded has raised nothing, and may lack its libraries
    bases = (
        getattr(sys.modules[module], name)
        for module, name in (
            ("quotascope.alerts.errors", "AlertsError"),
            ("quotascope.clients.errors", "ClientError"),
            ("quotascope.dashboards.errors", "DashboardsError"),
            ("quotascope.exporter.errors", "ExporterError"),
            ("quotascope.pipeline.errors", "PipelineError"),
            ("quotascope.quotas.errors", "QuotasError"),
            ("quotascope.spark_listener.errors", "SparkListenerError"),
        )
        if module in sys.modules
    )
    return isinstance(error, tuple(bases))
