"""
An example of how Alertmanager may send these alerts.

Each site decides about its receivers; grouping and inhibition are the part to keep.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from .links import Site
from .promql import quoted
from .rule import AlertScope
from .settings import AlertSeverity

_OURS: Final = 'alertname=~"KafkaQuota.+"'
_PAGES: Final = 'alertname=~"KafkaQuotaThrottleSpike|KafkaQuotaManyClientsThrottled"'
_THROTTLED: Final = 'alertname=~"KafkaQuota(Produce|Fetch|Request)Throttled|KafkaQuotaThrottleBeyondClientTimeout"'
_ONE_BY_ONE: Final = (
    'alertname=~"KafkaQuota(Produce|Fetch|Request|Mutation)Throttled|KafkaQuotaThrottleBeyondClientTimeout"'
)
_BY_LIMIT: Final = 'alertname=~"KafkaQuotaNearLimit|KafkaQuotaLimitPredicted|KafkaQuotaHeavyClientWithoutLimit|KafkaQuotaSystemUserThrottledByDefault"'


def alertmanager_example(site: Site) -> dict[str, Any]:
    """Routes, groups and inhibition rules."""
    named = [owner.team for owner in site.owners]
    if site.default_owner is not None:
        named.append(site.default_owner)
    teams = list(dict.fromkeys(named))
    of_teams = [{"matchers": [f"owner={quoted(team)}"], "receiver": team} for team in teams]
    ours = {
        "matchers": [_OURS],
        "receiver": "chat",
        # a hundred throttled clients of a cluster are one message
        "group_by": ["alertname", site.cluster_label],
        "group_wait": "1m",
        "group_interval": "10m",
        "repeat_interval": "12h",
        # alerts on a team's clients are the team's, the others go by severity
        "routes": [
            *of_teams,
            *(
                {
                    "matchers": [f'severity="{severity.value}"'],
                    "receiver": receiver,
                    "group_wait": wait,
                    "repeat_interval": repeat,
                }
                for severity, receiver, wait, repeat in (
                    (AlertSeverity.CRITICAL, "on-call", "30s", "1h"),
                    (AlertSeverity.WARNING, "tickets", "5m", "1d"),
                    (AlertSeverity.INFO, "chat", "5m", "3d"),
                )
            ),
        ],
    }
    return {
        "route": {"receiver": "unrouted", "routes": [ours]},
        "inhibit_rules": [*_inhibitions(site)],
        "receivers": [{"name": name} for name in dict.fromkeys(("unrouted", "on-call", "tickets", "chat", *teams))],
    }


def _inhibitions(site: Site) -> Iterator[dict[str, Any]]:
    cluster = list(site.keys())
    entity = list(site.keys("quota_type", "user", "client_id"))
    # one notification for a problem of a whole cluster, not one for each client and broker
    yield _inhibition([_PAGES], [_OURS, 'scope=~"entity|broker|job"'], cluster)
    yield _inhibition(['alertname="KafkaQuotaThrottleSpike"'], ['alertname="KafkaQuotaManyClientsThrottled"'], cluster)
    yield _inhibition([_PAGES], ['alertname="KafkaQuotaThrottleStorm"'], cluster)
    # those that fired before there were too many go on for a while
    yield _inhibition(['alertname="KafkaQuotaThrottleStorm"'], [_ONE_BY_ONE], cluster)

    # a throttled client is at its limit
    yield _inhibition([_THROTTLED], ['alertname=~"KafkaQuotaNearLimit|KafkaQuotaLimitPredicted"'], entity)
    yield _inhibition(
        ['alertname="KafkaQuotaThrottleBeyondClientTimeout"'],
        ['alertname=~"KafkaQuota(Produce|Fetch)Throttled"'],
        entity,
    )

    # busy handlers are most of the capacity
    yield _inhibition(
        ['alertname="KafkaQuotaBrokerSaturated"'],
        ['alertname="KafkaQuotaRequestTimeNearCapacity"'],
        list(site.keys("broker")),
    )

    # reads that never end are slow, too
    of_source = list(site.keys("instance", "source"))
    yield _inhibition(['alertname="KafkaQuotaSourceDown"'], ['alertname="KafkaQuotaReadsSlow"'], of_source)

    # the fastest of the alerts on a budget says it all
    budget = list(site.keys("slo", "user", "client_id"))
    for faster, slower in (
        ("Fast", "KafkaQuotaBudgetBurns(Slowly)?"),
        ("", "KafkaQuotaBudgetBurnsSlowly"),
    ):
        yield _inhibition([f'alertname="KafkaQuotaBudgetBurns{faster}"'], [f'alertname=~"{slower}"'], budget)

    # without current numbers the other alerts are out of date; jobs report their own
    by_exporters = f'scope!~"{AlertScope.EXPORTER.value}|{AlertScope.JOB.value}"'
    yield _inhibition(['alertname="KafkaQuotaExporterAbsent"'], [_OURS, by_exporters], cluster)
    # one exporter of two may hang: the alerts of the other one must still page
    yield _inhibition(
        ['alertname="KafkaQuotaSnapshotStale"'],
        [_OURS, by_exporters, f'severity!="{AlertSeverity.CRITICAL.value}"'],
        cluster,
    )
    yield _inhibition(['alertname="KafkaQuotaLimitsStale"'], [_BY_LIMIT], cluster)


def _inhibition(source: Sequence[str], target: Sequence[str], equal: Sequence[str]) -> dict[str, Any]:
    return {
        "source_matchers": list(source),
        "target_matchers": list(target),
        "equal": list(equal),
    }
