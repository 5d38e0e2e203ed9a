"""Somebody changed a quota."""

from __future__ import annotations

from quotascope.metrics import catalog

from ..levels import Levels
from ..links import Dashboard
from ..promql import above, aggregate, increase
from ..rule import Alert, Group, Scope, Severity


def configuration(levels: Levels) -> Group:
    """Alerts on the configured quotas."""
    changed = aggregate(
        "max", levels.of("quota_key"), increase(catalog.LIMIT_CHANGES, "10m")
    )
    return Group(
        name="quotascope-configuration",
        rules=(
            Alert(
                name="KafkaQuotaRuleChanged",
                expr=above(changed, 0),
                labels=("quota_key",),
                severity=Severity.INFO,
                scope=Scope.CONFIGURATION,
                wait="1m",
                summary="A quota was set, changed or removed.",
                description="Limits of {{ $labels.quota_key }} were changed within the last 10 minutes. The exporter's log has the old and the new values.",
                dashboard=Dashboard.OVERVIEW,
                spared="A restart of the exporter.",
            ),
        ),
    )
