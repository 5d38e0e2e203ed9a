"""Numbers of nodes as tests write and compare them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from quotascope.exporter.snapshot import NodeUsage
from quotascope.metrics import catalog
from quotascope.metrics.catalog import Family

Numbers = dict[Family, dict[tuple[str, ...], float | None]]


@dataclass(frozen=True, kw_only=True)
class LimitedRate:
    """Rate, limit and throttle time of a quota other than a client's; None where there is none."""

    rate: float | None = None
    limit: float | None = None
    throttle_time_seconds: float | None = None


@dataclass(frozen=True, kw_only=True)
class Connections:
    """New connections of one node."""

    broker: LimitedRate = field(default_factory=LimitedRate)
    listeners: Mapping[str, LimitedRate] = field(default_factory=dict)
    ips: Mapping[str, LimitedRate] = field(default_factory=dict)
    ip_throttle_time_seconds: Mapping[str, float] = field(default_factory=dict)


def connections(node: NodeUsage) -> Connections:
    """Return what a node has of new connections."""
    return Connections(
        broker=LimitedRate(
            rate=node.number(catalog.BROKER_CONNECTIONS_PER_SECOND), limit=node.number(catalog.BROKER_CONNECTION_LIMIT)
        ),
        listeners=_rates(
            node,
            catalog.LISTENER_CONNECTIONS_PER_SECOND,
            catalog.LISTENER_CONNECTION_LIMIT,
            catalog.LISTENER_CONNECTION_THROTTLE_SECONDS,
        ),
        ips=_rates(node, catalog.IP_CONNECTIONS_PER_SECOND, catalog.IP_CONNECTION_LIMIT),
        ip_throttle_time_seconds=node.by_name(catalog.IP_CONNECTION_THROTTLE_SECONDS),
    )


def replication(node: NodeUsage) -> dict[str, LimitedRate]:
    """Return what a node has of replication, by direction."""
    return _rates(node, catalog.REPLICATION_BYTES_PER_SECOND, catalog.REPLICATION_LIMIT)


def remote_storage(node: NodeUsage) -> dict[str, LimitedRate]:
    """Return what a node has of tiered storage, by direction."""
    return _rates(
        node,
        catalog.REMOTE_STORAGE_BYTES_PER_SECOND,
        catalog.REMOTE_STORAGE_LIMIT,
        catalog.REMOTE_STORAGE_THROTTLE_SECONDS,
    )


def by_ip(rates: Mapping[str, float | None]) -> Numbers:
    """Return the numbers of a node that measures these addresses."""
    return {catalog.IP_CONNECTIONS_PER_SECOND: {(ip,): rate for ip, rate in rates.items()}}


def idle(handlers: float | None = None, *, seconds: float | None = None, **pools: float) -> Numbers:
    """Return the numbers of a node whose request handlers, or pools of them, are idle for a share of the time."""
    return {
        catalog.REQUEST_HANDLER_IDLE: {(): handlers},
        catalog.REQUEST_HANDLER_IDLE_SECONDS: {(): seconds},
        catalog.REQUEST_HANDLER_POOL_IDLE: {(pool,): share for pool, share in pools.items()},
    }


def _rates(node: NodeUsage, rate: Family, limit: Family, wait: Family | None = None) -> dict[str, LimitedRate]:
    rates, limits = node.by_name(rate), node.by_name(limit)
    waits = {} if wait is None else node.by_name(wait)
    names = {name for family in (rate, limit, wait) if family is not None for (name,) in node.numbers.get(family, {})}
    return {
        name: LimitedRate(rate=rates.get(name), limit=limits.get(name), throttle_time_seconds=waits.get(name))
        for name in names
    }
