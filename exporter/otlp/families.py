"""The readers of the exposition, those of families with a series for each entity as columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Final, TypeAlias

import numpy as np

from quotascope.metrics import QuotaType, catalog
from quotascope.metrics.catalog import Family

from ..exposition import collector
from ..exposition.limits import rule_labels
from ..exposition.series import Reader
from ..snapshot import Entity, Floats, Layout, Snapshot
from ..snapshot.layout import TYPES

Values: TypeAlias = Callable[[Snapshot], Floats]


@dataclass(frozen=True, slots=True, kw_only=True)
class PerEntity:
    """A family with a series for each entity."""

    rows: Callable[[Layout], slice]
    """The entities that it is about."""
    labels: Callable[[Entity], tuple[str, ...]]
    """Label values in the family's order; asked only where there is a value."""
    values: Values
    """By row of ``Snapshot.shown``; read in ``rows`` only."""


def _node(entity: Entity) -> tuple[str, ...]:
    return entity.broker, entity.user, entity.client_id


def _type_and_node(entity: Entity) -> tuple[str, ...]:
    return entity.quota_type.label, *_node(entity)


def _name(entity: Entity) -> tuple[str, ...]:
    return entity.user, entity.client_id


def _rule(entity: Entity) -> tuple[str, ...]:
    rule = entity.resolution and entity.resolution.entity
    labels = rule_labels(rule) if rule else ("", "", "")
    return entity.quota_type.label, *_name(entity), *labels


def _tags(entity: Entity) -> tuple[str, ...]:
    return entity.broker, *(entity.tags or ())


def _type_and_tags(entity: Entity) -> tuple[str, ...]:
    return entity.broker, entity.quota_type.label, *(entity.tags or ())


def _column(name: str, *, detail: bool = False) -> Values:
    read: Values = attrgetter(f"shown.{name}")

    def detailed(snapshot: Snapshot) -> Floats:
        mask = snapshot.shown.detailed
        return (
            read(snapshot) if mask is None else np.where(mask, read(snapshot), np.nan)
        )

    return detailed if detail else read


def _has_rule(snapshot: Snapshot) -> Floats:
    entities, mask = snapshot.shown.layout.entities, snapshot.shown.detailed
    ruled = (bool(each.resolution and each.resolution.entity) for each in entities)
    has = np.fromiter(ruled, np.bool_, len(entities))
    return np.where(has if mask is None else has & mask, 1.0, np.nan)


def _typed(values: Values) -> PerEntity:
    return PerEntity(rows=lambda each: each.own, labels=_type_and_node, values=values)


def _of(kind: QuotaType, values: Values, *, shared: bool = False) -> PerEntity:
    labels = _name if shared else _node
    return PerEntity(rows=lambda each: each.of_type(kind), labels=labels, values=values)


def _tagged(kind: QuotaType) -> PerEntity:
    def values(snapshot: Snapshot) -> Floats:
        ours = snapshot.shown.layout.types == TYPES.index(kind)
        return np.where(ours, snapshot.shown.usage, np.nan)

    return PerEntity(rows=lambda each: each.tagged, labels=_tags, values=values)


_MUTATION = QuotaType.CONTROLLER_MUTATION
_USAGE, _LIMITS = _column("usage"), _column("layout.limits")
READERS: Final[Mapping[Family, Reader | PerEntity]] = {
    **collector.READERS,
    catalog.PRODUCE_BYTES_PER_SECOND: _of(QuotaType.PRODUCE, _USAGE),
    catalog.FETCH_BYTES_PER_SECOND: _of(QuotaType.FETCH, _USAGE),
    catalog.REQUEST_THREADS: _of(QuotaType.REQUEST, _USAGE),
    catalog.CONTROLLER_MUTATIONS_PER_SECOND: _of(_MUTATION, _USAGE),
    catalog.CONTROLLER_MUTATION_TOKENS: _of(_MUTATION, _column("tokens")),
    catalog.REJECTED_MUTATIONS: _of(_MUTATION, _column("rejected_mutations")),
    catalog.BURST_USED: _of(_MUTATION, _column("burst_used", detail=True)),
    catalog.PRODUCE_LIMIT: _of(QuotaType.PRODUCE, _LIMITS, shared=True),
    catalog.FETCH_LIMIT: _of(QuotaType.FETCH, _LIMITS, shared=True),
    catalog.REQUEST_LIMIT: _of(QuotaType.REQUEST, _LIMITS, shared=True),
    catalog.CONTROLLER_MUTATION_LIMIT: _of(_MUTATION, _LIMITS, shared=True),
    catalog.CONTROLLER_MUTATION_BURST: _of(
        _MUTATION, _column("layout.bursts"), shared=True
    ),
    catalog.RULE_INFO: PerEntity(
        rows=lambda layout: layout.own, labels=_rule, values=_has_rule
    ),
    catalog.THROTTLE_TIME_SECONDS: _typed(_column("throttle_time")),
    catalog.THROTTLED_SECONDS: _typed(_column("throttled_seconds")),
    catalog.THROTTLED_REQUESTS: _typed(_column("throttled_requests")),
    catalog.UTILIZATION: _typed(_column("utilization", detail=True)),
    catalog.TOLD_UTILIZATION: _typed(_column("told_utilization", detail=True)),
    catalog.CALLBACK_PRODUCE_BYTES_PER_SECOND: _tagged(QuotaType.PRODUCE),
    catalog.CALLBACK_FETCH_BYTES_PER_SECOND: _tagged(QuotaType.FETCH),
    catalog.CALLBACK_REQUEST_THREADS: _tagged(QuotaType.REQUEST),
    catalog.CALLBACK_CONTROLLER_MUTATIONS_PER_SECOND: _tagged(_MUTATION),
    catalog.CALLBACK_THROTTLE_TIME_SECONDS: PerEntity(
        rows=lambda layout: layout.tagged,
        labels=_type_and_tags,
        values=_column("throttle_time"),
    ),
}
