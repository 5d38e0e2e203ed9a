"""`quotascope alerts`: rules for Prometheus, and their runbooks."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from . import options
from .app import App
from .options import grouped
from .settings import SiteOptions, report_missing_links

alerts = App("alerts", "Write alerts, recording rules and runbooks for Prometheus, or print their configuration.")

_extras_option = partial(typer.Option, rich_help_panel="Other files, in folders of their own")

Folder = Annotated[
    Path,
    typer.Argument(
        metavar="DIR", help="Folder for the rule files; it is created. rule_files of Prometheus can load all of it."
    ),
]
Alertmanager = Annotated[
    Path | None,
    _extras_option(
        metavar="FILE",
        help=(
            "Write templates of notifications for Alertmanager as well; the documentation (Alerts) has an example "
            "of routes and inhibition."
        ),
    ),
]
PrometheusRule = Annotated[
    Path | None,
    _extras_option(metavar="FILE", help="Write the rules as a PrometheusRule of the Prometheus operator as well."),
]
Runbooks = Annotated[
    Path | None,
    _extras_option(metavar="DIR", help="Write the runbooks as well, in Markdown; the exporter serves them, too."),
]
AlertsProfile = Annotated[
    Literal["core", "all"] | None,
    typer.Option(
        "--profile",
        help="Alerts to write: core (about ten, for an on-call team) or all (each cause on its own).",
        show_default="core",
    ),
]
SystemUsers = Annotated[
    str | None,
    typer.Option(
        metavar="REGEX",
        help="Users and client-ids of the platform's own programs, which a default quota should not throttle.",
    ),
]

_WRITE = """
Examples:

  quotascope alerts write /etc/prometheus/rules --exporter-url https://quotascope.corp --grafana-url \
https://grafana.corp

  quotascope alerts write rules --runbook-url 'https://wiki.corp/kafka/{alert}' --runbooks wiki --cluster-label \
kafka_cluster

  quotascope alerts write rules --profile all --alerts-config alerts.yaml --alertmanager quotascope.tmpl

  quotascope alerts write rules --prometheus-rule kubernetes/quotascope.yaml
"""


@alerts.command(
    epilog=(
        "Examples:\n\nquotascope alerts config > alerts.yaml\n\nquotascope alerts write rules --alerts-config "
        "alerts.yaml"
    )
)
def config() -> None:
    """
    Print the configuration of the alerts: every key with its default and what it means.

    Thresholds with reason and unit, severities, times, labels, links, teams of clients, and objectives (SLO).
    `alerts write` and `dashboards write` use it with --alerts-config.
    """
    from .alerts_config import alerts_reference

    typer.echo(alerts_reference(), nl=False)


@alerts.command(
    epilog=(
        "Examples:\n\nquotascope alerts mixin > quotascope.libsonnet\n\nquotascope alerts mixin --alerts-config "
        "alerts.yaml > quotascope.libsonnet"
    )
)
@grouped
def mixin(
    *,
    installation: SiteOptions,
    profile: AlertsProfile = None,
    grafana_url: Annotated[str | None, options.GRAFANA_URL] = None,
    system_users: SystemUsers = None,
) -> None:
    """
    Print rules, alerts and dashboards as a monitoring mixin: a file of jsonnet.

    The options set the defaults of its _config, which has thresholds, severities, times, labels and links.
    Teams and objectives are fixed.
    """
    from quotascope.alerts.mixin import mixin_file
    from quotascope.dashboards.files import mixin_dashboards

    from .alerts_config import alerts_reference

    ours = installation.site(grafana_url=grafana_url, system_users=system_users, profile=profile)
    typer.echo(mixin_file(ours, alerts_reference(), mixin_dashboards(ours)), nl=False)


@alerts.command(epilog=_WRITE)
@grouped
def write(
    folder: Folder,
    *,
    installation: SiteOptions,
    profile: AlertsProfile = None,
    grafana_url: Annotated[str | None, options.GRAFANA_URL] = None,
    system_users: SystemUsers = None,
    alertmanager: Alertmanager = None,
    prometheus_rule: PrometheusRule = None,
    runbooks: Runbooks = None,
) -> None:
    """
    Write recording rules and alerts for Prometheus, and other files by option.

    Files of the same names are replaced, all of them or none.
    """
    from quotascope.alerts.files import Extras
    from quotascope.alerts.files import write as write_all

    ours = installation.site(grafana_url=grafana_url, system_users=system_users, profile=profile)
    extras = Extras(alertmanager=alertmanager, prometheus_rule=prometheus_rule, runbooks=runbooks)
    written = write_all(folder, ours, extras)
    single = [path for path in written if path.suffix != ".md"]
    for path in single:
        typer.echo(path)
    if runbooks is not None:
        typer.echo(f"{runbooks}: {len(written) - len(single)} runbooks")
    report_missing_links(ours, to_dashboards=True)
