"""The configured quotas as an exporter's page shows them."""

from __future__ import annotations

from typing import Final

from quotascope.metrics import (
    DEFAULT,
    Level,
    QuotaEntity,
    QuotaRules,
    QuotaType,
    catalog,
)
from quotascope.metrics.catalog import Family
from quotascope.metrics.entities import Name

from ..limits import Limits, NodeSettings
from .samples import Page

_RULES: Final = {
    QuotaType.PRODUCE: catalog.RULE_PRODUCE_LIMIT,
    QuotaType.FETCH: catalog.RULE_FETCH_LIMIT,
    QuotaType.REQUEST: catalog.RULE_REQUEST_LIMIT,
    QuotaType.CONTROLLER_MUTATION: catalog.RULE_CONTROLLER_MUTATION_LIMIT,
}
_DEFAULT_USER: Final = {
    Level.DEFAULT_USER_CLIENT,
    Level.DEFAULT_USER_DEFAULT_CLIENT,
    Level.DEFAULT_USER,
}
_DEFAULT_CLIENT: Final = {
    Level.USER_DEFAULT_CLIENT,
    Level.DEFAULT_USER_DEFAULT_CLIENT,
    Level.DEFAULT_CLIENT,
}


def limits_of_page(page: Page, taken_at: float) -> Limits | None:
    """The quotas in Kafka's units; None when the exporter does not know them itself."""
    if not page.samples(catalog.RULES):
        return None
    return Limits(
        rules={kind: _rules(page, kind, family) for kind, family in _RULES.items()},
        connection_limits={
            sample.labels["ip"]: sample.value
            for sample in page.samples(catalog.RULE_CONNECTION_LIMIT)
        },
        nodes={
            sample.labels["broker"]: NodeSettings(request_capacity_threads=sample.value)
            for sample in page.samples(catalog.REQUEST_CAPACITY_THREADS)
        },
        read_at=taken_at,
    )


def _rules(page: Page, kind: QuotaType, family: Family) -> QuotaRules:
    factor = 100.0 if kind is QuotaType.REQUEST else 1.0
    rules = QuotaRules()
    for sample in page.samples(family):
        labels = sample.labels
        entity = _entity(
            Level(labels["level"]), labels["rule_user"], labels["rule_client_id"]
        )
        rules.set(entity, sample.value * factor)
    return rules


def _entity(level: Level, user: str, client_id: str) -> QuotaEntity:
    """The level tells a default from an entity that is really called so."""
    return QuotaEntity(
        _name(user, default=level in _DEFAULT_USER),
        _name(client_id, default=level in _DEFAULT_CLIENT),
    )


def _name(label: str, *, default: bool) -> Name | None:
    return DEFAULT if default else label or None
