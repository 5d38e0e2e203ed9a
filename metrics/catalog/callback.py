"""
Quotas of a custom callback (``client.quota.callback.class``, KIP-257).

The callback chooses the tags of its entities: each becomes a further label. Its limits are unknown, unless it is
Strimzi's kafka-quotas-plugin, which reports them.
"""

from __future__ import annotations

from .family import Family, gauge

_STRIMZI = "io.strimzi.kafka.quotas:type=StaticQuotaCallback"


def _open(name: str, text: str, unit: str, source: str, *labels: str) -> Family:
    return gauge(name, text, ("broker", *labels), unit, source, open_labels=True)


CALLBACK_PRODUCE_BYTES_PER_SECOND = _open(
    "kafka_quota_callback_produce_bytes_per_second",
    "Bytes per second produced under the tags of a custom quota callback.",
    "bytes/s",
    "kafka.server:type=Produce byte-rate",
)

CALLBACK_FETCH_BYTES_PER_SECOND = _open(
    "kafka_quota_callback_fetch_bytes_per_second",
    "Bytes per second fetched under the tags of a custom quota callback; can be negative.",
    "bytes/s",
    "kafka.server:type=Fetch byte-rate",
)

CALLBACK_REQUEST_THREADS = _open(
    "kafka_quota_callback_request_threads",
    "Request time used under the tags of a custom quota callback, in threads.",
    "threads",
    "kafka.server:type=Request request-time",
)

CALLBACK_CONTROLLER_MUTATIONS_PER_SECOND = _open(
    "kafka_quota_callback_controller_mutations_per_second",
    "Controller mutations per second under the tags of a custom quota callback.",
    "mutations/s",
    "kafka.server:type=ControllerMutation mutation-rate",
)

CALLBACK_THROTTLE_TIME_SECONDS = _open(
    "kafka_quota_callback_throttle_time_seconds",
    "Average throttle time under the tags of a custom quota callback, 0 without throttles; absent where Kafka or the agent does not report it.",
    "seconds",
    "kafka.server:type=* throttle-time",
    "quota_type",
)

CALLBACK_PRODUCE_LIMIT = _open(
    "kafka_quota_callback_produce_limit_bytes_per_second",
    "Produce limit of Strimzi's quotas plugin, which all clients of the broker share.",
    "bytes/s",
    f"{_STRIMZI},name=Produce Value, times ThrottleFactor",
)

CALLBACK_FETCH_LIMIT = _open(
    "kafka_quota_callback_fetch_limit_bytes_per_second",
    "Fetch limit of Strimzi's quotas plugin, which all clients of the broker share.",
    "bytes/s",
    f"{_STRIMZI},name=Fetch Value",
)

CALLBACK_REQUEST_LIMIT = _open(
    "kafka_quota_callback_request_limit_threads",
    "Request limit of Strimzi's quotas plugin, which all clients of the broker share, in threads.",
    "threads",
    f"{_STRIMZI},name=Request Value / 100",
)

CALLBACK_UTILIZATION = _open(
    "kafka_quota_callback_utilization_ratio",
    "Usage divided by limit under Strimzi's quotas plugin.",
    "ratio",
    "computed",
    "quota_type",
)

CALLBACK_THROTTLE_FACTOR = gauge(
    "kafka_quota_callback_throttle_factor_ratio",
    "Share of the produce limit that the storage check of Strimzi's quotas plugin leaves; absent without that check.",
    ("broker",),
    "ratio",
    "io.strimzi.kafka.quotas:type=ThrottleFactor,name=ThrottleFactor Value",
)

CALLBACK_DETECTED = gauge(
    "quotascope_callback_detected",
    "1 if the node uses a custom quota callback instead of the configured rules, else 0; absent if that is unknown.",
    ("broker",),
    "",
    "client.quota.callback.class, and key properties other than user and client-id",
)
