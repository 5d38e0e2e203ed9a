"""The families with a series for each entity: labels that follow from the entity, and a column of values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from quotascope.metrics import QuotaType, catalog
from quotascope.metrics.catalog import Family

from ..exposition.limits import rule_labels
from ..snapshot import Columns, Entity, Floats
from ..snapshot.layout import TYPES, Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityFamily:
    """A family whose labels follow from an entity."""

    labels: Callable[[Entity], tuple[str, ...]]
    """Label values in the family's order; asked only where there is a value."""
    values: Callable[[Columns], Floats]
    """By row."""
    quota_type: QuotaType | None = None
    """Whose entities it shows; None for all types."""
    tagged: bool = False
    """Whether it shows the entities of a custom quota callback instead of those of Kafka's own quotas."""

    def known(self, shown: Columns) -> tuple[Rows, Floats]:
        """The rows that have a finite value, and these values; -0 is 0."""
        layout, values = shown.layout, self.values(shown)
        part = layout.tagged if self.tagged else layout.own
        known = np.isfinite(values[part])
        if self.quota_type is not None:
            known &= layout.types[part] == TYPES.index(self.quota_type)
        rows = np.flatnonzero(known) + part.start
        return rows, values[rows] + 0.0


@cache
def entity_families() -> Mapping[Family, EntityFamily]:
    """The families with a series for each entity, by column."""
    usages = {
        QuotaType.PRODUCE: catalog.PRODUCE_BYTES_PER_SECOND,
        QuotaType.FETCH: catalog.FETCH_BYTES_PER_SECOND,
        QuotaType.REQUEST: catalog.REQUEST_THREADS,
        QuotaType.CONTROLLER_MUTATION: catalog.CONTROLLER_MUTATIONS_PER_SECOND,
    }
    limits = {
        QuotaType.PRODUCE: catalog.PRODUCE_LIMIT,
        QuotaType.FETCH: catalog.FETCH_LIMIT,
        QuotaType.REQUEST: catalog.REQUEST_LIMIT,
        QuotaType.CONTROLLER_MUTATION: catalog.CONTROLLER_MUTATION_LIMIT,
    }
    of_callbacks = {
        QuotaType.PRODUCE: catalog.CALLBACK_PRODUCE_BYTES_PER_SECOND,
        QuotaType.FETCH: catalog.CALLBACK_FETCH_BYTES_PER_SECOND,
        QuotaType.REQUEST: catalog.CALLBACK_REQUEST_THREADS,
        QuotaType.CONTROLLER_MUTATION: catalog.CALLBACK_CONTROLLER_MUTATIONS_PER_SECOND,
    }
    mutations = {
        catalog.CONTROLLER_MUTATION_TOKENS: lambda shown: shown.tokens,
        catalog.REJECTED_MUTATIONS: lambda shown: shown.rejected_mutations,
        catalog.BURST_USED: lambda shown: _detailed(shown, shown.burst_used),
    }
    typed = {
        catalog.THROTTLE_TIME_SECONDS: lambda shown: shown.throttle_time,
        catalog.THROTTLED_SECONDS: lambda shown: shown.throttled_seconds,
        catalog.THROTTLED_REQUESTS: lambda shown: shown.throttled_requests,
        catalog.UTILIZATION: lambda shown: _detailed(shown, shown.utilization),
        catalog.TOLD_UTILIZATION: lambda shown: _detailed(
            shown, shown.told_utilization
        ),
    }
    return {
        **{
            family: EntityFamily(labels=_node, values=_usage, quota_type=kind)
            for kind, family in usages.items()
        },
        **{
            family: EntityFamily(
                labels=_node,
                values=values,
                quota_type=QuotaType.CONTROLLER_MUTATION,
            )
            for family, values in mutations.items()
        },
        **{
            family: EntityFamily(labels=_type_and_node, values=values)
            for family, values in typed.items()
        },
        **{
            family: EntityFamily(
                labels=_name, values=lambda shown: shown.layout.limits, quota_type=kind
            )
            for kind, family in limits.items()
        },
        catalog.CONTROLLER_MUTATION_BURST: EntityFamily(
            labels=_name,
            values=lambda shown: shown.layout.bursts,
            quota_type=QuotaType.CONTROLLER_MUTATION,
        ),
        catalog.RULE_INFO: EntityFamily(labels=_rule, values=_has_rule),
        **{
            family: EntityFamily(
                labels=_tags, values=_usage, quota_type=kind, tagged=True
            )
            for kind, family in of_callbacks.items()
        },
        catalog.CALLBACK_THROTTLE_TIME_SECONDS: EntityFamily(
            labels=_type_and_tags,
            values=lambda shown: shown.throttle_time,
            tagged=True,
        ),
    }


def _node(entity: Entity) -> tuple[str, ...]:
    return entity.broker, entity.user, entity.client_id


def _type_and_node(entity: Entity) -> tuple[str, ...]:
    return entity.quota_type.label, entity.broker, entity.user, entity.client_id


def _name(entity: Entity) -> tuple[str, ...]:
    return entity.user, entity.client_id


def _rule(entity: Entity) -> tuple[str, ...]:
    names = entity.quota_type.label, entity.user, entity.client_id
    rule = entity.resolution and entity.resolution.entity
    return (*names, *(rule_labels(rule) if rule else ("", "", "")))


def _tags(entity: Entity) -> tuple[str, ...]:
    return entity.broker, *(entity.tags or ())


def _type_and_tags(entity: Entity) -> tuple[str, ...]:
    return entity.broker, entity.quota_type.label, *(entity.tags or ())


def _usage(shown: Columns) -> Floats:
    return shown.usage


def _has_rule(shown: Columns) -> Floats:
    has = [
        1.0 if each.resolution and each.resolution.entity is not None else np.nan
        for each in shown.layout.entities
    ]
    return _detailed(shown, np.array(has))


def _detailed(shown: Columns, values: Floats) -> Floats:
    """The values without those that are left out for the sake of their number."""
    return (
        values if shown.detailed is None else np.where(shown.detailed, values, np.nan)
    )
