"""Families of `quotascope shadow stream`: what shadows would have done to each request in the brokers' logs."""

from __future__ import annotations

from typing import Final

from .family import counter, gauge
from .shadow import SHADOW_LABELS

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
    "Controller mutations of this quota entity that this shadow would have refused with error 89 "
    "(THROTTLING_QUOTA_EXCEEDED); absent before the first.",
    ("shadow", "broker", "user", "client_id"),
    "mutations",
    "request log",
)

SHADOW_LATE_REQUESTS = counter(
    "quotascope_shadow_late_requests_total",
    "Requests logged earlier than --hold before newer ones of their broker, or more than a day ahead: charged when "
    "they come.",
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
