"""Series of custom quota callbacks, and of what brokers tell of utilisation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isnan

from quotascope.metrics import QuotaType, catalog
from quotascope.metrics.catalog import Family

from ..snapshot import EntityUsage, Snapshot
from .per_entity import PerEntity, by_type_and_node
from .series import Reader, View

_Row = tuple[tuple[str, ...], float | None]


def _of(quota_type: QuotaType) -> Reader:
    def read(view: View) -> Iterator[_Row]:
        for usage in view.snapshot.shown.tagged:
            entity = usage.entity
            if entity.quota_type is quota_type:
                yield (entity.broker, *(entity.tags or ())), usage.usage

    return read


def _throttles(view: View) -> Iterator[_Row]:
    for usage in view.snapshot.shown.tagged:
        entity = usage.entity
        labels = (entity.broker, entity.quota_type.label, *(entity.tags or ()))
        yield labels, usage.throttle_time_seconds if usage.throttle_known else None


def _detected(view: View) -> Iterator[_Row]:
    for node in view.nodes:
        yield (node.broker,), node.quota_callback


def _disagreements(view: View) -> Iterator[_Row]:
    for node in view.nodes:
        yield (node.broker,), node.utilization_disagreements


def _told(usages: Sequence[EntityUsage], _: Snapshot) -> list[float | None]:
    return [
        None
        if (told := usage.told_utilization) is None or isnan(told) or not usage.detailed
        else told
        for usage in usages
    ]


READERS: Mapping[Family, Reader] = {
    catalog.CALLBACK_PRODUCE_BYTES_PER_SECOND: _of(QuotaType.PRODUCE),
    catalog.CALLBACK_FETCH_BYTES_PER_SECOND: _of(QuotaType.FETCH),
    catalog.CALLBACK_REQUEST_THREADS: _of(QuotaType.REQUEST),
    catalog.CALLBACK_CONTROLLER_MUTATIONS_PER_SECOND: _of(
        QuotaType.CONTROLLER_MUTATION
    ),
    catalog.CALLBACK_THROTTLE_TIME_SECONDS: _throttles,
    catalog.CALLBACK_DETECTED: _detected,
    catalog.UTILIZATION_DISAGREEMENTS: _disagreements,
    catalog.TOLD_UTILIZATION: PerEntity(labels=by_type_and_node, values=_told),
}
