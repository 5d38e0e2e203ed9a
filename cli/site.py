"""The installation that rules and dashboards are written for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from quotascope.alerts import Site


def site(
    exporter_url: str | None, runbook_url: str | None, **given: str | None
) -> Site:
    """The values of the command line, and those of the committed files for the rest. Raises ``InvalidSite``."""
    from quotascope.alerts import InvalidSite, Site, check_address

    if exporter_url is not None:
        if runbook_url is not None:
            raise InvalidSite(
                "--exporter-url and --runbook-url are both addresses of runbooks: give one of them"
            )
        check_address(exporter_url, "an exporter")
        runbook_url = f"{exporter_url.rstrip('/')}/runbooks/{{alert}}"
    named = {name: value for name, value in given.items() if value is not None}
    return Site(runbook_url=runbook_url, **named)


def report_missing_links(site: Site, *, to_dashboards: bool) -> None:
    """Print on standard error which links are left out, and which options make them."""
    if site.runbook_url is None:
        typer.echo(
            "no links to runbooks: --exporter-url or --runbook-url makes them", err=True
        )
    if to_dashboards and site.grafana_url is None:
        typer.echo("no links to dashboards: --grafana-url makes them", err=True)
