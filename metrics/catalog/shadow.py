"""Families of shadows: what brokers would do under quotas that are not set, and that nothing enforces."""

from __future__ import annotations

from .family import TYPED_USAGE_LABELS, gauge

SHADOW_LABELS = ("shadow", *TYPED_USAGE_LABELS)
"""``shadow`` is the name of a candidate; the entity is the one that its rules make."""

SHADOW_UTILIZATION = gauge(
    "kafka_quota_shadow_utilization_ratio",
    "Usage / limit that this shadow would set on this broker: 1 is the limit, a lower bound for a client that is "
    "throttled now; absent when it is unlimited or cannot be evaluated.",
    SHADOW_LABELS,
    "ratio",
    "computed",
)

SHADOW_THROTTLE_TIME = gauge(
    "kafka_quota_shadow_throttle_time_seconds",
    "Throttle time of a request now under this shadow, 0 within the limit; the broker's own where limit and grouping "
    "stay; absent when it cannot be evaluated.",
    SHADOW_LABELS,
    "seconds",
    "computed",
)

SHADOW_THROTTLE_CHANGE = gauge(
    "kafka_quota_shadow_throttle_change_seconds",
    "Throttle time under this shadow minus that of the quotas in force: above 0 for what it would throttle newly or "
    "longer, 0 where nothing changes; absent when unknown.",
    SHADOW_LABELS,
    "seconds",
    "computed",
)

SHADOW_THROTTLED_ENTITIES = gauge(
    "kafka_quota_shadow_throttled_entities",
    "Quota entities that this shadow would throttle or that are throttled now, by change: new, longer, shorter, "
    "ended, unchanged (documentation: From an idea to a quota); absent when none can be evaluated.",
    ("shadow", "quota_type", "broker", "change"),
    "entities",
    "computed",
)

WORSE = 'change=~"new|longer"'
"""A matcher in PromQL on what speaks against a shadow."""

SHADOW_UNEVALUATED_ENTITIES = gauge(
    "kafka_quota_shadow_unevaluated_entities",
    "Quota entities of which it is unknown whether this shadow would throttle them, by reason "
    "(documentation: From an idea to a quota).",
    ("shadow", "quota_type", "broker", "reason"),
    "entities",
    "computed",
)
