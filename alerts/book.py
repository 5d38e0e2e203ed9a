"""All rules of a site."""

from __future__ import annotations

from collections.abc import Iterator

from . import alerting, recording
from .levels import Levels
from .links import Site
from .rule import Alert, Group, Record


def recording_groups(site: Site) -> tuple[Group, ...]:
    """The recording rules."""
    levels = Levels(site)
    return (
        recording.entities(levels),
        recording.trends(),
        recording.brokers(levels),
        recording.clusters(levels),
        recording.baselines(levels),
        recording.jobs(levels),
    )


def alert_groups(site: Site) -> tuple[Group, ...]:
    """The alerts."""
    levels = Levels(site)
    return (
        alerting.cluster_wide(levels),
        alerting.throttled(levels),
        alerting.near_limit(levels),
        alerting.mutations(levels),
        alerting.brokers(levels),
        alerting.connections(levels),
        alerting.replication(levels),
        alerting.traffic(levels),
        alerting.configuration(levels),
        alerting.exporter(levels),
        alerting.jobs(levels),
    )


def records(site: Site) -> Iterator[Record]:
    """All recording rules, in order."""
    for group in recording_groups(site):
        yield from (rule for rule in group.rules if isinstance(rule, Record))


def alerts(site: Site) -> Iterator[Alert]:
    """All alerts, in order."""
    for group in alert_groups(site):
        yield from (rule for rule in group.rules if isinstance(rule, Alert))
