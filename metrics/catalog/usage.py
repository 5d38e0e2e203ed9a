"""What quota entities use, and how they are throttled: Kafka's client quotas."""

from __future__ import annotations

from .family import TYPED_USAGE_LABELS, USAGE_LABELS, counter, gauge

PRODUCE_BYTES_PER_SECOND = gauge(
    "kafka_quota_produce_bytes_per_second",
    "Bytes per second produced by this quota entity.",
    USAGE_LABELS,
    "bytes/s",
    "kafka.server:type=Produce byte-rate",
)

FETCH_BYTES_PER_SECOND = gauge(
    "kafka_quota_fetch_bytes_per_second",
    "Bytes per second fetched by this quota entity; can be negative.",
    USAGE_LABELS,
    "bytes/s",
    "kafka.server:type=Fetch byte-rate",
)

REQUEST_THREADS = gauge(
    "kafka_quota_request_threads",
    "Request time used by this quota entity, in threads.",
    USAGE_LABELS,
    "threads",
    "kafka.server:type=Request request-time",
)

CONTROLLER_MUTATIONS_PER_SECOND = gauge(
    "kafka_quota_controller_mutations_per_second",
    "Controller mutations (partitions created, added or deleted) per second of this quota entity.",
    USAGE_LABELS,
    "mutations/s",
    "kafka.server:type=ControllerMutation mutation-rate",
)

CONTROLLER_MUTATION_TOKENS = gauge(
    "kafka_quota_controller_mutation_tokens",
    "Controller mutations that are still allowed at once; negative while further ones are refused, absent without a limit.",
    USAGE_LABELS,
    "mutations",
    "kafka.server:type=ControllerMutation tokens",
)

THROTTLE_TIME_SECONDS = gauge(
    "kafka_quota_throttle_time_seconds",
    "Average throttle time, 0 without throttles; absent if the agent does not report it, and for controller mutations under KRaft, where a broker reports it under request.",
    TYPED_USAGE_LABELS,
    "seconds",
    "kafka.server:type=* throttle-time",
)

THROTTLED_SECONDS = counter(
    "kafka_quota_throttled_seconds_total",
    "Throttle time imposed on this quota entity; only with an embedded quotascope engine.",
    TYPED_USAGE_LABELS,
    "seconds",
    "embedded engine",
)

THROTTLED_REQUESTS = counter(
    "kafka_quota_throttled_requests_total",
    "Requests of this quota entity that were throttled; only with an embedded quotascope engine.",
    TYPED_USAGE_LABELS,
    "requests",
    "embedded engine",
)

REFUSED_MUTATIONS = counter(
    "kafka_quota_refused_mutations_total",
    "Controller mutations refused with error 89 (THROTTLING_QUOTA_EXCEEDED); only with an embedded quotascope engine.",
    USAGE_LABELS,
    "mutations",
    "embedded engine",
)
