"""
An example of how Alertmanager may send these alerts.

Who is told what is for each site to decide; grouping and inhibition are the part to keep.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from .links import Site
from .rule import Scope, Severity
from .yaml_text import yaml_text

NOTE: Final = "An example written by `quotascope alerts write`: copy what you need, and put your own receivers in."
_OURS: Final = 'alertname=~"KafkaQuota.+"'
_PAGES: Final = 'alertname=~"KafkaQuotaThrottleSpike|KafkaQuotaManyClientsThrottled"'
_THROTTLED: Final = 'alertname=~"KafkaQuota(Produce|Fetch|Request)Throttled|KafkaQuotaThrottleBeyondClientTimeout"'
_BY_LIMIT: Final = 'alertname=~"KafkaQuotaNearLimit|KafkaQuotaLimitPredicted|KafkaQuotaHeavyClientWithoutLimit|KafkaQuotaSystemUserThrottledByDefault"'


def alertmanager_file(site: Site) -> str:
    """Routes, groups and inhibition."""
    return yaml_text(
        NOTE,
        {
            "route": _routes(site),
            "inhibit_rules": _inhibitions(site),
            "receivers": [
                {"name": name} for name in ("nobody", "on-call", "tickets", "chat")
            ],
        },
    )


def _routes(site: Site) -> dict[str, Any]:
    return {
        "receiver": "nobody",
        "routes": [
            {
                "matchers": [_OURS],
                "receiver": "chat",
                # a hundred throttled clients of a cluster are one message
                "group_by": ["alertname", site.cluster_label],
                "group_wait": "1m",
                "group_interval": "10m",
                "repeat_interval": "12h",
                "routes": [
                    _route(Severity.CRITICAL, "on-call", "30s", "1h"),
                    _route(Severity.WARNING, "tickets", "5m", "1d"),
                    _route(Severity.INFO, "chat", "5m", "3d"),
                ],
            }
        ],
    }


def _route(severity: Severity, receiver: str, wait: str, repeat: str) -> dict[str, Any]:
    return {
        "matchers": [f'severity="{severity.value}"'],
        "receiver": receiver,
        "group_wait": wait,
        "repeat_interval": repeat,
    }


def _inhibitions(site: Site) -> list[dict[str, Any]]:
    cluster = [site.cluster_label]
    return [
        *_of_clusters(cluster),
        *_of_entities([*cluster, "quota_type", "user", "client_id"]),
        *_of_exporters(cluster),
    ]


def _of_clusters(cluster: list[str]) -> Iterator[dict[str, Any]]:
    # what hits a whole cluster is told once, not for each client and broker
    yield _inhibition([_PAGES], [_OURS, 'scope=~"entity|broker|job"'], cluster)
    yield _inhibition(
        ['alertname="KafkaQuotaThrottleSpike"'],
        ['alertname="KafkaQuotaManyClientsThrottled"'],
        cluster,
    )


def _of_entities(entity: list[str]) -> Iterator[dict[str, Any]]:
    # who is throttled is at the limit
    yield _inhibition(
        [_THROTTLED],
        ['alertname=~"KafkaQuotaNearLimit|KafkaQuotaLimitPredicted"'],
        entity,
    )
    yield _inhibition(
        ['alertname="KafkaQuotaThrottleBeyondClientTimeout"'],
        ['alertname=~"KafkaQuota(Produce|Fetch)Throttled"'],
        entity,
    )


def _of_exporters(cluster: list[str]) -> Iterator[dict[str, Any]]:
    # without numbers of now, what else still fires is out of date
    yield _inhibition(
        ['alertname="KafkaQuotaExporterAbsent"'],
        [_OURS, f'scope!="{Scope.EXPORTER.value}"'],
        cluster,
    )
    # one exporter of two may hang: what the other one sees must still wake people up
    yield _inhibition(
        ['alertname="KafkaQuotaSnapshotStale"'],
        [
            _OURS,
            f'scope!="{Scope.EXPORTER.value}"',
            f'severity!="{Severity.CRITICAL.value}"',
        ],
        cluster,
    )
    yield _inhibition(
        ['alertname=~"KafkaQuotaLimitsStale|KafkaQuotaCustomCallback"'],
        [_BY_LIMIT],
        cluster,
    )


def _inhibition(
    source: Sequence[str], target: Sequence[str], equal: Sequence[str]
) -> dict[str, Any]:
    return {
        "source_matchers": list(source),
        "target_matchers": list(target),
        "equal": list(equal),
    }
