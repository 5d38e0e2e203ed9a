"""Options about the place where rules and dashboards are to work, which both of them share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from quotascope.alerts import Site

ClusterLabel = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Label that separates the clusters of one Prometheus (cluster); it need not exist.",
    ),
]
RunbookUrl = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Where the runbooks are; {alert} stands for the alert's name.",
    ),
]
ExporterUrl = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Address of the exporter as people reach it, which serves the runbooks itself. Instead of --runbook-url.",
    ),
]


def site(
    exporter_url: str | None, runbook_url: str | None, **given: str | None
) -> Site:
    """What was given on the command line; the rest is as in the committed files. Raises ``InvalidSite``."""
    from quotascope.alerts import InvalidSite, Site, check_address

    if exporter_url is not None:
        if runbook_url is not None:
            raise InvalidSite(
                "--exporter-url and --runbook-url both say where the runbooks are: give one of them"
            )
        check_address(exporter_url, "an exporter")
        runbook_url = f"{exporter_url.rstrip('/')}/runbooks/{{alert}}"
    named = {name: value for name, value in given.items() if value is not None}
    return Site(runbook_url=runbook_url, **named)


def report_missing_links(site: Site, *, to_dashboards: bool) -> None:
    """Say on standard error which links are left out, and which options make them."""
    if site.runbook_url is None:
        typer.echo(
            "no links to runbooks: --exporter-url or --runbook-url makes them", err=True
        )
    if to_dashboards and site.grafana_url is None:
        typer.echo("no links to dashboards: --grafana-url makes them", err=True)
