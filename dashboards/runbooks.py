"""Which panel shows what which alert is about: each gets a link to the runbook of that alert."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from quotascope.alerts import Dashboard, Site
from quotascope.alerts import runbook_url as address_of

from .model import Board, Link, Panel, Row, Text

RUNBOOKS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    Dashboard.OVERVIEW.uid: {
        "Throttled": ("KafkaQuotaManyClientsThrottled",),
        "Longest delay": ("KafkaQuotaThrottleBeyondClientTimeout",),
        "Throttled now, by which rule": ("KafkaQuotaSystemUserThrottledByDefault",),
        "Closest to the limit, not throttled yet": (
            "KafkaQuotaNearLimit",
            "KafkaQuotaLimitPredicted",
        ),
        "Produce: most on one broker": (
            "KafkaQuotaHeavyClientWithoutLimit",
            "KafkaQuotaOneUserOwnsTraffic",
        ),
        "Fetch: most on one broker": ("KafkaQuotaHeavyClientWithoutLimit",),
        "Time that clients were told to wait": ("KafkaQuotaThrottleSpike",),
        "Configured rules": ("KafkaQuotaRuleChanged",),
    },
    Dashboard.ENTITY.uid: {
        "Delay, by broker": ("KafkaQuotaThrottleBeyondClientTimeout",),
        "Share of the limit, by broker": ("KafkaQuotaNearLimit",),
        "Produced": ("KafkaQuotaProduceThrottled",),
        "Fetched": ("KafkaQuotaFetchThrottled",),
        "Request time in threads": ("KafkaQuotaRequestThrottled",),
        "Topic changes per second": ("KafkaQuotaMutationThrottled",),
        "Tokens left, of the burst": ("KafkaQuotaMutationTokensExhausted",),
    },
    Dashboard.MUTATIONS.uid: {
        "Buckets, the emptiest first": ("KafkaQuotaMutationTokensExhausted",),
        "Refused per second, by request": ("KafkaQuotaRejectionsRising",),
        "Delay": ("KafkaQuotaMutationThrottled",),
    },
    Dashboard.BROKERS.uid: {
        "Connections waiting, by broker": ("KafkaQuotaDelayQueueGrowing",),
        "Time that clients were told to wait, by broker": ("KafkaQuotaThrottleSpike",),
        "Share of the request threads that is busy": (
            "KafkaQuotaRequestTimeNearCapacity",
        ),
        "Request time, in threads": ("KafkaQuotaExemptRequestTimeHigh",),
        "Wait for the next connection": ("KafkaQuotaConnectionsThrottled",),
        "Delay of refused connections": ("KafkaQuotaConnectionsOfAddressRefused",),
        "Throttled replication": ("KafkaQuotaReplicationThrottleLeftOn",),
    },
    Dashboard.SPARK.uid: {
        "Jobs that wait for Kafka": ("KafkaQuotaSparkJobThrottled",),
        "Repeated task attempts, by cause": ("KafkaQuotaSparkRetries",),
        "Time since the last progress": ("KafkaQuotaSparkQueryStalled",),
    },
    Dashboard.EXPORTER.uid: {
        "Exporters": ("KafkaQuotaExporterAbsent",),
        "Users and client-ids shown": ("KafkaQuotaNoQuotaSeries",),
        "Sources": ("KafkaQuotaSourceDown",),
        "Age of the limits": ("KafkaQuotaLimitsStale",),
        "Utilisation that brokers tell otherwise": ("KafkaQuotaUtilizationDisagrees",),
        "Age of the numbers": ("KafkaQuotaSnapshotStale",),
        "Series left out": ("KafkaQuotaSeriesDropped",),
        "Custom quota callbacks": ("KafkaQuotaCustomCallback",),
        "Failed looks for brokers": ("KafkaQuotaDiscoveryFailing",),
        "Pushes, by outcome": ("KafkaQuotaPushFailing",),
        "Configuration can be used": ("KafkaQuotaConfigurationRefused",),
    },
}
"""By dashboard and title of the panel; every alert has one."""


def with_runbooks(board: Board, site: Site) -> Board:
    """A dashboard whose panels lead to the runbooks, where the site has an address of them."""
    rows = tuple(_with_links(row, board.uid, site) for row in board.rows)
    return replace(board, rows=rows)


def _with_links(row: Row, uid: str, site: Site) -> Row:
    panels = ((width, _linked(panel, uid, site)) for width, panel in row.panels)
    return replace(row, panels=tuple(panels))


def _linked(panel: Panel, uid: str, site: Site) -> Panel:
    if isinstance(panel, Text):
        return panel
    links = (
        Link(title=f"Runbook: {alert}", url=url)
        for alert in RUNBOOKS[uid].get(panel.title, ())
        if (url := address_of(site, alert)) is not None
    )
    return replace(panel, links=(*panel.links, *links))
