"""Series of what brokers and controllers say of themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from quotascope.metrics import QuotaType, catalog
from quotascope.metrics.catalog import Family

from ..snapshot import NodeUsage
from .series import Reader, View

_Row = tuple[tuple[str, ...], float | None]


def _of_node(value: Callable[[NodeUsage], float | None]) -> Reader:
    def read(view: View) -> Iterator[_Row]:
        for node in view.nodes:
            yield (node.broker,), value(node)

    return read


def _by_type(values: Callable[[NodeUsage], Mapping[QuotaType, float]]) -> Reader:
    def read(view: View) -> Iterator[_Row]:
        for quota_type in QuotaType:
            for node in view.nodes:
                labels = (quota_type.label, node.broker)
                yield labels, values(node).get(quota_type)

    return read


def _by_request(values: Callable[[NodeUsage], Mapping[str, float]]) -> Reader:
    def read(view: View) -> Iterator[_Row]:
        for node in view.nodes:
            for request, value in sorted(values(node).items()):
                yield (node.broker, request), value

    return read


READERS: Mapping[Family, Reader] = {
    catalog.DELAY_QUEUE_SIZE: _by_type(lambda node: node.delay_queue_size),
    catalog.EXEMPT_REQUEST_THREADS: _of_node(lambda node: node.exempt_request_threads),
    catalog.REQUEST_CAPACITY_THREADS: _of_node(
        lambda node: node.request_capacity_threads
    ),
    catalog.REQUEST_THROTTLED_SECONDS: _by_request(
        lambda node: node.request_throttled_seconds
    ),
    catalog.THROTTLING_ERRORS: _by_request(lambda node: node.throttling_errors),
    catalog.CONTROLLER_EVENT_QUEUE_SECONDS: _of_node(
        lambda node: node.controller_event_queue_seconds
    ),
    catalog.CONTROLLER_EVENTS: _of_node(lambda node: node.controller_events),
    catalog.STALE_ENTITIES: _by_type(lambda node: node.stale_entities),
}
