"""Addresses that alerts and dashboards point to, and the differences between installations."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from quotascope.metrics.catalog import boards, families, job_families
from quotascope.metrics.catalog.teams import Team
from quotascope.metrics.kafka.system_users import SYSTEM_USERS

from .errors import InvalidSite
from .settings import AlertSettings, Objective, Profile, check_pattern
from .thresholds import Threshold, thresholds

_LABEL: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
TAKEN: Final = frozenset(
    {"instance", "severity", "scope", "alertname", "slo"}.union(
        *(family.labels for family in (*families(), *job_families()))
    )
    - {"team"}
)
"""Labels that have another meaning in these rules; a team is that of an alert, too."""
_ADDRESS: Final = re.compile(r"https?://[^\s{}]+")
ALERT: Final = "{alert}"
"""Stands for the name of the alert in `Site.runbook_url`."""


class Dashboard(Enum):
    """A dashboard: its uid, and the variables that a link to it can set."""

    OVERVIEW = (boards.OVERVIEW, ("cluster",))
    ENTITY = (boards.ENTITY, ("cluster", "user", "client_id"))
    TEAMS = (boards.TEAMS, ("cluster", "team"))
    MUTATIONS = (boards.MUTATIONS, ("cluster", "user", "client_id"))
    BROKERS = (boards.BROKERS, ("cluster", "broker"))
    SHADOW = (boards.SHADOW, ("cluster", "shadow"))
    SPARK = (boards.SPARK, ("cluster", "app", "query"))
    EXPORTER = (boards.EXPORTER, ("cluster",))

    def __init__(self, uid: str, variables: tuple[str, ...]) -> None:
        self.uid = uid
        self.variables = variables


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """
    The settings in which installations differ.

    Raises:
        InvalidSite: A value cannot be a label or an address.

    """

    cluster_label: str = "cluster"
    """The label that separates the clusters of one Prometheus; every aggregation keeps it. It need not exist."""
    grafana_url: str | None = None
    """Address of Grafana; None for alerts without a link to a dashboard."""
    exporter_url: str | None = None
    """Address of the exporter; None for alerts without a link to its page of an entity."""
    runbook_url: str | None = None
    """Address of a runbook, with ``{alert}`` for the name of the alert; None for alerts and panels without a link."""
    system_users: str = SYSTEM_USERS
    """A regular expression for the users and client-ids of the platform's own programs."""

    profile: Profile = Profile.CORE
    """The alerts that are written unless `alerts` says otherwise."""
    thresholds: Mapping[Threshold, float] = field(default_factory=dict)
    """Values that replace the defaults of thresholds."""
    alerts: Mapping[str, AlertSettings] = field(default_factory=dict)
    """Settings of alerts that differ from the defaults, by name."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """More labels of all alerts."""
    teams: tuple[Team, ...] = ()
    """Teams of entities; the first match counts."""
    objectives: tuple[Objective, ...] = ()

    @property
    def has_teams(self) -> bool:
        """True if alerts on an entity get the label ``team``."""
        return bool(self.teams)

    def value(self, threshold: Threshold) -> float:
        """Return the value of a threshold at this site."""
        return self.thresholds.get(threshold, threshold.value)

    def values(self) -> dict[str, float]:
        """Return the values of all thresholds at this site, by name."""
        return {name: self.value(threshold) for name, threshold in thresholds()}

    def wait(self, alert: str, default: str) -> str:
        """Return the ``for`` of an alert at this site."""
        return self.alerts[alert].wait if alert in self.alerts else default

    def keys(self, *labels: str) -> tuple[str, ...]:
        """
        Return the labels that an aggregation keeps: the cluster's and the given ones.

        >>> Site(cluster_label="kafka").keys("broker")
        ('kafka', 'broker')
        """
        return (self.cluster_label, *labels)

    def __post_init__(self) -> None:
        """Refuse values that cannot work."""
        check_label(self.cluster_label)
        all_labels = [self.labels, *(settings.labels for settings in self.alerts.values())]
        if any(self.cluster_label in labels for labels in all_labels) or self.cluster_label == "team":
            raise InvalidSite(
                f"{self.cluster_label!r} cannot be the label of clusters: labels or teams of the configuration set it"
            )
        if self.grafana_url is not None:
            check_address(self.grafana_url, "a Grafana")
        if self.exporter_url is not None:
            check_address(self.exporter_url, "an exporter")
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


def check_address(url: str, server: str) -> None:
    """Raise ``InvalidSite`` for text that is not the address of a web server, such as "an exporter"."""
    if not _ADDRESS.fullmatch(url):
        raise InvalidSite(f"{url!r} is not the address of {server}: it begins with https:// or http://")


def served_runbooks(exporter_url: str) -> str:
    """Return the address of an exporter's runbooks. Raises ``InvalidSite`` for a text that is no address."""
    check_address(exporter_url, "an exporter")
    return f"{exporter_url.rstrip('/')}/runbooks/{ALERT}"


def dashboard_url(site: Site, dashboard: str) -> str | None:
    """
    Return the address of a dashboard, with variables set to labels of an alert; None if the site names no Grafana.

    Prometheus fills in the values when the alert fires. The variable of the cluster is always called ``cluster``.

    >>> url = dashboard_url(Site(grafana_url="https://grafana.corp"), "quotascope-brokers?cluster")
    >>> url.partition("{{ with ")[0]
    'https://grafana.corp/d/quotascope-brokers{{ $by := "?" }}'
    >>> url.partition("}}{{ with ")[2]
    '$labels.cluster }}{{ $by }}var-cluster={{ . | urlquery }}{{ $by = "&" }}{{ end }}'
    """
    if site.grafana_url is None:
        return None
    uid, _, variables = dashboard.partition("?")
    labels = {name: site.cluster_label if name == "cluster" else name for name in variables.split("&")}
    query = _query({f"var-{name}": label for name, label in labels.items()})
    return f"{site.grafana_url.rstrip('/')}/d/{uid}{query}"


_OF_ENTITY: Final = {"user": "user", "client_id": "client_id"}


def entity_url(site: Site) -> str | None:
    """
    Return the address of the exporter's page of an alert's entity; None if the site names no exporter.

    >>> entity_url(Site())
    """
    return None if site.exporter_url is None else f"{site.exporter_url.rstrip('/')}/entity{_query(_OF_ENTITY)}"


def named_runbook_url(site: Site, alert: str, *, is_entity: bool) -> str | None:
    """
    Return the address of an alert's runbook; the exporter's runbook has the names of the entity in its commands.

    >>> named_runbook_url(Site(runbook_url="https://wiki.corp/{alert}"), "KafkaQuotaNearLimit", is_entity=True)
    'https://wiki.corp/KafkaQuotaNearLimit'
    """
    url = runbook_url(site, alert)
    if url is None or site.exporter_url is None or site.runbook_url != served_runbooks(site.exporter_url):
        return url
    return f"{url}{_query(_OF_ENTITY)}" if is_entity else url


def _query(parameters: Mapping[str, str]) -> str:
    """Return a template of the parameters of an address from labels; a parameter without a value is left out."""
    parts = (
        f'{{{{ with $labels.{label} }}}}{{{{ $by }}}}{name}={{{{ . | urlquery }}}}{{{{ $by = "&" }}}}{{{{ end }}}}'
        for name, label in parameters.items()
    )
    return f'{{{{ $by := "?" }}}}{"".join(parts)}' if parameters else ""


def runbook_url(site: Site, alert: str) -> str | None:
    """
    Return the address of an alert's runbook, None if the site has no runbooks.

    >>> runbook_url(Site(runbook_url="https://wiki.corp/{alert}"), "KafkaQuotaNearLimit")
    'https://wiki.corp/KafkaQuotaNearLimit'
    """
    return site.runbook_url and site.runbook_url.replace(ALERT, alert)
