"""Series of the maxima of sampling."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isnan

from quotascope.metrics import QuotaType, catalog
from quotascope.metrics.catalog import Family

from ..snapshot import EntityUsage, Floats, Peaks, Snapshot
from .per_entity import PerEntity, Values, by_node, by_type_and_node
from .series import Reader, Row, View


def _greatest(of: Callable[[Peaks], Floats]) -> Values:
    def values(usages: Sequence[EntityUsage], snapshot: Snapshot) -> list[float | None]:
        if snapshot.peaks is None:
            return [None] * len(usages)
        entities, column = snapshot.shown.layout.entities, of(snapshot.peaks)
        greatest = {
            id(entity): value
            for entity, value in zip(entities, column.tolist(), strict=True)
            if not isnan(value)
        }
        return [greatest.get(id(usage.entity)) for usage in usages]

    return values


def _delay_queues(view: View) -> Iterator[Row]:
    peaks = view.snapshot.peaks
    if peaks is not None:
        for kind in QuotaType:
            for node in view.nodes:
                size = peaks.delay_queue_size.get((node.broker, kind))
                yield (kind.label, node.broker), size


READERS: Mapping[Family, Reader] = {
    catalog.UTILIZATION_MAX: PerEntity(
        labels=by_type_and_node,
        values=_greatest(lambda peaks: peaks.utilization),
        of_snapshot=True,
    ),
    catalog.BURST_USED_MAX: PerEntity(
        types=(QuotaType.CONTROLLER_MUTATION,),
        labels=by_node,
        values=_greatest(lambda peaks: peaks.burst_used),
        of_snapshot=True,
    ),
    catalog.DELAY_QUEUE_SIZE_MAX: _delay_queues,
}
