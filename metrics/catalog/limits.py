"""The limits in force for observed entities, and what follows from them."""

from __future__ import annotations

from .family import LIMIT_LABELS, RULE_LABELS, TYPED_USAGE_LABELS, USAGE_LABELS, gauge

PRODUCE_LIMIT = gauge(
    "kafka_quota_produce_limit_bytes_per_second",
    "Produce limit in force for this quota entity on each broker. Absent when unlimited.",
    LIMIT_LABELS,
    "bytes/s",
    "producer_byte_rate",
)

FETCH_LIMIT = gauge(
    "kafka_quota_fetch_limit_bytes_per_second",
    "Fetch limit in force for this quota entity on each broker. Absent when unlimited.",
    LIMIT_LABELS,
    "bytes/s",
    "consumer_byte_rate",
)

REQUEST_LIMIT = gauge(
    "kafka_quota_request_limit_threads",
    "Request time limit in force for this quota entity on each broker, in threads. Absent when unlimited.",
    LIMIT_LABELS,
    "threads",
    "request_percentage / 100",
)

CONTROLLER_MUTATION_LIMIT = gauge(
    "kafka_quota_controller_mutation_limit_per_second",
    "Limit of partition mutations in force for this quota entity. Absent when unlimited.",
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
    "Always 1: the configured rule that decides for this quota entity.",
    ("quota_type", *LIMIT_LABELS, *RULE_LABELS),
    "",
    "precedence of the configured quotas",
)

UTILIZATION = gauge(
    "kafka_quota_utilization_ratio",
    "Usage divided by limit on this broker: 1 is the limit.",
    TYPED_USAGE_LABELS,
    "ratio",
    "computed",
)

REPORTED_UTILIZATION = gauge(
    "kafka_quota_reported_utilization_ratio",
    "Usage divided by limit as the broker itself reports it: 1 is the limit. Only from brokers with KIP-1373; absent when unlimited.",
    TYPED_USAGE_LABELS,
    "ratio",
    "quota-utilization / 100",
)

UTILIZATION_MAX = gauge(
    "kafka_quota_utilization_max_ratio",
    "Greatest utilization of the last minute (collection.sample_window_seconds), the same for every scraper. Only with sampling between scrapes.",
    TYPED_USAGE_LABELS,
    "ratio",
    "computed from samples",
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
    "Greatest used part of the burst in the last minute (collection.sample_window_seconds), the same for every scraper: above 1 the bucket was in debt. Only with sampling between scrapes.",
    USAGE_LABELS,
    "ratio",
    "computed from samples",
)

THROTTLE_CAUSE_INFO = gauge(
    "kafka_quota_throttle_cause_info",
    "Always 1, inferred: own, controller_mutation for a request throttle that a controller mutation quota put there, or unknown where nothing about its client says which of the two.",
    (*TYPED_USAGE_LABELS, "cause"),
    "",
    "inferred from throttle time, request time and the controller's tokens",
)
