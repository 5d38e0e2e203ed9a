"""`quotascope dashboards`: Grafana's dashboards, as files or straight into a Grafana."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .site import ClusterLabel, ExporterUrl, RunbookUrl, report_missing_links, site

dashboards = typer.Typer(
    name="dashboards",
    help="Grafana dashboards: write them to files, or push them to a Grafana.",
    no_args_is_help=True,
)

Recorded = Annotated[
    bool,
    typer.Option(
        "--recorded",
        help="Read what the recording rules of `quotascope alerts write` make: needed beyond some thousand clients.",
    ),
]

_WRITE = """
Examples:

  quotascope dashboards write /etc/quotascope

  quotascope dashboards write build --cluster-label kafka_cluster --exporter-url https://quotascope.corp
"""
_PUSH = """
Examples:

  quotascope dashboards push --url https://grafana.corp --token-file token

  GRAFANA_TOKEN=… quotascope dashboards push --url http://localhost:3000
"""


@dashboards.command(epilog=_WRITE)
def write(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Is made if needed.")],
    *,
    cluster_label: ClusterLabel = None,
    exporter_url: ExporterUrl = None,
    runbook_url: RunbookUrl = None,
    recorded: Recorded = False,
) -> None:
    """Write the dashboards, and the files that make a Grafana load them (provisioning)."""
    from quotascope.dashboards.files import write as write_files
    from quotascope.dashboards.scope import Scope

    ours = site(exporter_url, runbook_url, cluster_label=cluster_label)
    for path in write_files(folder, Scope(site=ours, recorded=recorded)):
        typer.echo(path)
    report_missing_links(ours, to_dashboards=False)


@dashboards.command(epilog=_PUSH)
def push(
    *,
    url: Annotated[str, typer.Option(metavar="URL", help="Address of the Grafana.")],
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File with the token of a service account; else it is taken from GRAFANA_TOKEN.",
        ),
    ] = None,
    ca_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="PEM file of the authorities to trust."),
    ] = None,
    cluster_label: ClusterLabel = None,
    exporter_url: ExporterUrl = None,
    runbook_url: RunbookUrl = None,
    recorded: Recorded = False,
) -> None:
    """
    Put the dashboards into a Grafana, into the folder "Kafka quotas".

    Those that are there under the same uid are replaced.
    """
    import os

    from quotascope.dashboards.files import grafana_dashboards
    from quotascope.dashboards.grafana import Grafana, push_all, read_token
    from quotascope.dashboards.scope import Scope

    token = read_token(token_file, os.environ)
    grafana = Grafana(url=url, token=token, ca_file=ca_file)
    ours = site(exporter_url, runbook_url, cluster_label=cluster_label)
    made = grafana_dashboards(Scope(site=ours, recorded=recorded))
    for address in push_all(grafana, made):
        typer.echo(address)
    report_missing_links(ours, to_dashboards=False)
