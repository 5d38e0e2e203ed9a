"""The rules as configured, used or not."""

from __future__ import annotations

from typing import Final

from .family import RULE_LABELS, counter, gauge
from .type_texts import TEXTS

RULE_LIMIT: Final = {
    quota_type: gauge(
        f"kafka_quota_rule_{quota_type.label}_limit_{quota_type.unit.in_limit_names}",
        texts.rule_limit,
        RULE_LABELS,
        quota_type.unit.documented,
        quota_type.quota_key,
    )
    for quota_type, texts in TEXTS.items()
}
"""Limits of configured rules, by quota type."""

RULE_CONNECTION_LIMIT = gauge(
    "kafka_quota_rule_connection_limit_per_second",
    "Configured limit of new connections per second of this IP address (<default>: of all others), used or not.",
    ("ip",),
    "connections/s",
    "connection_creation_rate",
)

RULES = gauge("kafka_quota_rules", "Number of configured quota rules.", ("quota_key",), "rules", "DescribeClientQuotas")

LIMIT_CHANGES = counter(
    "quotascope_limit_changes_total",
    "Configured limits that were set, changed or removed; absent without the Admin API.",
    ("quota_key",),
    "changes",
    "two successive reads of DescribeClientQuotas",
)
