"""
Quotas of a custom callback (``client.quota.callback.class``, KIP-257).

The callback chooses the tags of its entities: each becomes a further label. Its limits are unknown, unless it is
Strimzi's kafka-quotas-plugin, which reports them.
"""

from __future__ import annotations

from typing import Final

from ..kafka.entities import QuotaType
from .family import Family, gauge
from .type_texts import TEXTS

_STRIMZI = "io.strimzi.kafka.quotas:type=StaticQuotaCallback"


def _open(name: str, text: str, unit: str, source: str, *labels: str) -> Family:
    return gauge(name, text, ("broker", *labels), unit, source, open_labels=True)


def _limit_source(quota_type: QuotaType) -> str:
    """Return the attribute with a limit of the plugin, whose storage check multiplies that of produced bytes."""
    divided = f" / {quota_type.unit.divisor:.0f}" if quota_type.unit.divisor > 1 else ""
    multiplied = ", times ThrottleFactor" if quota_type is QuotaType.PRODUCE else ""
    return f"{_STRIMZI},name={quota_type.group} Value{divided}{multiplied}"


CALLBACK_USAGE: Final = {
    quota_type: _open(
        f"kafka_quota_callback_{quota_type.stem}_{quota_type.unit.name}",
        texts.callback_usage,
        quota_type.unit.documented,
        f"kafka.server:type={quota_type.group} {quota_type.attribute}",
    )
    for quota_type, texts in TEXTS.items()
}
"""Usage under tags of a custom quota callback, by quota type."""

CALLBACK_THROTTLE_TIME_SECONDS = _open(
    "kafka_quota_callback_throttle_time_seconds",
    "Average throttle time under the tags of a custom quota callback, 0 without throttles; absent where Kafka or the "
    "agent does not report it.",
    "seconds",
    "kafka.server:type=* throttle-time",
    "quota_type",
)

CALLBACK_LIMIT: Final = {
    quota_type: _open(
        f"kafka_quota_callback_{quota_type.label}_limit_{quota_type.unit.in_limit_names}",
        texts.callback_limit,
        quota_type.unit.documented,
        _limit_source(quota_type),
    )
    for quota_type, texts in TEXTS.items()
    if texts.callback_limit is not None
}
"""Limits of Strimzi's quotas plugin, by quota type; it has none of controller mutations."""

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
    "1 if a custom quota callback decides on the node, as DescribeConfigs or the MBeans of Strimzi's plugin show, "
    "else 0; absent if that is unknown.",
    ("broker",),
    "",
    "client.quota.callback.class by DescribeConfigs; without that answer, the MBeans of Strimzi's quotas plugin",
)
