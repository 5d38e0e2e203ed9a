"""Series of what entities used, one for each entity and node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter

from quotascope.metrics import QuotaType, catalog
from quotascope.metrics.catalog import Family

from ..snapshot import EntityUsage, Snapshot
from .per_entity import PerEntity, Values, by_node, by_type_and_node
from .series import Reader, Row, View


def _of(quota_type: QuotaType, values: Values) -> PerEntity:
    return PerEntity(types=(quota_type,), labels=by_node, values=values)


def _typed(values: Values) -> PerEntity:
    return PerEntity(labels=by_type_and_node, values=values)


def _causes(view: View) -> Iterator[Row]:
    for kind in QuotaType:
        # picked first: hardly any has one, and all are asked at each scrape
        for usage in filter(attrgetter("cause"), view.by_type[kind]):
            if usage.cause is not None and usage.detailed:
                yield (*by_type_and_node(usage.entity), usage.cause.value), 1


def _amounts(usages: Sequence[EntityUsage], _: Snapshot) -> list[float | None]:
    return [usage.usage for usage in usages]


def _utilizations(usages: Sequence[EntityUsage], _: Snapshot) -> list[float | None]:
    # EntityUsage.utilization written out: calling it would take longer than all the rest
    return [
        None
        if (used := usage.usage) is None
        or (limit := usage.entity.limit) is None
        or limit <= 0
        or not usage.detailed
        else used / limit
        for usage in usages
    ]


def _burst_used(usages: Sequence[EntityUsage], _: Snapshot) -> list[float | None]:
    return [usage.burst_used if usage.detailed else None for usage in usages]


READERS: Mapping[Family, Reader] = {
    catalog.PRODUCE_BYTES_PER_SECOND: _of(QuotaType.PRODUCE, _amounts),
    catalog.FETCH_BYTES_PER_SECOND: _of(QuotaType.FETCH, _amounts),
    catalog.REQUEST_THREADS: _of(QuotaType.REQUEST, _amounts),
    catalog.CONTROLLER_MUTATIONS_PER_SECOND: _of(
        QuotaType.CONTROLLER_MUTATION, _amounts
    ),
    catalog.CONTROLLER_MUTATION_TOKENS: _of(
        QuotaType.CONTROLLER_MUTATION,
        lambda usages, _: [usage.tokens for usage in usages],
    ),
    catalog.THROTTLE_TIME_SECONDS: _typed(
        lambda usages, _: [
            usage.throttle_time_seconds if usage.throttle_known else None
            for usage in usages
        ]
    ),
    catalog.THROTTLED_SECONDS: _typed(
        lambda usages, _: [usage.throttled_seconds_total for usage in usages]
    ),
    catalog.THROTTLED_REQUESTS: _typed(
        lambda usages, _: [usage.throttled_requests_total for usage in usages]
    ),
    catalog.REJECTED_MUTATIONS: _of(
        QuotaType.CONTROLLER_MUTATION,
        lambda usages, _: [usage.rejected_mutations_total for usage in usages],
    ),
    catalog.UTILIZATION: _typed(_utilizations),
    catalog.BURST_USED: _of(QuotaType.CONTROLLER_MUTATION, _burst_used),
    catalog.THROTTLE_CAUSE_INFO: _causes,
}
