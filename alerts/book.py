"""All rules of a site."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from . import recording
from .alerting import brokers, clients, exporter, jobs, objectives
from .links import Site
from .rule import Alert, Record, RuleGroup

_OF_OBJECTIVES = "quotascope-budgets-burning"


def recording_groups(site: Site) -> tuple[RuleGroup, ...]:
    """The recording rules; trends and baselines change slowly."""
    groups = (
        _group("quotascope-entities", recording.entities(site)),
        _group("quotascope-trends", recording.trends(site), interval="2m"),
        _group("quotascope-brokers", recording.brokers(site)),
        _group("quotascope-clusters", recording.clusters(site)),
        _group("quotascope-baselines", recording.baselines(site), interval="2m"),
        _group("quotascope-jobs", recording.jobs(site)),
        _group("quotascope-owners", recording.owners(site)),
        _group("quotascope-objectives", recording.objectives(site), interval="1m"),
        _group("quotascope-budgets", recording.budgets(site), interval="2m"),
    )
    return tuple(group for group in groups if group.rules)


def alert_groups(site: Site) -> tuple[RuleGroup, ...]:
    """The alerts that are written, as the site sets them."""
    groups = [
        replace(group, rules=tuple(a for a in group.rules if site.enabled(a.name)))
        for group in _all_alerts(site)
        if site.objectives or group.name != _OF_OBJECTIVES
    ]
    return tuple(group for group in groups if group.rules)


def _all_alerts(site: Site) -> Iterator[RuleGroup]:
    """Every alert; those over trends and long windows are evaluated less often."""
    of_exporters = (
        *exporter.scraped(site),
        *exporter.reads(site),
        *exporter.shows(site),
        *exporter.around(site),
    )
    for group in (
        _group("quotascope-cluster-wide", brokers.cluster_wide(site)),
        _group("quotascope-throttled", clients.throttled(site)),
        _group("quotascope-callbacks", brokers.by_callback(site)),
        _group("quotascope-near-limit", clients.near_limit(site), interval="2m"),
        _group("quotascope-shadows", clients.shadows(site)),
        _group("quotascope-mutations", clients.mutations(site)),
        _group("quotascope-brokers-busy", brokers.busy(site)),
        _group("quotascope-connections", brokers.connections(site)),
        _group("quotascope-replication", brokers.replication(site), interval="2m"),
        _group("quotascope-traffic", clients.traffic(site)),
        _group("quotascope-configuration", brokers.configuration(site)),
        _group("quotascope-exporter", of_exporters),
        _group("quotascope-spark", jobs.jobs(site)),
        _group(_OF_OBJECTIVES, objectives.burning(site), interval="1m"),
    ):
        yield replace(group, rules=tuple(_as_set(site, rule) for rule in group.rules))


def _as_set(site: Site, rule: Record | Alert) -> Record | Alert:
    found = site.alerts.get(rule.name)
    if found is None or isinstance(rule, Record):
        return rule
    return replace(rule, severity=found.severity, wait=found.wait, keep=found.keep)


def _group(name: str, rules: Iterable[Record | Alert], interval: str | None = None) -> RuleGroup:
    return RuleGroup(name=name, rules=tuple(rules), interval=interval)


def records(site: Site) -> Iterator[Record]:
    """All recording rules, in order."""
    for group in recording_groups(site):
        yield from (rule for rule in group.rules if isinstance(rule, Record))


def alerts(site: Site) -> Iterator[Alert]:
    """All alerts, in order, also those that the site does not write."""
    for group in _all_alerts(site):
        yield from (rule for rule in group.rules if isinstance(rule, Alert))
