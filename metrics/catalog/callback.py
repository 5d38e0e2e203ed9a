"""
Quotas of a custom callback (``client.quota.callback.class``, KIP-257).

The callback chooses the tags of its entities: each becomes a further label. Its limits are unknown.
"""

from __future__ import annotations

from .family import Family, gauge


def _open(name: str, text: str, unit: str, source: str, *labels: str) -> Family:
    return gauge(name, text, ("broker", *labels), unit, source, open_labels=True)


CALLBACK_PRODUCE_BYTES_PER_SECOND = _open(
    "kafka_quota_callback_produce_bytes_per_second",
    "Bytes per second produced under the tags of a custom quota callback, over the broker's quota window (default 11 x 1 s).",
    "bytes/s",
    "kafka.server:type=Produce byte-rate under other tags than user and client-id",
)

CALLBACK_FETCH_BYTES_PER_SECOND = _open(
    "kafka_quota_callback_fetch_bytes_per_second",
    "Bytes per second fetched under the tags of a custom quota callback, over the broker's quota window (default 11 x 1 s); negative after unrecorded fetches.",
    "bytes/s",
    "kafka.server:type=Fetch byte-rate under other tags than user and client-id",
)

CALLBACK_REQUEST_THREADS = _open(
    "kafka_quota_callback_request_threads",
    "Request time used under the tags of a custom quota callback, in threads busy all the time, over the broker's quota window (default 11 x 1 s).",
    "threads",
    "kafka.server:type=Request request-time / 100 under other tags than user and client-id",
)

CALLBACK_CONTROLLER_MUTATIONS_PER_SECOND = _open(
    "kafka_quota_callback_controller_mutations_per_second",
    "Partitions created, added or deleted per second under the tags of a custom quota callback, over the controller's metrics window (default 2 x 30 s).",
    "mutations/s",
    "kafka.server:type=ControllerMutation mutation-rate under other tags than user and client-id",
)

CALLBACK_THROTTLE_TIME_SECONDS = _open(
    "kafka_quota_callback_throttle_time_seconds",
    "Average of the throttles of the last 30 to 60 s under the tags of a custom quota callback, 0 when there were none; it lingers after the last one. Nothing where the agent leaves the column out, nor for controller mutations under KRaft.",
    "seconds",
    "throttle-time / 1000 under other tags than user and client-id, NaN becomes 0 but for controller mutations; a missing column is nothing",
    "quota_type",
)

CALLBACK_DETECTED = gauge(
    "quotascope_callback_detected",
    "1 when this node leaves quotas to a custom callback, by its configuration or by the tags of its beans, else 0: limits and rules are then unknown. Absent where its settings are unknown and its beans show none.",
    ("broker",),
    "",
    "client.quota.callback.class, and key properties other than user and client-id",
)
