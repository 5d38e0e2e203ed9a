"""Where alerts and dashboards point to, and what differs between installations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from quotascope.metrics.catalog import families, job_families

from .errors import InvalidSite
from .settings import AlertSettings, Objective, Owner, check_pattern
from .thresholds import Threshold

_LABEL: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
TAKEN: Final = frozenset(
    {"instance", "severity", "scope", "alertname", "slo"}.union(
        *(family.labels for family in (*families(), *job_families()))
    )
)
"""Labels that mean something else in our rules."""
_ADDRESS: Final = re.compile(r"https?://[^\s{}]+")
ALERT: Final = "{alert}"
"""Stands for the name of the alert in `Site.runbook_url`."""


class Dashboard(Enum):
    """A dashboard: its uid, and the variables that a link to it can set."""

    OVERVIEW = ("quotascope-overview", ("cluster",))
    ENTITY = ("quotascope-entity", ("cluster", "user", "client_id"))
    MUTATIONS = ("quotascope-mutations", ("cluster", "user", "client_id"))
    BROKERS = ("quotascope-brokers", ("cluster", "broker"))
    SHADOW = ("quotascope-shadow", ("cluster", "shadow"))
    SPARK = ("quotascope-spark", ("cluster", "app", "query"))
    EXPORTER = ("quotascope-exporter", ("cluster",))

    def __init__(self, uid: str, variables: tuple[str, ...]) -> None:
        self.uid = uid
        self.variables = variables


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """
    What differs between installations.

    Raises:
        InvalidSite: A value cannot be a label or an address.

    """

    cluster_label: str = "cluster"
    """The label that separates the clusters of one Prometheus; every aggregation keeps it. It need not exist."""
    grafana_url: str | None = None
    """Where Grafana is; None for alerts without a link to a dashboard."""
    runbook_url: str | None = None
    """Where the runbook of an alert is, ``{alert}`` stands for its name; None for alerts and panels without that link."""
    system_users: str = "(?i).*(entity-operator|topic-operator|user-operator|cruise[-_.]?control|schema[-_.]?registry|mirror[-_.]?maker|quotascope).*"
    """A regular expression for the users and client-ids of the platform's own programs."""

    thresholds: Mapping[Threshold, float] = field(default_factory=dict)
    """Values that take the place of the thresholds' own."""
    alerts: Mapping[str, AlertSettings] = field(default_factory=dict)
    """The alerts that are not written as they are, by name."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """More labels of all alerts."""
    owners: tuple[Owner, ...] = ()
    """The owners of entities; the first that matches counts."""
    default_owner: str | None = None
    """The owner of all other entities; None: no label."""
    objectives: tuple[Objective, ...] = ()

    @property
    def has_owners(self) -> bool:
        """Whether alerts on an entity get the label ``owner`` from it."""
        return bool(self.owners) or self.default_owner is not None

    def value(self, threshold: Threshold) -> float:
        """The value of a threshold here."""
        return self.thresholds.get(threshold, threshold.value)

    def enabled(self, alert: str) -> bool:
        """Whether an alert is written."""
        return alert not in self.alerts or self.alerts[alert].enabled

    def wait(self, alert: str, default: str) -> str:
        """The ``for`` of an alert here."""
        return self.alerts[alert].wait if alert in self.alerts else default

    def keys(self, *labels: str) -> tuple[str, ...]:
        """
        Labels that an aggregation keeps: the cluster's and these.

        >>> Site(cluster_label="kafka").keys("broker")
        ('kafka', 'broker')
        """
        return (self.cluster_label, *labels)

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        check_label(self.cluster_label)
        every = [self.labels, *(each.labels for each in self.alerts.values())]
        if any(self.cluster_label in labels for labels in every) or (self.has_owners and self.cluster_label == "owner"):
            raise InvalidSite(
                f"{self.cluster_label!r} cannot be the label of clusters: labels or owners of the configuration set it"
            )
        if self.grafana_url is not None:
            check_address(self.grafana_url, "a Grafana")
        if self.runbook_url is not None and (
            ALERT not in self.runbook_url or not _ADDRESS.fullmatch(self.runbook_url.replace(ALERT, "x"))
        ):
            raise InvalidSite(
                f"{self.runbook_url!r} is not an address of runbooks: it needs https:// or http://, and {ALERT}"
            )
        check_pattern(self.system_users)


def check_label(name: str) -> None:
    """Raise ``InvalidSite`` for text that cannot be a label beside those of our series and alerts."""
    if not _LABEL.fullmatch(name) or name.startswith("__"):
        raise InvalidSite(f"{name!r} cannot be a label: letters, digits and underscores only")
    if name in TAKEN:
        raise InvalidSite(f"{name!r} cannot be a label of its own: it means something else in these rules")


def check_address(url: str, of: str) -> None:
    """Raise ``InvalidSite`` for text that is not the address of a web server; ``of`` names the server."""
    if not _ADDRESS.fullmatch(url):
        raise InvalidSite(f"{url!r} is not the address of {of}: it begins with https:// or http://")


def served_runbooks(exporter_url: str) -> str:
    """The address of the runbooks that an exporter serves. Raises ``InvalidSite`` for text that is none."""
    check_address(exporter_url, "an exporter")
    return f"{exporter_url.rstrip('/')}/runbooks/{ALERT}"


def dashboard_url(site: Site, dashboard: Dashboard, labels: Iterable[str]) -> str | None:
    """
    The address of a dashboard, with those variables set that are among an alert's labels; None where the site names no Grafana.

    Prometheus fills in the values when the alert fires. The variable of the cluster is always called ``cluster``.

    >>> dashboard_url(Site(grafana_url="https://grafana.corp"), Dashboard.BROKERS, ["cluster", "broker"])
    'https://grafana.corp/d/quotascope-brokers?var-cluster={{ $labels.cluster | urlquery }}&var-broker={{ $labels.broker | urlquery }}'
    """
    if site.grafana_url is None:
        return None
    known = frozenset(labels)
    named = [(variable, site.cluster_label if variable == "cluster" else variable) for variable in dashboard.variables]
    query = "&".join(
        f"var-{variable}={{{{ $labels.{label} | urlquery }}}}" for variable, label in named if label in known
    )
    address = f"{site.grafana_url.rstrip('/')}/d/{dashboard.uid}"
    return f"{address}?{query}" if query else address


def runbook_url(site: Site, alert: str) -> str | None:
    """
    The address of the runbook of an alert; None where the site has none.

    >>> runbook_url(Site(runbook_url="https://wiki.corp/{alert}"), "KafkaQuotaNearLimit")
    'https://wiki.corp/KafkaQuotaNearLimit'
    """
    return site.runbook_url and site.runbook_url.replace(ALERT, alert)
