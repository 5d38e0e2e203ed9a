"""`quotascope dashboards`: Grafana's dashboards, written to files or pushed to a Grafana."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from . import options
from .app import App
from .options import grouped
from .settings import SiteOptions, report_missing_links

dashboards = App("dashboards", "Grafana dashboards: write them to files, or push them to a Grafana.")

Recorded = Annotated[
    bool,
    typer.Option(
        "--recorded",
        help=(
            "Read the series of the recording rules of `quotascope alerts write`: needed beyond some thousand clients."
        ),
    ),
]

_WRITE = """
Examples:

  quotascope dashboards write /etc/quotascope

  quotascope dashboards write build --cluster-label kafka_cluster --exporter-url https://quotascope.corp

  quotascope dashboards write build --alerts-config alerts.yaml

  quotascope dashboards write build --schema v2
"""
_PUSH = """
Examples:

  quotascope dashboards push --grafana-url https://grafana.corp --grafana-token-file token

  GRAFANA_TOKEN=… quotascope dashboards push --grafana-url http://localhost:3000
"""


@dashboards.command(epilog=_WRITE)
@grouped
def write(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder for the files; it is created.")],
    *,
    installation: SiteOptions,
    recorded: Recorded = False,
    schema: Annotated[
        Literal["classic", "v2"],
        typer.Option(
            "--schema",
            help=(
                "Form of the JSON. classic: Grafana 12 and 13. v2: Grafana 13, where panels that are often empty are "
                "shown only while they have data."
            ),
        ),
    ] = "classic",
) -> None:
    """Write the dashboards, and the files that make a Grafana load them (provisioning)."""
    from quotascope.dashboards.files import Schema
    from quotascope.dashboards.files import write as write_files
    from quotascope.dashboards.scope import Scope

    ours = installation.site()
    for path in write_files(folder, Scope(site=ours, recorded=recorded), Schema(schema)):
        typer.echo(path)
    report_missing_links(ours, to_dashboards=False)


@dashboards.command(epilog=_PUSH)
@grouped
def push(
    *,
    grafana_url: Annotated[str, options.GRAFANA_URL],
    grafana_token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="File with the token of a service account; else it is taken from GRAFANA_TOKEN."
        ),
    ] = None,
    grafana_ca_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="PEM file of the authorities to trust for Grafana's TLS.")
    ] = None,
    installation: SiteOptions,
    recorded: Recorded = False,
) -> None:
    """
    Put the dashboards into a Grafana, into the folder "Kafka quotas".

    Dashboards that are there under the same uid are replaced.
    """
    import os

    from quotascope.dashboards.errors import GrafanaError
    from quotascope.dashboards.files import grafana_dashboards
    from quotascope.dashboards.grafana import Grafana, push_all, read_token
    from quotascope.dashboards.scope import Scope

    try:
        token = read_token(grafana_token_file, os.environ)
    except GrafanaError as error:
        if grafana_token_file is None:
            raise
        raise typer.BadParameter(str(error), param_hint="--grafana-token-file") from error
    grafana = Grafana(url=grafana_url, token=token, ca_file=grafana_ca_file)
    ours = installation.site()
    models = grafana_dashboards(Scope(site=ours, recorded=recorded))
    for address in push_all(grafana, models):
        typer.echo(address)
    report_missing_links(ours, to_dashboards=False)
