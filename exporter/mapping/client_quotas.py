"""Client quotas: Kafka's ``ClientQuotaManager``, ``ClientRequestQuotaManager`` and ``ControllerMutationQuotaManager``."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Final

from quotascope.metrics import QuotaType, catalog

from .attribute import MILLISECONDS, PERCENT, Attribute, Meaning


@dataclass(frozen=True, slots=True)
class Usage:
    """What a quota type limits."""

    attribute: str
    divisor: float
    """Kafka's unit of usage and limit alike, divided by this, is ours."""
    family: catalog.Family


USAGE: Final = {
    QuotaType.PRODUCE: Usage("byte-rate", 1.0, catalog.PRODUCE_BYTES_PER_SECOND),
    QuotaType.FETCH: Usage("byte-rate", 1.0, catalog.FETCH_BYTES_PER_SECOND),
    QuotaType.REQUEST: Usage("request-time", PERCENT, catalog.REQUEST_THREADS),
    QuotaType.CONTROLLER_MUTATION: Usage(
        "mutation-rate", 1.0, catalog.CONTROLLER_MUTATIONS_PER_SECOND
    ),
}


def _of_every_type(quota_type: QuotaType) -> tuple[Attribute, ...]:
    """What each of the four quota types has."""
    usage = USAGE[quota_type]
    of_us = functools.partial(_of_entities, quota_type, brokers_have_it=False)
    return (
        _of_entities(
            quota_type, usage.attribute, Meaning.USAGE, usage.family, usage.divisor
        ),
        _of_entities(
            quota_type,
            "throttle-time",
            Meaning.THROTTLE_TIME,
            catalog.THROTTLE_TIME_SECONDS,
            MILLISECONDS,
        ),
        of_us(
            "throttle-time-total",
            Meaning.THROTTLED_SECONDS,
            catalog.THROTTLED_SECONDS,
            MILLISECONDS,
        ),
        of_us("throttle-count", Meaning.THROTTLED_REQUESTS, catalog.THROTTLED_REQUESTS),
        Attribute(
            type=quota_type.group,
            name="queue-size",
            meaning=Meaning.DELAY_QUEUE_SIZE,
            quota_type=quota_type,
            family=catalog.DELAY_QUEUE_SIZE,
        ),
    )


def _of_entities(
    quota_type: QuotaType,
    name: str,
    meaning: Meaning,
    family: catalog.Family,
    divisor: float = 1.0,
    *,
    brokers_have_it: bool = True,
) -> Attribute:
    return Attribute(
        type=quota_type.group,
        free=("user", "client-id"),
        name=name,
        meaning=meaning,
        quota_type=quota_type,
        divisor=divisor,
        family=family,
        brokers_have_it=brokers_have_it,
    )


_KIP_1373: Final = (QuotaType.PRODUCE, QuotaType.FETCH, QuotaType.REQUEST)
"""The quota types whose utilisation a broker tells itself, if it does at all (KIP-1373)."""

CLIENT_QUOTAS: Final = (
    *(row for quota_type in QuotaType for row in _of_every_type(quota_type)),
    *(
        _of_entities(
            quota_type,
            "quota-utilization",
            Meaning.REPORTED_UTILIZATION,
            catalog.REPORTED_UTILIZATION,
            PERCENT,
        )
        for quota_type in _KIP_1373
    ),
    _of_entities(
        QuotaType.CONTROLLER_MUTATION,
        "tokens",
        Meaning.TOKENS,
        catalog.CONTROLLER_MUTATION_TOKENS,
    ),
    _of_entities(
        QuotaType.CONTROLLER_MUTATION,
        "rejection-count",
        Meaning.REJECTED_MUTATIONS,
        catalog.REJECTED_MUTATIONS,
        brokers_have_it=False,
    ),
)
