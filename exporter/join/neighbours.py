"""What a node says of the quotas beside the client quotas: new connections, replication, remote storage."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite, nan

from ..limits import Limits, NodeSettings
from ..mapping import MILLISECONDS, Meaning
from ..snapshot import ConnectionUsage, LimitedRate
from .ip_limits import IpLimits
from .plan import Numbers


class Connections:
    """Makes the connections' part of snapshots."""

    def __init__(self) -> None:
        self._limits: Limits | None = None
        self._ip_limits: IpLimits | None = None

    def of(self, numbers: Numbers, limits: Limits | None) -> ConnectionUsage:
        """The new connections of one node."""
        settings = limits.nodes.get(numbers.plan.node_id) if limits else None
        known = settings or NodeSettings()
        broker = numbers.of_node(Meaning.BROKER_CONNECTIONS).get("", nan)
        return ConnectionUsage(
            broker=LimitedRate(rate=_finite(broker), limit=known.connection_limit),
            listeners=_listeners(numbers, known),
            ips=self._ips(numbers, limits),
            ip_throttle_time_seconds={
                listener: _seconds(value)
                for listener, value in numbers.of_node(
                    Meaning.IP_CONNECTION_THROTTLE
                ).items()
            },
        )

    def _ips(self, numbers: Numbers, limits: Limits | None) -> dict[str, LimitedRate]:
        rules = self._rules(limits)
        return {
            ip: LimitedRate(
                rate=_finite(rate), limit=rules.limit(ip) if rules else None
            )
            for ip, rate in numbers.of_node(Meaning.IP_CONNECTIONS).items()
            if rules is None or rules.may_limit(ip)
        }

    def _rules(self, limits: Limits | None) -> IpLimits | None:
        if limits is not self._limits:
            self._limits = limits
            self._ip_limits = IpLimits(limits.connection_limits) if limits else None
        return self._ip_limits


def _listeners(numbers: Numbers, settings: NodeSettings) -> dict[str, LimitedRate]:
    waits = numbers.of_node(Meaning.LISTENER_CONNECTION_THROTTLE)
    own = settings.listener_connection_limits
    return {
        listener: LimitedRate(
            rate=_finite(rate),
            limit=own.get(listener.lower(), settings.connection_limit),
            throttle_time_seconds=_seconds(waits[listener])
            if listener in waits
            else None,
        )
        for listener, rate in numbers.of_node(Meaning.LISTENER_CONNECTIONS).items()
    }


def replication(numbers: Numbers, settings: NodeSettings) -> dict[str, LimitedRate]:
    """Throttled replication by direction; a limit shows whether it is used or not."""
    rates = numbers.of_node(Meaning.REPLICATION)
    return _directions(rates, settings.replication_limits, {})


def remote_storage(numbers: Numbers, settings: NodeSettings) -> dict[str, LimitedRate]:
    """Transfers to and from the remote storage by direction; a limit shows whether it is used or not."""
    return _directions(
        numbers.of_node(Meaning.REMOTE_STORAGE),
        settings.remote_storage_limits,
        numbers.of_node(Meaning.REMOTE_STORAGE_THROTTLE),
    )


def _directions(
    rates: Mapping[str, float],
    limits: Mapping[str, float],
    throttles: Mapping[str, float],
) -> dict[str, LimitedRate]:
    return {
        direction: LimitedRate(
            rate=_finite(rates.get(direction, nan)),
            limit=limits.get(direction),
            throttle_time_seconds=_seconds(throttles[direction])
            if direction in throttles
            else None,
        )
        for direction in {**rates, **limits, **throttles}
    }


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None


def _seconds(value_ms: float) -> float:
    return value_ms / MILLISECONDS if isfinite(value_ms) else 0.0
