"""Series of the limits in force, once for each entity however many nodes report it, and of the configured rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from quotascope.metrics import DefaultType, QuotaEntity, QuotaType, catalog
from quotascope.metrics.catalog import Family

from ..limits import QUOTA_KEYS
from ..snapshot import Entity
from .series import Reader, View

DEFAULT_NAME: Final = "<default>"

_Row = tuple[tuple[str, ...], float | None]


def _in_force(quota_type: QuotaType, value: Callable[[Entity], float | None]) -> Reader:
    def read(view: View) -> Iterator[_Row]:
        for usage in view.by_type[quota_type]:
            entity = usage.entity
            yield (entity.user, entity.client_id), value(entity)

    return read


def _deciding_rules(view: View) -> Iterator[_Row]:
    for usage in view.entities:
        entity = usage.entity
        rule = entity.resolution.entity if entity.resolution else None
        if usage.detailed and rule is not None:
            names = (entity.quota_type.label, entity.user, entity.client_id)
            yield (*names, *rule_labels(rule)), 1


def _configured(quota_type: QuotaType) -> Reader:
    def read(view: View) -> Iterator[_Row]:
        limits = view.snapshot.limits
        rules = limits.rules.get(quota_type) if limits else None
        rows = [
            (rule_labels(entity), in_base_unit(quota_type, bound))
            for entity, bound in (rules or {}).items()
        ]
        yield from sorted(rows)

    return read


def rule_labels(entity: QuotaEntity) -> tuple[str, str, str]:
    """The labels ``level``, ``rule_user`` and ``rule_client_id`` of a configured entity."""
    return entity.level.value, dimension(entity.user), dimension(entity.client_id)


def dimension(name: str | DefaultType | None) -> str:
    """One dimension of a rule as a label: empty when absent, ``<default>`` for the default."""
    if name is None:
        return ""
    return name if isinstance(name, str) else DEFAULT_NAME


def in_base_unit(quota_type: QuotaType, bound: float) -> float:
    """A bound in our unit: request time in threads instead of percent, all others as they are."""
    return bound / 100 if quota_type is QuotaType.REQUEST else bound


def _connection_limits(view: View) -> Iterator[_Row]:
    limits = view.snapshot.limits
    for ip, rate in sorted(limits.connection_limits.items() if limits else ()):
        yield (ip,), rate


def _counts(view: View) -> Iterator[_Row]:
    if view.snapshot.limits is not None:
        for key in QUOTA_KEYS:
            yield (key,), view.snapshot.limits.count(key)


def _changes(view: View) -> Iterator[_Row]:
    for key in QUOTA_KEYS:
        yield (key,), view.snapshot.limits_health.changes_total.get(key, 0)


def _limit(entity: Entity) -> float | None:
    return entity.limit


READERS: Mapping[Family, Reader] = {
    catalog.PRODUCE_LIMIT: _in_force(QuotaType.PRODUCE, _limit),
    catalog.FETCH_LIMIT: _in_force(QuotaType.FETCH, _limit),
    catalog.REQUEST_LIMIT: _in_force(QuotaType.REQUEST, _limit),
    catalog.CONTROLLER_MUTATION_LIMIT: _in_force(QuotaType.CONTROLLER_MUTATION, _limit),
    catalog.CONTROLLER_MUTATION_BURST: _in_force(
        QuotaType.CONTROLLER_MUTATION, lambda entity: entity.burst_tokens
    ),
    catalog.RULE_INFO: _deciding_rules,
    catalog.RULE_PRODUCE_LIMIT: _configured(QuotaType.PRODUCE),
    catalog.RULE_FETCH_LIMIT: _configured(QuotaType.FETCH),
    catalog.RULE_REQUEST_LIMIT: _configured(QuotaType.REQUEST),
    catalog.RULE_CONTROLLER_MUTATION_LIMIT: _configured(QuotaType.CONTROLLER_MUTATION),
    catalog.RULE_CONNECTION_LIMIT: _connection_limits,
    catalog.RULES: _counts,
    catalog.LIMIT_CHANGES: _changes,
}
