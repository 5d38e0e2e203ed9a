"""The limits in force for observed entities, and what follows from them."""

from __future__ import annotations

from .family import LIMIT_LABELS, RULE_LABELS, TYPED_USAGE_LABELS, USAGE_LABELS, gauge

PRODUCE_LIMIT = gauge(
    "kafka_quota_produce_limit_bytes_per_second",
    "Produce limit of this quota entity on each broker; absent when unlimited.",
    LIMIT_LABELS,
    "bytes/s",
    "producer_byte_rate",
)

FETCH_LIMIT = gauge(
    "kafka_quota_fetch_limit_bytes_per_second",
    "Fetch limit of this quota entity on each broker; absent when unlimited.",
    LIMIT_LABELS,
    "bytes/s",
    "consumer_byte_rate",
)

REQUEST_LIMIT = gauge(
    "kafka_quota_request_limit_threads",
    "Request time limit of this quota entity on each broker, in threads; absent when unlimited.",
    LIMIT_LABELS,
    "threads",
    "request_percentage",
)

CONTROLLER_MUTATION_LIMIT = gauge(
    "kafka_quota_controller_mutation_limit_per_second",
    "Limit of controller mutations of this quota entity; absent when unlimited.",
    LIMIT_LABELS,
    "mutations/s",
    "controller_mutation_rate",
)

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
    "Always 1: the inferred cause of the throttle, own, controller_mutation (on a request throttle) or unknown.",
    (*TYPED_USAGE_LABELS, "cause"),
    "",
    "computed",
)
