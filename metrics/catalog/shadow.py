"""What brokers would do under quotas that are not set: shadows, which nothing enforces."""

from __future__ import annotations

from .family import TYPED_USAGE_LABELS, gauge

SHADOW_LABELS = ("shadow", *TYPED_USAGE_LABELS)
"""``shadow`` is the name of a candidate; the entity is the one that its rules make."""

SHADOW_UTILIZATION = gauge(
    "kafka_quota_shadow_utilization_ratio",
    "Usage / limit that this shadow would set on this broker: 1 is the limit; absent when it is unlimited or cannot be evaluated.",
    SHADOW_LABELS,
    "ratio",
    "computed",
)

SHADOW_THROTTLE_TIME = gauge(
    "kafka_quota_shadow_throttle_time_seconds",
    "Throttle time of a request now under this shadow, 0 within the limit; absent when it cannot be evaluated.",
    SHADOW_LABELS,
    "seconds",
    "computed",
)

SHADOW_THROTTLED_ENTITIES = gauge(
    "kafka_quota_shadow_throttled_entities",
    "Quota entities that this shadow would throttle now on this broker, those not shown one by one included; absent when none can be evaluated.",
    ("shadow", "quota_type", "broker"),
    "entities",
    "computed",
)

SHADOW_UNEVALUATED_ENTITIES = gauge(
    "kafka_quota_shadow_unevaluated_entities",
    "Quota entities of which it is unknown whether this shadow would throttle them, by reason (docs/shadow.md).",
    ("shadow", "quota_type", "broker", "reason"),
    "entities",
    "computed",
)
