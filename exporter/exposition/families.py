"""How each family of the catalog is read from a snapshot: those with a series for each entity as columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter, methodcaller
from typing import Final, TypeAlias

import numpy as np

from quotascope.metrics import QuotaType, catalog
from quotascope.metrics.catalog import Family

from ..snapshot import Entity, Floats, Layout, Snapshot
from ..snapshot.layout import TYPES
from .rows import rule_labels

Labels: TypeAlias = Callable[[Entity], tuple[str, ...]]
Values: TypeAlias = Callable[[Snapshot], Floats]
"""A value for each row of ``Snapshot.shown``, ``layout.absent`` where there is none at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PerEntity:
    """A family with a series for each entity."""

    rows: Callable[[Layout], slice]
    """The entities that it is about."""
    labels: Labels
    """The label values of an entity."""
    values: Values
    """All numbers at once; read in ``rows`` only."""
    shared: bool = False
    """Whether the nodes share one series for each user and client-id: that of the first of them that has a value."""
    by_rule: bool = False
    """Whether labels depend on the rule that decides, which may change while the entity stays."""


_OWN: Final[Callable[[Layout], slice]] = attrgetter("own")
_TAGGED: Final[Callable[[Layout], slice]] = attrgetter("tagged")
by_node: Final[Labels] = attrgetter("broker", "user", "client_id")
"""Labels of a family of one quota type."""
by_type_and_node: Final[Labels] = attrgetter("quota_type.label", "broker", "user", "client_id")
"""Labels of a family of all quota types."""
by_name: Final[Labels] = attrgetter("user", "client_id")
"""Labels of a family that is the same on all nodes."""


def by_rule(entity: Entity) -> tuple[str, ...]:
    """Labels of the rule that decides; asked only where there is one."""
    rule = entity.resolution.entity if entity.resolution else None
    labels = ("", "", "", "") if rule is None else rule_labels(rule)
    return entity.quota_type.label, entity.user, entity.client_id, *labels


def by_tags(entity: Entity) -> tuple[str, ...]:
    """Labels of a family of one quota type under a custom quota callback."""
    return entity.broker, *(entity.tags or ())


def by_type_and_tags(entity: Entity) -> tuple[str, ...]:
    """Labels of a family of all quota types under a custom quota callback."""
    return entity.broker, entity.quota_type.label, *(entity.tags or ())


def _typed(values: Values, *, shared: bool = False, of_rule: bool = False) -> PerEntity:
    """Of all of Kafka's own quotas."""
    return PerEntity(
        rows=_OWN, labels=by_rule if of_rule else by_type_and_node, values=values, shared=shared, by_rule=of_rule
    )


def _of(quota_type: QuotaType, values: Values, *, shared: bool = False) -> PerEntity:
    return PerEntity(
        rows=methodcaller("of_type", quota_type), labels=by_name if shared else by_node, values=values, shared=shared
    )


def _tagged(quota_type: QuotaType, column: str = "usage") -> PerEntity:
    read: Values = attrgetter(f"shown.{column}")

    def values(snapshot: Snapshot) -> Floats:
        ours = snapshot.shown.layout.types == TYPES.index(quota_type)
        return np.where(ours, read(snapshot), np.nan)

    return PerEntity(rows=_TAGGED, labels=by_tags, values=values)


def _column(path: str, *, detail: bool = False) -> Values:
    """Read the column at a path of attributes; a ``detail`` is absent for entities that are not shown in detail."""
    read: Values = attrgetter(path)

    def detailed(snapshot: Snapshot) -> Floats:
        values, mask = read(snapshot), snapshot.shown.detailed
        if mask is None or values is snapshot.shown.layout.absent:
            return values
        return np.where(mask, values, np.nan)

    return detailed if detail else read


def _peaks(name: str) -> Values:
    read: Values = attrgetter(f"peaks.{name}")
    return lambda shown: shown.shown.layout.absent if shown.peaks is None else read(shown)


_MUTATION = QuotaType.CONTROLLER_MUTATION
_USAGE = _column("shown.usage")
_LIMITS = _column("shown.layout.limits")
COLUMNS: Final[Mapping[Family, PerEntity]] = {
    catalog.PRODUCE_BYTES_PER_SECOND: _of(QuotaType.PRODUCE, _USAGE),
    catalog.FETCH_BYTES_PER_SECOND: _of(QuotaType.FETCH, _USAGE),
    catalog.REQUEST_THREADS: _of(QuotaType.REQUEST, _USAGE),
    catalog.CONTROLLER_MUTATIONS_PER_SECOND: _of(_MUTATION, _USAGE),
    catalog.CONTROLLER_MUTATION_TOKENS: _of(_MUTATION, _column("shown.tokens")),
    catalog.THROTTLE_TIME_SECONDS: _typed(_column("shown.throttle_time")),
    catalog.THROTTLED_SECONDS: _typed(_column("shown.throttled_seconds")),
    catalog.THROTTLED_REQUESTS: _typed(_column("shown.throttled_requests")),
    catalog.REFUSED_MUTATIONS: _of(_MUTATION, _column("shown.refused_mutations")),
    catalog.PRODUCE_LIMIT: _of(QuotaType.PRODUCE, _LIMITS, shared=True),
    catalog.FETCH_LIMIT: _of(QuotaType.FETCH, _LIMITS, shared=True),
    catalog.REQUEST_LIMIT: _of(QuotaType.REQUEST, _LIMITS, shared=True),
    catalog.CONTROLLER_MUTATION_LIMIT: _of(_MUTATION, _LIMITS, shared=True),
    catalog.CONTROLLER_MUTATION_BURST: _of(_MUTATION, _column("shown.layout.bursts"), shared=True),
    catalog.RULE_INFO: _typed(_column("shown.layout.ruled", detail=True), shared=True, of_rule=True),
    catalog.UTILIZATION: _typed(_column("shown.utilization", detail=True)),
    catalog.UTILIZATION_MAX: _typed(_peaks("utilization")),
    catalog.REPORTED_UTILIZATION: _typed(_column("shown.reported_utilization", detail=True)),
    catalog.BURST_USED: _of(_MUTATION, _column("shown.burst_used", detail=True)),
    catalog.BURST_USED_MAX: _of(_MUTATION, _peaks("burst_used")),
    catalog.CALLBACK_PRODUCE_BYTES_PER_SECOND: _tagged(QuotaType.PRODUCE),
    catalog.CALLBACK_FETCH_BYTES_PER_SECOND: _tagged(QuotaType.FETCH),
    catalog.CALLBACK_REQUEST_THREADS: _tagged(QuotaType.REQUEST),
    catalog.CALLBACK_CONTROLLER_MUTATIONS_PER_SECOND: _tagged(_MUTATION),
    catalog.CALLBACK_THROTTLE_TIME_SECONDS: PerEntity(
        rows=_TAGGED, labels=by_type_and_tags, values=_column("shown.throttle_time")
    ),
    catalog.CALLBACK_PRODUCE_LIMIT: _tagged(QuotaType.PRODUCE, "layout.limits"),
    catalog.CALLBACK_FETCH_LIMIT: _tagged(QuotaType.FETCH, "layout.limits"),
    catalog.CALLBACK_REQUEST_LIMIT: _tagged(QuotaType.REQUEST, "layout.limits"),
    catalog.CALLBACK_UTILIZATION: PerEntity(rows=_TAGGED, labels=by_type_and_tags, values=_column("shown.utilization")),
}
"""Of all families with a series for each entity."""
