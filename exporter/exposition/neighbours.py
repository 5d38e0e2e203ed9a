"""Series of the quotas beside the client quotas, by broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from quotascope.metrics import catalog
from quotascope.metrics.catalog import Family

from ..snapshot import LimitedRate, NodeUsage
from .series import Reader, View

_Row = tuple[tuple[str, ...], float | None]
_Rates = Callable[[NodeUsage], Mapping[str, LimitedRate]]


def _of_broker(value: Callable[[LimitedRate], float | None]) -> Reader:
    def read(view: View) -> Iterator[_Row]:
        for node in view.nodes:
            yield (node.broker,), value(node.connections.broker)

    return read


def _by_name(rates: _Rates, value: Callable[[LimitedRate], float | None]) -> Reader:
    def read(view: View) -> Iterator[_Row]:
        for node in view.nodes:
            for name, rate in sorted(rates(node).items()):
                yield (node.broker, name), value(rate)

    return read


def _refusals(view: View) -> Iterator[_Row]:
    for node in view.nodes:
        seconds = node.connections.ip_throttle_time_seconds
        for listener, value in sorted(seconds.items()):
            yield (node.broker, listener), value


def _rate(of: LimitedRate) -> float | None:
    return of.rate


def _limit(of: LimitedRate) -> float | None:
    return of.limit


def _throttle(of: LimitedRate) -> float | None:
    return of.throttle_time_seconds


def _listeners(node: NodeUsage) -> Mapping[str, LimitedRate]:
    return node.connections.listeners


def _ips(node: NodeUsage) -> Mapping[str, LimitedRate]:
    return node.connections.ips


def _replication(node: NodeUsage) -> Mapping[str, LimitedRate]:
    return node.replication


def _remote_storage(node: NodeUsage) -> Mapping[str, LimitedRate]:
    return node.remote_storage


READERS: Mapping[Family, Reader] = {
    catalog.BROKER_CONNECTIONS_PER_SECOND: _of_broker(_rate),
    catalog.BROKER_CONNECTION_LIMIT: _of_broker(_limit),
    catalog.LISTENER_CONNECTIONS_PER_SECOND: _by_name(_listeners, _rate),
    catalog.LISTENER_CONNECTION_LIMIT: _by_name(_listeners, _limit),
    catalog.LISTENER_CONNECTION_THROTTLE_SECONDS: _by_name(_listeners, _throttle),
    catalog.IP_CONNECTIONS_PER_SECOND: _by_name(_ips, _rate),
    catalog.IP_CONNECTION_LIMIT: _by_name(_ips, _limit),
    catalog.IP_CONNECTION_THROTTLE_SECONDS: _refusals,
    catalog.REPLICATION_BYTES_PER_SECOND: _by_name(_replication, _rate),
    catalog.REPLICATION_LIMIT: _by_name(_replication, _limit),
    catalog.REMOTE_STORAGE_BYTES_PER_SECOND: _by_name(_remote_storage, _rate),
    catalog.REMOTE_STORAGE_LIMIT: _by_name(_remote_storage, _limit),
    catalog.REMOTE_STORAGE_THROTTLE_SECONDS: _by_name(_remote_storage, _throttle),
}
