"""The quotas beside those of clients: ``ConnectionQuotas``, ``ReplicationQuotaManager``, ``RLMQuotaManager``, ``RLMQuotaMetrics``."""

from __future__ import annotations

from typing import Final

from quotascope.metrics import ReplicationQuotaType, RLMQuotaType, catalog

from .attribute import MILLISECONDS, Attribute, Meaning


def _of_connections(
    name: str,
    meaning: Meaning,
    family: catalog.Family,
    scope: str | None = None,
    divisor: float = 1.0,
) -> Attribute:
    return Attribute(
        type="socket-server-metrics",
        free=() if scope is None else (scope,),
        required=True,
        name=name,
        meaning=meaning,
        divisor=divisor,
        family=family,
    )


CONNECTIONS: Final = (
    _of_connections(
        "broker-connection-accept-rate",
        Meaning.BROKER_CONNECTIONS,
        catalog.BROKER_CONNECTIONS_PER_SECOND,
    ),
    _of_connections(
        "connection-accept-rate",
        Meaning.LISTENER_CONNECTIONS,
        catalog.LISTENER_CONNECTIONS_PER_SECOND,
        "listener",
    ),
    _of_connections(
        "connection-accept-rate",
        Meaning.IP_CONNECTIONS,
        catalog.IP_CONNECTIONS_PER_SECOND,
        "ip",
    ),
    _of_connections(
        "connection-accept-throttle-time",
        Meaning.LISTENER_CONNECTION_THROTTLE,
        catalog.LISTENER_CONNECTION_THROTTLE_SECONDS,
        "listener",
        MILLISECONDS,
    ),
    _of_connections(
        "ip-connection-accept-throttle-time",
        Meaning.IP_CONNECTION_THROTTLE,
        catalog.IP_CONNECTION_THROTTLE_SECONDS,
        "listener",
        MILLISECONDS,
    ),
)


def _of_transfers(
    kind: ReplicationQuotaType | RLMQuotaType, meaning: Meaning, family: catalog.Family
) -> Attribute:
    return Attribute(
        type=kind.value,
        name="byte-rate",
        meaning=meaning,
        direction=kind.label,
        family=family,
    )


def _of_remote_throttles(kind: RLMQuotaType) -> Attribute:
    return Attribute(
        type="RemoteLogManager",
        name=f"remote-{kind.label}-throttle-time-avg",
        meaning=Meaning.REMOTE_STORAGE_THROTTLE,
        direction=kind.label,
        divisor=MILLISECONDS,
        family=catalog.REMOTE_STORAGE_THROTTLE_SECONDS,
    )


TRANSFERS: Final = (
    *(
        _of_transfers(kind, Meaning.REPLICATION, catalog.REPLICATION_BYTES_PER_SECOND)
        for kind in ReplicationQuotaType
    ),
    *(
        _of_transfers(
            kind, Meaning.REMOTE_STORAGE, catalog.REMOTE_STORAGE_BYTES_PER_SECOND
        )
        for kind in RLMQuotaType
    ),
    *map(_of_remote_throttles, RLMQuotaType),
)
