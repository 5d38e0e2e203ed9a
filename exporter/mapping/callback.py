"""
Quotas of a custom callback (``client.quota.callback.class``, KIP-257).

Its beans have the same attributes as those of Kafka's own quotas, under tags that the callback chooses.
"""

from __future__ import annotations

from typing import Final

from quotascope.metrics import QuotaType, catalog

from .attribute import MILLISECONDS, Attribute, Meaning
from .client_quotas import USAGE

_FAMILIES: Final = {
    QuotaType.PRODUCE: catalog.CALLBACK_PRODUCE_BYTES_PER_SECOND,
    QuotaType.FETCH: catalog.CALLBACK_FETCH_BYTES_PER_SECOND,
    QuotaType.REQUEST: catalog.CALLBACK_REQUEST_THREADS,
    QuotaType.CONTROLLER_MUTATION: catalog.CALLBACK_CONTROLLER_MUTATIONS_PER_SECOND,
}


def _of_callback(
    quota_type: QuotaType,
    name: str,
    meaning: Meaning,
    family: catalog.Family,
    divisor: float,
) -> Attribute:
    return Attribute(
        type=quota_type.group,
        free=("user", "client-id"),
        open=True,
        name=name,
        meaning=meaning,
        quota_type=quota_type,
        divisor=divisor,
        family=family,
    )


def _of_type(quota_type: QuotaType) -> tuple[Attribute, ...]:
    usage = USAGE[quota_type]
    return (
        _of_callback(
            quota_type,
            usage.attribute,
            Meaning.USAGE,
            _FAMILIES[quota_type],
            usage.divisor,
        ),
        _of_callback(
            quota_type,
            "throttle-time",
            Meaning.THROTTLE_TIME,
            catalog.CALLBACK_THROTTLE_TIME_SECONDS,
            MILLISECONDS,
        ),
    )


CALLBACK: Final = tuple(row for quota_type in QuotaType for row in _of_type(quota_type))
