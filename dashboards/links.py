"""
Links between the dashboards.

Client names are untrusted. They go into addresses only percent-encoded, and into expressions only between backticks,
where PromQL knows no escapes; Grafana fills both in. A backtick in a name ends the string there, which no format of
Grafana prevents: the query then depends on the name, and Prometheus refuses most of them. The first heading of
dashboards with texts of variables warns of it (`variables.NOTE`).
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
    Return the placeholder of a row's value in the column of a label.

    >>> cell("user")
    '${__data.fields["user"]:percentencode}'
    """
    return f'${{__data.fields["{label}"]:percentencode}}'


def to_row(site: Site, dashboard: Dashboard, title: str, *labels: str) -> Link:
    """
    Return a link from a row of a table to the dashboard about that row.

    >>> url, cluster, broker = to_row(Site(), Dashboard.BROKERS, "Broker", "broker").url.split("&var-")
    >>> url
    '/d/quotascope-brokers?${datasource:queryparam}&${__url_time_range}'
    >>> cluster, broker
    ('cluster=${__data.fields["cluster"]:percentencode}', 'broker=${__data.fields["broker"]:percentencode}')
    """
    named = {"cluster": site.cluster_label} | {label: label for label in labels}
    query = "&".join(f"var-{name}={cell(label)}" for name, label in named.items())
    return Link(title=title, url=f"/d/{dashboard.uid}?{_HERE}&{query}")


def to_entity(site: Site) -> Link:
    """Return a link to the dashboard about the user and client-id of a row."""
    return to_row(site, Dashboard.ENTITY, "This user and client-id", "user", "client_id")


def to_entity_in_chosen_clusters() -> Link:
    """Return the link of ``to_entity`` for rows of jobs, which do not know their cluster."""
    query = "&".join(f"var-{label}={cell(label)}" for label in ("user", "client_id"))
    url = f"/d/{Dashboard.ENTITY.uid}?{_HERE}&${{cluster:queryparam}}&{query}"
    return Link(title="The brokers' view", url=url)


def to_job() -> Link:
    """Return a link to the dashboard about the job of a row."""
    url = f"/d/{Dashboard.SPARK.uid}?{_HERE}&${{cluster:queryparam}}&var-app={cell('app')}"
    return Link(title="This job", url=url)


def to_dashboard(dashboard: Dashboard, title: str) -> Link:
    """Return a link from a panel to a dashboard about the same clusters."""
    return Link(title=title, url=f"/d/{dashboard.uid}?{_HERE}&${{cluster:queryparam}}")


def runbooks(site: Site, *alerts: str) -> tuple[Link, ...]:
    """Return links to the runbooks of a panel's alerts; none if the site has no address of runbooks."""
    return tuple(
        Link(title=f"Runbook: {alert}", url=url) for alert in alerts if (url := runbook_url(site, alert)) is not None
    )
