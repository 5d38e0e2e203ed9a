"""
Links between the dashboards.

Client names are untrusted. They go into addresses only percent-encoded, and into expressions only
between backticks, where PromQL knows no escapes; Grafana fills both in. A backtick in a name ends the
string there, which no format of Grafana prevents: what is asked then is up to the name.
"""

from __future__ import annotations

from typing import NamedTuple

from quotascope.alerts import Dashboard, Site, runbook_url

_HERE = "${datasource:queryparam}&${__url_time_range}"


class Link(NamedTuple):
    """A link of a panel or a cell."""

    title: str
    url: str


def cell(label: str) -> str:
    """
    The value that the row of a table has in the column of a label.

    >>> cell("user")
    '${__data.fields["user"]:percentencode}'
    """
    return f'${{__data.fields["{label}"]:percentencode}}'


def to_row(site: Site, dashboard: Dashboard, title: str, *labels: str) -> Link:
    """
    A link from a row of a table to the dashboard about that row.

    >>> to_row(Site(), Dashboard.BROKERS, "Broker", "broker").url
    '/d/quotascope-brokers?${datasource:queryparam}&${__url_time_range}&var-cluster=${__data.fields["cluster"]:percentencode}&var-broker=${__data.fields["broker"]:percentencode}'
    """
    named = {"cluster": site.cluster_label} | {label: label for label in labels}
    query = "&".join(f"var-{name}={cell(label)}" for name, label in named.items())
    return Link(title=title, url=f"/d/{dashboard.uid}?{_HERE}&{query}")


def to_entity(site: Site) -> Link:
    """The dashboard about the user and client-id of a row."""
    return to_row(site, Dashboard.ENTITY, "This user and client-id", "user", "client_id")


def to_entity_in_chosen_clusters() -> Link:
    """As ``to_entity``, from rows of jobs, which do not know their cluster."""
    query = "&".join(f"var-{label}={cell(label)}" for label in ("user", "client_id"))
    url = f"/d/{Dashboard.ENTITY.uid}?{_HERE}&${{cluster:queryparam}}&{query}"
    return Link(title="The brokers' view", url=url)


def to_job() -> Link:
    """The dashboard about the job of a row."""
    url = f"/d/{Dashboard.SPARK.uid}?{_HERE}&${{cluster:queryparam}}&var-app={cell('app')}"
    return Link(title="This job", url=url)


def to_dashboard(dashboard: Dashboard, title: str) -> Link:
    """A link from a panel to a dashboard about the same clusters."""
    return Link(title=title, url=f"/d/{dashboard.uid}?{_HERE}&${{cluster:queryparam}}")


def runbooks(site: Site, *alerts: str) -> tuple[Link, ...]:
    """The runbooks of alerts that a panel is about; none where the site has no address of runbooks."""
    return tuple(
        Link(title=f"Runbook: {alert}", url=url) for alert in alerts if (url := runbook_url(site, alert)) is not None
    )
