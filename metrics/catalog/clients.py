"""Families of Kafka clients in a program: their own reports of waiting."""

from __future__ import annotations

from .family import counter, gauge

CLIENT_SIDE_LABELS = ("user", "client_id", "side")
"""``user`` is the configured principal, ``client_id`` the client's, ``side`` is read, write or admin."""

CLIENT_THROTTLED_SECONDS = counter(
    "kafka_client_throttled_seconds_total",
    "Seconds of throttle time that brokers reported to this client.",
    CLIENT_SIDE_LABELS,
    "seconds",
    "throttle_time_ms of the responses",
)
CLIENT_THROTTLED_RESPONSES = counter(
    "kafka_client_throttled_responses_total",
    "Responses with a throttle time to this client.",
    CLIENT_SIDE_LABELS,
    "responses",
    "responses with throttle_time_ms above 0",
)
CLIENT_THROTTLE_MAX_SECONDS = gauge(
    "kafka_client_throttle_max_seconds",
    "Longest throttle time that brokers reported to this client in the last one to two minutes.",
    CLIENT_SIDE_LABELS,
    "seconds",
    "throttle_time_ms of the responses",
)
CLIENT_ADMIN_QUOTA_RETRIES = counter(
    "kafka_client_admin_quota_retries_total",
    "Admin calls of this client repeated after THROTTLING_QUOTA_EXCEEDED (error 89).",
    ("user", "client_id"),
    "retries",
    "the throttle-aware Admin client",
)
