"""`quotascope alerts`: rules for Prometheus, and the runbooks that they point to."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .site import ClusterLabel, RunbookUrl, site

alerts = typer.Typer(
    name="alerts",
    help="Write alerts, recording rules and runbooks for Prometheus.",
    no_args_is_help=True,
)

Folder = Annotated[
    Path, typer.Argument(metavar="DIR", help="Folder to write to; it is made.")
]
GrafanaUrl = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Where the dashboards are; without it, links in alerts lead to an example.",
    ),
]
SystemUsers = Annotated[
    str | None,
    typer.Option(
        metavar="REGEX",
        help="Users and client ids of the platform's own programs, which a default quota should not hold back.",
    ),
]

_WRITE = """
Examples:

  quotascope alerts write /etc/prometheus/rules

  quotascope alerts write rules --grafana-url https://grafana.corp --runbook-url 'https://wiki.corp/kafka/{alert}' --cluster-label kafka_cluster
"""


@alerts.command(epilog=_WRITE)
def write(
    folder: Folder,
    *,
    cluster_label: ClusterLabel = None,
    grafana_url: GrafanaUrl = None,
    runbook_url: RunbookUrl = None,
    system_users: SystemUsers = None,
) -> None:
    """
    Write rule files for Prometheus and for its operator, an Alertmanager example, and a runbook for each alert.

    Files of the same names are replaced.
    """
    from quotascope.alerts.write import write as write_all

    ours = site(
        cluster_label=cluster_label,
        grafana_url=grafana_url,
        runbook_url=runbook_url,
        system_users=system_users,
    )
    written = list(write_all(folder, ours))
    rules = [path for path in written if path.parent == folder]
    for path in rules:
        typer.echo(path)
    typer.echo(f"{folder / 'runbooks'}: {len(written) - len(rules)} runbooks")
