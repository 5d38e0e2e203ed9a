"""New connections wait or are refused (KIP-612)."""

from __future__ import annotations

from quotascope.metrics import catalog

from ..levels import Levels
from ..links import Dashboard
from ..promql import above, aggregate, select
from ..rule import Alert, Group, Scope, Severity
from ..text import DURATION
from ..thresholds import CONNECTION_THROTTLE, IP_CONNECTION_THROTTLE

_LABELS = ("broker", "listener")


def connections(levels: Levels) -> Group:
    """Alerts on the rate of new connections."""
    return Group(
        name="quotascope-connections", rules=(_listener(levels), _address(levels))
    )


def _listener(levels: Levels) -> Alert:
    waiting = above(
        select(catalog.LISTENER_CONNECTION_THROTTLE_SECONDS), CONNECTION_THROTTLE.value
    )
    return Alert(
        name="KafkaQuotaConnectionsThrottled",
        expr=aggregate("max", levels.of(*_LABELS), waiting),
        labels=_LABELS,
        severity=Severity.WARNING,
        scope=Scope.BROKER,
        wait="10m",
        keep="10m",
        summary="Clients wait to connect because of a limit on new connections.",
        description=f"Listener {{{{ $labels.listener }}}} of broker {{{{ $labels.broker }}}} waits {DURATION} on average before it takes the next connection: everybody who connects there waits, whoever opens the many.",
        dashboard=Dashboard.BROKERS,
        thresholds=(CONNECTION_THROTTLE,),
        spared="The minutes after a restart.",
    )


def _address(levels: Levels) -> Alert:
    refusing = above(
        select(catalog.IP_CONNECTION_THROTTLE_SECONDS), IP_CONNECTION_THROTTLE.value
    )
    return Alert(
        name="KafkaQuotaConnectionsOfAddressRefused",
        expr=aggregate("max", levels.of(*_LABELS), refusing),
        labels=_LABELS,
        severity=Severity.INFO,
        scope=Scope.BROKER,
        wait="15m",
        keep="15m",
        summary="Connections of single addresses are refused for their limit.",
        description=f"Listener {{{{ $labels.listener }}}} of broker {{{{ $labels.broker }}}} has refused connections of some addresses for more than 15 minutes, each after {DURATION}: they open more than their limit allows.",
        dashboard=Dashboard.BROKERS,
        thresholds=(IP_CONNECTION_THROTTLE,),
        spared="A program that restarts.",
    )
