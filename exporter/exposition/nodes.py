"""Series of what brokers and controllers report of themselves, and of the quotas beside the client quotas."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from typing import Final

from quotascope.metrics import QuotaType, catalog
from quotascope.metrics.catalog import Family

from ..snapshot import LimitedRate, NodeUsage
from .series import Reader, Row, View


def _of_node(path: str) -> Reader:
    """One series for each node, of an attribute of it."""
    value: Callable[[NodeUsage], float | None] = attrgetter(path)

    def read(view: View) -> Iterator[Row]:
        for node in view.nodes:
            yield (node.broker,), value(node)

    return read


def _by_type(path: str) -> Reader:
    values: Callable[[NodeUsage], Mapping[QuotaType, float]] = attrgetter(path)

    def read(view: View) -> Iterator[Row]:
        for quota_type in QuotaType:
            for node in view.nodes:
                labels = (quota_type.label, node.broker)
                yield labels, values(node).get(quota_type)

    return read


def _by_name(path: str) -> Reader:
    """A series for each name that a mapping of the node has."""
    values: Callable[[NodeUsage], Mapping[str, float]] = attrgetter(path)

    def read(view: View) -> Iterator[Row]:
        for node in view.nodes:
            for name, value in sorted(values(node).items()):
                yield (node.broker, name), value

    return read


def _of_rates(path: str, field: str) -> Reader:
    """The same, of one field of the rates that it maps to."""
    rates: Callable[[NodeUsage], Mapping[str, LimitedRate]] = attrgetter(path)
    value: Callable[[LimitedRate], float | None] = attrgetter(field)

    def read(view: View) -> Iterator[Row]:
        for node in view.nodes:
            for name, rate in sorted(rates(node).items()):
                yield (node.broker, name), value(rate)

    return read


def _greatest_delay_queues(view: View) -> Iterator[Row]:
    peaks = view.snapshot.peaks
    if peaks is None:
        return
    for quota_type in QuotaType:
        for node in view.nodes:
            size = peaks.delay_queue_size.get((node.broker, quota_type))
            yield (quota_type.label, node.broker), size


_RATE, _LIMIT, _THROTTLE = "rate", "limit", "throttle_time_seconds"
_LISTENERS, _IPS = "connections.listeners", "connections.ips"
READERS: Final[Mapping[Family, Reader]] = {
    catalog.DELAY_QUEUE_SIZE: _by_type("delay_queue_size"),
    catalog.DELAY_QUEUE_SIZE_MAX: _greatest_delay_queues,
    catalog.EXEMPT_REQUEST_THREADS: _of_node("exempt_request_threads"),
    catalog.REQUEST_CAPACITY_THREADS: _of_node("request_capacity_threads"),
    catalog.REQUEST_THROTTLED_SECONDS: _by_name("request_throttled_seconds"),
    catalog.THROTTLING_ERRORS: _by_name("throttling_errors"),
    catalog.CONTROLLER_EVENT_QUEUE_SECONDS: _of_node("controller_event_queue_seconds"),
    catalog.CONTROLLER_EVENTS: _of_node("controller_events"),
    catalog.STALE_ENTITIES: _by_type("stale_entities"),
    catalog.UTILIZATION_DISAGREEMENTS: _of_node("utilization_disagreements"),
    catalog.CALLBACK_DETECTED: _of_node("quota_callback"),
    catalog.BROKER_CONNECTIONS_PER_SECOND: _of_node("connections.broker.rate"),
    catalog.BROKER_CONNECTION_LIMIT: _of_node("connections.broker.limit"),
    catalog.LISTENER_CONNECTIONS_PER_SECOND: _of_rates(_LISTENERS, _RATE),
    catalog.LISTENER_CONNECTION_LIMIT: _of_rates(_LISTENERS, _LIMIT),
    catalog.LISTENER_CONNECTION_THROTTLE_SECONDS: _of_rates(_LISTENERS, _THROTTLE),
    catalog.IP_CONNECTIONS_PER_SECOND: _of_rates(_IPS, _RATE),
    catalog.IP_CONNECTION_LIMIT: _of_rates(_IPS, _LIMIT),
    catalog.IP_CONNECTION_THROTTLE_SECONDS: _by_name(
        "connections.ip_throttle_time_seconds"
    ),
    catalog.REPLICATION_BYTES_PER_SECOND: _of_rates("replication", _RATE),
    catalog.REPLICATION_LIMIT: _of_rates("replication", _LIMIT),
    catalog.REMOTE_STORAGE_BYTES_PER_SECOND: _of_rates("remote_storage", _RATE),
    catalog.REMOTE_STORAGE_LIMIT: _of_rates("remote_storage", _LIMIT),
    catalog.REMOTE_STORAGE_THROTTLE_SECONDS: _of_rates("remote_storage", _THROTTLE),
}
