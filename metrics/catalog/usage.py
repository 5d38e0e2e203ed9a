"""Families of client quotas: usage and throttles of quota entities."""

from __future__ import annotations

from typing import Final

from .family import TYPED_USAGE_LABELS, USAGE_LABELS, gauge
from .type_texts import TEXTS

USAGE: Final = {
    quota_type: gauge(
        f"kafka_quota_{quota_type.stem}_{quota_type.unit.name}",
        texts.usage,
        USAGE_LABELS,
        quota_type.unit.documented,
        f"kafka.server:type={quota_type.group} {quota_type.attribute}",
    )
    for quota_type, texts in TEXTS.items()
}
"""Usage of entities, by quota type."""

CONTROLLER_MUTATION_TOKENS = gauge(
    "kafka_quota_controller_mutation_tokens",
    "Controller mutations that are still allowed at once; negative while further ones are refused, absent without a "
    "limit.",
    USAGE_LABELS,
    "mutations",
    "kafka.server:type=ControllerMutation tokens",
)

THROTTLE_TIME_SECONDS = gauge(
    "kafka_quota_throttle_time_seconds",
    "Average throttle time, 0 without throttles; absent if the agent does not report it. For controller mutations "
    "under KRaft the longest request throttle that they cause, which brokers report under request; absent before the "
    "first.",
    TYPED_USAGE_LABELS,
    "seconds",
    "kafka.server:type=* throttle-time",
)
