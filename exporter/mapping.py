"""
Which attribute of which MBean means what: one table for every source.

Attributes of quota groups come from Kafka's ``ClientQuotaManager``,
``ClientRequestQuotaManager`` and ``ControllerMutationQuotaManager``, the others from
``RequestChannelMetrics``, ``QuorumControllerMetrics`` and ``AppInfoParser``.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from quotascope.metrics import QuotaType, catalog

from .beans import Bean, Column

SERVER: Final = "kafka.server"
THROTTLING_ERROR: Final = "THROTTLING_QUOTA_EXCEEDED"
"""Error 89 (KIP-599)."""
MILLISECONDS: Final = 1000.0
PERCENT: Final = 100.0


class Meaning(Enum):
    """What a number says."""

    USAGE = auto()
    THROTTLE_TIME = auto()
    TOKENS = auto()
    THROTTLED_SECONDS = auto()
    THROTTLED_REQUESTS = auto()
    REJECTED_MUTATIONS = auto()
    DELAY_QUEUE_SIZE = auto()
    EXEMPT_REQUEST_TIME = auto()
    REQUEST_THROTTLE_MEAN = auto()
    REQUEST_THROTTLE_COUNT = auto()
    THROTTLING_ERRORS = auto()
    ACTIVE_CONTROLLER = auto()
    STARTED_AT = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """One attribute of a kind of MBean: what it means, and how it becomes a base unit."""

    domain: str = SERVER
    type: str
    """The key property ``type``; for quotas also the metric group."""
    fixed: Mapping[str, str] = field(default_factory=dict)
    """Further key properties with a value that must be just so."""
    free: tuple[str, ...] = ()
    """Key properties that tell one bean from another."""
    required: bool = False
    """Whether every free key property must be there."""
    name: str
    """The attribute's name."""
    meaning: Meaning
    quota_type: QuotaType | None = None
    divisor: float = 1.0
    """Kafka's unit divided by this is ours."""
    family: catalog.Family | None = None
    """The family that shows it, None when it only serves others."""
    brokers_have_it: bool = True
    """False when only our own engine counts it."""

    def admits(self, bean: Bean) -> bool:
        """Whether a bean of the right domain and type is meant, by its other key properties."""
        rest = {key: value for key, value in bean.properties if key != "type"}
        for key, value in self.fixed.items():
            if rest.pop(key, None) != value:
                return False
        if self.required:
            return rest.keys() == set(self.free)
        return rest.keys() <= set(self.free)


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


def _of_requests(
    name: str, attribute: str, meaning: Meaning, error: str | None = None
) -> Attribute:
    return Attribute(
        domain="kafka.network",
        type="RequestMetrics",
        fixed={"name": name} if error is None else {"name": name, "error": error},
        free=("request",),
        required=True,
        name=attribute,
        meaning=meaning,
        family=catalog.REQUEST_THROTTLED_SECONDS
        if error is None
        else catalog.THROTTLING_ERRORS,
    )


ATTRIBUTES: Final[tuple[Attribute, ...]] = (
    *(row for quota_type in QuotaType for row in _of_every_type(quota_type)),
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
    Attribute(
        type=QuotaType.REQUEST.group,
        name="exempt-request-time",
        meaning=Meaning.EXEMPT_REQUEST_TIME,
        divisor=PERCENT,
        family=catalog.EXEMPT_REQUEST_THREADS,
    ),
    _of_requests("ThrottleTimeMs", "Mean", Meaning.REQUEST_THROTTLE_MEAN),
    _of_requests("ThrottleTimeMs", "Count", Meaning.REQUEST_THROTTLE_COUNT),
    _of_requests("ErrorsPerSec", "Count", Meaning.THROTTLING_ERRORS, THROTTLING_ERROR),
    Attribute(
        domain="kafka.controller",
        type="KafkaController",
        fixed={"name": "ActiveControllerCount"},
        name="Value",
        meaning=Meaning.ACTIVE_CONTROLLER,
    ),
    Attribute(
        type="app-info",
        free=("id",),
        required=True,
        name="StartTimeMs",
        meaning=Meaning.STARTED_AT,
        divisor=MILLISECONDS,
    ),
)
"""All that is read. A source asks for these and hands over nothing else."""

_BY_PLACE: Final[dict[tuple[str, str, str], list[Attribute]]] = {}
for _attribute in ATTRIBUTES:
    _BY_PLACE.setdefault(
        (_attribute.domain, _attribute.type, _attribute.name), []
    ).append(_attribute)


def attribute_of(column: Column) -> Attribute | None:
    """What a column means, None when it is of no use."""
    bean = column.bean
    candidates = _BY_PLACE.get((bean.domain, bean.get("type") or "", column.attribute))
    return next((found for found in candidates or () if found.admits(bean)), None)


def wanted(column: Column) -> Column | None:
    """The column, or None when it is of no use."""
    return None if attribute_of(column) is None else column
