"""Series of the configured rules, and how often they changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from quotascope.metrics import DefaultType, QuotaEntity, QuotaType, catalog
from quotascope.metrics.catalog import Family

from ..limits import QUOTA_KEYS
from .series import Reader, Row, View

DEFAULT_NAME: Final = "<default>"


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


def _configured(quota_type: QuotaType) -> Reader:
    def read(view: View) -> Iterator[Row]:
        limits = view.snapshot.limits
        rules = limits.rules.get(quota_type) if limits else None
        rows = [
            (rule_labels(entity), in_base_unit(quota_type, bound))
            for entity, bound in (rules or {}).items()
        ]
        yield from sorted(rows)

    return read


def _connection_limits(view: View) -> Iterator[Row]:
    limits = view.snapshot.limits
    for ip, rate in sorted(limits.connection_limits.items() if limits else ()):
        yield (ip,), rate


def _counts(view: View) -> Iterator[Row]:
    if view.snapshot.limits is not None:
        for key in QUOTA_KEYS:
            yield (key,), view.snapshot.limits.count(key)


def _changes(view: View) -> Iterator[Row]:
    health = view.snapshot.limits_health
    for key in QUOTA_KEYS if health.configured else ():
        yield (key,), health.changes_total.get(key, 0)


READERS: Final[Mapping[Family, Reader]] = {
    catalog.RULE_PRODUCE_LIMIT: _configured(QuotaType.PRODUCE),
    catalog.RULE_FETCH_LIMIT: _configured(QuotaType.FETCH),
    catalog.RULE_REQUEST_LIMIT: _configured(QuotaType.REQUEST),
    catalog.RULE_CONTROLLER_MUTATION_LIMIT: _configured(QuotaType.CONTROLLER_MUTATION),
    catalog.RULE_CONNECTION_LIMIT: _connection_limits,
    catalog.RULES: _counts,
    catalog.LIMIT_CHANGES: _changes,
}
