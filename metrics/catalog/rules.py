"""The rules as configured, used or not."""

from __future__ import annotations

from .family import RULE_LABELS, counter, gauge

RULE_PRODUCE_LIMIT = gauge(
    "kafka_quota_rule_produce_limit_bytes_per_second",
    "Configured produce limit of this quota rule, used or not.",
    RULE_LABELS,
    "bytes/s",
    "producer_byte_rate",
)

RULE_FETCH_LIMIT = gauge(
    "kafka_quota_rule_fetch_limit_bytes_per_second",
    "Configured fetch limit of this quota rule, used or not.",
    RULE_LABELS,
    "bytes/s",
    "consumer_byte_rate",
)

RULE_REQUEST_LIMIT = gauge(
    "kafka_quota_rule_request_limit_threads",
    "Configured request time limit of this quota rule in threads, used or not.",
    RULE_LABELS,
    "threads",
    "request_percentage",
)

RULE_CONTROLLER_MUTATION_LIMIT = gauge(
    "kafka_quota_rule_controller_mutation_limit_per_second",
    "Configured limit of controller mutations of this quota rule, used or not.",
    RULE_LABELS,
    "mutations/s",
    "controller_mutation_rate",
)

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
