"""Series of the maxima since the scraper's last scrape."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from quotascope.metrics import QuotaType, catalog
from quotascope.metrics.catalog import Family

from .per_entity import by_node, by_type_and_node
from .series import Reader, Row, View


def _utilization(view: View) -> Iterator[Row]:
    peaks = view.snapshot.peaks
    if peaks is not None:
        for usage in view.entities:
            value = peaks.utilization.get(id(usage.entity))
            if value is not None:
                yield by_type_and_node(usage.entity), value


def _burst_used(view: View) -> Iterator[Row]:
    peaks = view.snapshot.peaks
    if peaks is not None:
        for usage in view.by_type[QuotaType.CONTROLLER_MUTATION]:
            value = peaks.burst_used.get(id(usage.entity))
            if value is not None:
                yield by_node(usage.entity), value


def _delay_queues(view: View) -> Iterator[Row]:
    peaks = view.snapshot.peaks
    if peaks is not None:
        for kind in QuotaType:
            for node in view.nodes:
                size = peaks.delay_queue_size.get((node.broker, kind))
                yield (kind.label, node.broker), size


READERS: Mapping[Family, Reader] = {
    catalog.UTILIZATION_MAX: _utilization,
    catalog.BURST_USED_MAX: _burst_used,
    catalog.DELAY_QUEUE_SIZE_MAX: _delay_queues,
}
