"""What quota entities use, and how they are throttled: Kafka's client quotas."""

from __future__ import annotations

from .family import TYPED_USAGE_LABELS, USAGE_LABELS, counter, gauge

PRODUCE_BYTES_PER_SECOND = gauge(
    "kafka_quota_produce_bytes_per_second",
    "Bytes per second produced under this quota entity, over the broker's quota window (default 11 x 1 s).",
    USAGE_LABELS,
    "bytes/s",
    "kafka.server:type=Produce byte-rate",
)

FETCH_BYTES_PER_SECOND = gauge(
    "kafka_quota_fetch_bytes_per_second",
    "Bytes per second fetched under this quota entity, over the broker's quota window (default 11 x 1 s); negative after unrecorded fetches.",
    USAGE_LABELS,
    "bytes/s",
    "kafka.server:type=Fetch byte-rate",
)

REQUEST_THREADS = gauge(
    "kafka_quota_request_threads",
    "Request time used under this quota entity, in threads busy all the time, over the broker's quota window (default 11 x 1 s).",
    USAGE_LABELS,
    "threads",
    "kafka.server:type=Request request-time / 100",
)

CONTROLLER_MUTATIONS_PER_SECOND = gauge(
    "kafka_quota_controller_mutations_per_second",
    "Partitions created, added or deleted per second under this quota entity, over the controller's metrics window (default 2 x 30 s).",
    USAGE_LABELS,
    "mutations/s",
    "kafka.server:type=ControllerMutation mutation-rate",
)

CONTROLLER_MUTATION_TOKENS = gauge(
    "kafka_quota_controller_mutation_tokens",
    "Mutations still allowed at once; negative while further ones are refused. Absent without a limit.",
    USAGE_LABELS,
    "mutations",
    "kafka.server:type=ControllerMutation tokens",
)

THROTTLE_TIME_SECONDS = gauge(
    "kafka_quota_throttle_time_seconds",
    "Average of the throttles of the last 30 to 60 s, 0 when there were none; it lingers after the last one. Nothing where the agent leaves the column out, nor for controller mutations under KRaft, which no node measures: the broker that forwards their requests counts the delay as one of request time.",
    TYPED_USAGE_LABELS,
    "seconds",
    "throttle-time / 1000, NaN becomes 0 but for controller mutations; a missing column is nothing",
)

THROTTLED_SECONDS = counter(
    "kafka_quota_throttled_seconds_total",
    "Seconds of throttle time imposed on this quota entity. Only where the quotascope engine enforces.",
    TYPED_USAGE_LABELS,
    "seconds",
    "throttle-time-total / 1000 of an embedded engine",
)

THROTTLED_REQUESTS = counter(
    "kafka_quota_throttled_requests_total",
    "Requests of this quota entity that were throttled. Only where the quotascope engine enforces.",
    TYPED_USAGE_LABELS,
    "requests",
    "throttle-count of an embedded engine",
)

REJECTED_MUTATIONS = counter(
    "kafka_quota_rejected_mutations_total",
    "Mutations refused with THROTTLING_QUOTA_EXCEEDED (error 89). Only where the quotascope engine enforces.",
    USAGE_LABELS,
    "mutations",
    "rejection-count of an embedded engine",
)
