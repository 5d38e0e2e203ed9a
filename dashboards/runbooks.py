"""Which panel shows what which alert is about: each gets a link to the runbook of that alert."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from quotascope.alerts import Dashboard, Site
from quotascope.alerts import runbook_url as address_of

from .model import Board, Link, Panel, Row, Text

RUNBOOKS: Final[Mapping[str, Mapping[str, str]]] = {
    Dashboard.OVERVIEW.uid: {
        "Throttled": "KafkaQuotaManyClientsThrottled",
        "Longest delay": "KafkaQuotaThrottleBeyondClientTimeout",
        "Closest to the limit, not throttled yet": "KafkaQuotaNearLimit",
        "Produce: most on one broker": "KafkaQuotaHeavyClientWithoutLimit",
        "Fetch: most on one broker": "KafkaQuotaHeavyClientWithoutLimit",
        "Time that clients were told to wait": "KafkaQuotaThrottleSpike",
        "Configured rules": "KafkaQuotaRuleChanged",
    },
    Dashboard.ENTITY.uid: {
        "Delay, by broker": "KafkaQuotaThrottleBeyondClientTimeout",
        "Share of the limit, by broker": "KafkaQuotaNearLimit",
        "Produced": "KafkaQuotaProduceThrottled",
        "Fetched": "KafkaQuotaFetchThrottled",
        "Request time in threads": "KafkaQuotaRequestThrottled",
        "Topic changes per second": "KafkaQuotaMutationThrottled",
        "Tokens left, of the burst": "KafkaQuotaMutationTokensExhausted",
    },
    Dashboard.MUTATIONS.uid: {
        "Buckets, the emptiest first": "KafkaQuotaMutationTokensExhausted",
        "Refused per second, by request": "KafkaQuotaRejectionsRising",
        "Delay": "KafkaQuotaMutationThrottled",
    },
    Dashboard.BROKERS.uid: {
        "Connections waiting, by broker": "KafkaQuotaDelayQueueGrowing",
        "Time that clients were told to wait, by broker": "KafkaQuotaThrottleSpike",
        "Share of the request threads that is busy": "KafkaQuotaRequestTimeNearCapacity",
        "Request time, in threads": "KafkaQuotaExemptRequestTimeHigh",
        "Wait for the next connection": "KafkaQuotaConnectionsThrottled",
        "Delay of refused connections": "KafkaQuotaConnectionsOfAddressRefused",
        "Throttled replication": "KafkaQuotaReplicationThrottleLeftOn",
    },
    Dashboard.SPARK.uid: {
        "Jobs that wait for Kafka": "KafkaQuotaSparkJobThrottled",
        "Repeated task attempts, by cause": "KafkaQuotaSparkRetries",
        "Time since the last progress": "KafkaQuotaSparkQueryStalled",
    },
    Dashboard.EXPORTER.uid: {
        "Exporters": "KafkaQuotaExporterAbsent",
        "Users and client-ids shown": "KafkaQuotaNoQuotaSeries",
        "Sources": "KafkaQuotaSourceDown",
        "Age of the limits": "KafkaQuotaLimitsStale",
        "Utilisation that brokers tell otherwise": "KafkaQuotaUtilizationDisagrees",
        "Age of the numbers": "KafkaQuotaSnapshotStale",
        "Series left out": "KafkaQuotaSeriesDropped",
        "Custom quota callbacks": "KafkaQuotaCustomCallback",
    },
}
"""By dashboard and title of the panel."""


def with_runbooks(board: Board, site: Site) -> Board:
    """A dashboard whose panels lead to the runbooks."""
    alerts = RUNBOOKS[board.uid]
    rows = tuple(_with_links(row, alerts, site) for row in board.rows)
    return replace(board, rows=rows)


def _with_links(row: Row, alerts: Mapping[str, str], site: Site) -> Row:
    panels = ((width, _linked(panel, alerts, site)) for width, panel in row.panels)
    return replace(row, panels=tuple(panels))


def _linked(panel: Panel, alerts: Mapping[str, str], site: Site) -> Panel:
    alert = alerts.get(panel.title)
    if alert is None or isinstance(panel, Text):
        return panel
    link = Link(title=f"Runbook: {alert}", url=address_of(site, alert))
    return replace(panel, links=(*panel.links, link))
