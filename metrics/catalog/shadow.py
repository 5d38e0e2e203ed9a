"""What brokers would do under quotas that are not set: shadows, which nothing enforces, now and as `quotascope shadow stream` counts it."""

from __future__ import annotations

from typing import Final

from .family import TYPED_USAGE_LABELS, counter, gauge

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
    "Throttle time that Kafka would answer a request now under this shadow, 0 within the limit; absent when it cannot be evaluated.",
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

SHADOW_THROTTLED_REQUESTS = counter(
    "kafka_quota_shadow_throttled_requests_total",
    "Requests of this quota entity that this shadow would have throttled; absent before the first.",
    SHADOW_LABELS,
    "requests",
    "request log",
)

SHADOW_THROTTLE_SECONDS = counter(
    "kafka_quota_shadow_throttle_seconds_total",
    "Throttle time that this shadow would have imposed on this quota entity; absent before the first.",
    SHADOW_LABELS,
    "seconds",
    "request log",
)

SHADOW_REFUSED_MUTATIONS = counter(
    "kafka_quota_shadow_refused_mutations_total",
    "Controller mutations of this quota entity that this shadow would have refused with error 89 (THROTTLING_QUOTA_EXCEEDED); absent before the first.",
    ("shadow", "broker", "user", "client_id"),
    "mutations",
    "request log",
)

SHADOW_LATE_REQUESTS = counter(
    "quotascope_shadow_late_requests_total",
    "Requests whose line came later than --hold after newer ones of their broker: they are charged when they come.",
    (),
    "requests",
    "computed",
)

SHADOW_DECIDED = gauge(
    "quotascope_shadow_decided_timestamp_seconds",
    "Unix time until which the stream has decided the requests; absent before the first.",
    (),
    "seconds",
    "computed",
)


STREAM_FAMILIES: Final = (
    SHADOW_THROTTLED_REQUESTS,
    SHADOW_THROTTLE_SECONDS,
    SHADOW_REFUSED_MUTATIONS,
    SHADOW_LATE_REQUESTS,
    SHADOW_DECIDED,
)
"""What the driver of the stream shows."""
