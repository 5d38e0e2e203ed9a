"""The readers of the families with a series for each entity, which are columns of a snapshot."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter, methodcaller
from typing import Final, TypeAlias

import numpy as np

from quotascope.metrics import catalog
from quotascope.metrics.catalog import Family
from quotascope.metrics.kafka.entities import QuotaType

from ..snapshot import Entity, Floats, Layout, Snapshot
from ..snapshot.layout import TYPES
from .rows import rule_labels

Labels: TypeAlias = Callable[[Entity], tuple[str, ...]]
Values: TypeAlias = Callable[[Snapshot], Floats]
"""Function that returns a value for each row of ``Snapshot.columns``; ``layout.absent`` if no row has one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PerEntity:
    """A family with a series for each entity."""

    rows: Callable[[Layout], slice]
    """The rows of the entities that the family is about."""
    labels: Labels
    """The label values of an entity."""
    values: Values
    """The values of all rows; read at ``rows`` only."""
    shared: bool = False
    """True if nodes share one series for each user and client-id, with the value of the first node that has one."""
    by_rule: bool = False
    """True if labels depend on the rule that decides, which may change while the entity stays."""


_OWN: Final[Callable[[Layout], slice]] = attrgetter("own")
_TAGGED: Final[Callable[[Layout], slice]] = attrgetter("tagged")
by_node: Final[Labels] = attrgetter("broker", "user", "client_id")
"""Return the labels of a family of one quota type."""
by_type_and_node: Final[Labels] = attrgetter("quota_type.label", "broker", "user", "client_id")
"""Return the labels of a family of all quota types."""
by_name: Final[Labels] = attrgetter("user", "client_id")
"""Return the labels of a family that is the same on all nodes."""


def by_rule(entity: Entity) -> tuple[str, ...]:
    """Return the labels of the rule that decides; only called where a rule does."""
    rule = entity.resolution.entity if entity.resolution else None
    labels = ("", "", "", "") if rule is None else rule_labels(rule)
    return entity.quota_type.label, entity.user, entity.client_id, *labels


def by_tags(entity: Entity) -> tuple[str, ...]:
    """Return the labels of a family of one quota type under a custom quota callback."""
    return entity.broker, *(entity.tags or ())


def by_type_and_tags(entity: Entity) -> tuple[str, ...]:
    """Return the labels of a family of all quota types under a custom quota callback."""
    return entity.broker, entity.quota_type.label, *(entity.tags or ())


def _typed(values: Values, *, shared: bool = False, of_rule: bool = False) -> PerEntity:
    """Return the reader of a family of all of Kafka's own quotas."""
    return PerEntity(
        rows=_OWN, labels=by_rule if of_rule else by_type_and_node, values=values, shared=shared, by_rule=of_rule
    )


def _of(quota_type: QuotaType, values: Values, *, shared: bool = False) -> PerEntity:
    """Return the reader of a family of one quota type of Kafka's own quotas."""
    return PerEntity(
        rows=methodcaller("of_type", quota_type), labels=by_name if shared else by_node, values=values, shared=shared
    )


def _tagged(quota_type: QuotaType, column: str = "usage") -> PerEntity:
    """Return the reader of a family of one quota type under a custom quota callback."""
    values_of: Values = attrgetter(f"columns.{column}")

    def values(snapshot: Snapshot) -> Floats:
        is_of_type = snapshot.columns.layout.types == TYPES.index(quota_type)
        return np.where(is_of_type, values_of(snapshot), np.nan)

    return PerEntity(rows=_TAGGED, labels=by_tags, values=values)


def _column(path: str, *, detail: bool = False) -> Values:
    """
    Return a function that reads the column at a path of attributes of a snapshot.

    The values of a ``detail`` are NaN for entities that are shown without details.
    """
    values_of: Values = attrgetter(path)

    def detailed(snapshot: Snapshot) -> Floats:
        values, mask = values_of(snapshot), snapshot.columns.detailed
        if mask is None or values is snapshot.columns.layout.absent:
            return values
        return np.where(mask, values, np.nan)

    return detailed if detail else values_of


def _peaks(name: str) -> Values:
    """Return a function that reads the maxima of a column; it returns ``layout.absent`` without sampling."""
    peaks_of: Values = attrgetter(f"peaks.{name}")
    return lambda snapshot: snapshot.columns.layout.absent if snapshot.peaks is None else peaks_of(snapshot)


_MUTATION = QuotaType.CONTROLLER_MUTATION
_USAGE = _column("columns.usage")
_LIMITS = _column("columns.layout.limits")
COLUMNS: Final[Mapping[Family, PerEntity]] = {
    **{family: _of(quota_type, _USAGE) for quota_type, family in catalog.USAGE.items()},
    catalog.CONTROLLER_MUTATION_TOKENS: _of(_MUTATION, _column("columns.tokens")),
    catalog.THROTTLE_TIME_SECONDS: _typed(_column("columns.throttle_time")),
    **{family: _of(quota_type, _LIMITS, shared=True) for quota_type, family in catalog.LIMIT.items()},
    catalog.CONTROLLER_MUTATION_BURST: _of(_MUTATION, _column("columns.layout.bursts"), shared=True),
    catalog.RULE_INFO: _typed(_column("columns.layout.ruled", detail=True), shared=True, of_rule=True),
    catalog.UTILIZATION: _typed(_column("columns.utilization", detail=True)),
    catalog.UTILIZATION_MAX: _typed(_peaks("utilization")),
    catalog.REPORTED_UTILIZATION: _typed(_column("columns.reported_utilization", detail=True)),
    catalog.BURST_USED: _of(_MUTATION, _column("columns.burst_used", detail=True)),
    catalog.BURST_USED_MAX: _of(_MUTATION, _peaks("burst_used")),
    **{family: _tagged(quota_type) for quota_type, family in catalog.CALLBACK_USAGE.items()},
    catalog.CALLBACK_THROTTLE_TIME_SECONDS: PerEntity(
        rows=_TAGGED, labels=by_type_and_tags, values=_column("columns.throttle_time")
    ),
    **{family: _tagged(quota_type, "layout.limits") for quota_type, family in catalog.CALLBACK_LIMIT.items()},
    catalog.CALLBACK_UTILIZATION: PerEntity(
        rows=_TAGGED, labels=by_type_and_tags, values=_column("columns.utilization")
    ),
}
"""The readers of all families with a series for each entity."""
