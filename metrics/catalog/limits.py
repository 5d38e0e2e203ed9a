"""The limits in force for observed entities, and what follows from them."""

from __future__ import annotations

from typing import Final

from .family import LIMIT_LABELS, RULE_LABELS, TYPED_USAGE_LABELS, USAGE_LABELS, gauge
from .type_texts import TEXTS

LIMIT: Final = {
    quota_type: gauge(
        f"kafka_quota_{quota_type.label}_limit_{quota_type.unit.in_limit_names}",
        texts.limit,
        LIMIT_LABELS,
        quota_type.unit.documented,
        quota_type.quota_key,
    )
    for quota_type, texts in TEXTS.items()
}
"""Limits of entities, by quota type."""

CONTROLLER_MUTATION_BURST = gauge(
    "kafka_quota_controller_mutation_burst_tokens",
    "Size of the token bucket: limit x controller.quota.window.num x controller.quota.window.size.seconds.",
    LIMIT_LABELS,
    "mutations",
    "computed",
)

RULE_INFO = gauge(
    "kafka_quota_rule_info",
    "Always 1: the quota rule that applies to this quota entity.",
    ("quota_type", *LIMIT_LABELS, *RULE_LABELS),
    "",
    "computed",
)

UTILIZATION = gauge(
    "kafka_quota_utilization_ratio",
    "Usage / limit on this broker: 1 is the limit.",
    TYPED_USAGE_LABELS,
    "ratio",
    "computed",
)

REPORTED_UTILIZATION = gauge(
    "kafka_quota_reported_utilization_ratio",
    "Usage / limit as the broker reports it (KIP-1373); absent when unlimited.",
    TYPED_USAGE_LABELS,
    "ratio",
    "kafka.server:type=* quota-utilization",
)

UTILIZATION_MAX = gauge(
    "kafka_quota_utilization_max_ratio",
    "Highest utilization within collection.sample_window_seconds; absent without sampling.",
    TYPED_USAGE_LABELS,
    "ratio",
    "computed",
)

BURST_USED = gauge(
    "kafka_quota_controller_mutation_burst_used_ratio",
    "1 - tokens / burst: 1 is an empty bucket, above 1 is debt.",
    USAGE_LABELS,
    "ratio",
    "computed",
)

BURST_USED_MAX = gauge(
    "kafka_quota_controller_mutation_burst_used_max_ratio",
    "Highest used part of the burst within collection.sample_window_seconds: above 1 is debt; absent without sampling.",
    USAGE_LABELS,
    "ratio",
    "computed",
)

THROTTLE_CAUSE_INFO = gauge(
    "kafka_quota_throttle_cause_info",
    "Always 1: the inferred cause of the throttle, own, controller_mutation (on a request throttle, by_* are the "
    "entity that has its throttle time) or unknown.",
    (*TYPED_USAGE_LABELS, "cause", "by_broker", "by_user", "by_client_id"),
    "",
    "computed",
)
