"""Series of what entities used, one for each entity and node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from quotascope.metrics import QuotaType, catalog
from quotascope.metrics.catalog import Family

from ..snapshot import EntityUsage
from .series import Reader, View

_Row = tuple[tuple[str, ...], float | None]
_Value = Callable[[EntityUsage], float | None]


def _of(quota_type: QuotaType, value: _Value) -> Reader:
    def read(view: View) -> Iterator[_Row]:
        for usage in view.by_type[quota_type]:
            entity = usage.entity
            yield (entity.broker, entity.user, entity.client_id), value(usage)

    return read


def _typed(value: _Value) -> Reader:
    def read(view: View) -> Iterator[_Row]:
        for usage in view.entities:
            yield _typed_labels(usage), value(usage)

    return read


def _causes(view: View) -> Iterator[_Row]:
    for usage in view.entities:
        if usage.detailed and usage.cause is not None:
            yield (*_typed_labels(usage), usage.cause.value), 1


def _typed_labels(usage: EntityUsage) -> tuple[str, ...]:
    entity = usage.entity
    return entity.quota_type.label, entity.broker, entity.user, entity.client_id


def _amount(usage: EntityUsage) -> float | None:
    return usage.usage


def _in_detail(value: _Value) -> _Value:
    return lambda usage: value(usage) if usage.detailed else None


READERS: Mapping[Family, Reader] = {
    catalog.PRODUCE_BYTES_PER_SECOND: _of(QuotaType.PRODUCE, _amount),
    catalog.FETCH_BYTES_PER_SECOND: _of(QuotaType.FETCH, _amount),
    catalog.REQUEST_THREADS: _of(QuotaType.REQUEST, _amount),
    catalog.CONTROLLER_MUTATIONS_PER_SECOND: _of(
        QuotaType.CONTROLLER_MUTATION, _amount
    ),
    catalog.CONTROLLER_MUTATION_TOKENS: _of(
        QuotaType.CONTROLLER_MUTATION, lambda usage: usage.tokens
    ),
    catalog.THROTTLE_TIME_SECONDS: _typed(lambda usage: usage.throttle_time_seconds),
    catalog.THROTTLED_SECONDS: _typed(lambda usage: usage.throttled_seconds_total),
    catalog.THROTTLED_REQUESTS: _typed(lambda usage: usage.throttled_requests_total),
    catalog.REJECTED_MUTATIONS: _of(
        QuotaType.CONTROLLER_MUTATION, lambda usage: usage.rejected_mutations_total
    ),
    catalog.UTILIZATION: _typed(_in_detail(lambda usage: usage.utilization)),
    catalog.BURST_USED: _of(
        QuotaType.CONTROLLER_MUTATION, _in_detail(lambda usage: usage.burst_used)
    ),
    catalog.THROTTLE_CAUSE_INFO: _causes,
}
