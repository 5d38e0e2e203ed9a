"""Which attribute of which MBean means what, and how it becomes a base unit: one table for all sources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from quotascope.metrics import QuotaType, ReplicationQuotaType, RLMQuotaType, catalog

from .beans import Bean, BeanColumn

SERVER: Final = "kafka.server"
MILLISECONDS: Final = 1000.0
PERCENT: Final = 100.0


class Meaning(Enum):
    """What a number stands for."""

    USAGE = auto()
    THROTTLE_TIME = auto()
    TOKENS = auto()
    THROTTLED_SECONDS = auto()
    THROTTLED_REQUESTS = auto()
    REJECTED_MUTATIONS = auto()
    REPORTED_UTILIZATION = auto()
    DELAY_QUEUE_SIZE = auto()
    EXEMPT_REQUEST_TIME = auto()
    REQUEST_THROTTLE_MEAN = auto()
    REQUEST_THROTTLE_COUNT = auto()
    THROTTLING_ERRORS = auto()
    ACTIVE_CONTROLLER = auto()
    STARTED_AT = auto()
    CONTROLLER_EVENT_MEAN = auto()
    CONTROLLER_EVENT_COUNT = auto()
    BROKER_CONNECTIONS = auto()
    LISTENER_CONNECTIONS = auto()
    LISTENER_CONNECTION_THROTTLE = auto()
    IP_CONNECTIONS = auto()
    IP_CONNECTION_THROTTLE = auto()
    REPLICATION = auto()
    REMOTE_STORAGE = auto()
    REMOTE_STORAGE_THROTTLE = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """One attribute of a kind of MBean: what it means, and how it becomes a base unit."""

    domain: str = SERVER
    type: str
    """The key property ``type``; for quotas also the metric group."""
    fixed: Mapping[str, str] = field(default_factory=dict)
    """Further key properties that must have exactly these values."""
    free: tuple[str, ...] = ()
    """Key properties that distinguish one bean from another."""
    required: bool = False
    """Whether every free key property must be there."""
    open: bool = False
    """Whether it is about beans with further key properties of any name: tags of a custom quota callback (KIP-257)."""
    name: str
    """The attribute's name."""
    meaning: Meaning
    quota_type: QuotaType | None = None
    direction: str = ""
    """The label ``direction``, which is in no key property."""
    divisor: float = 1.0
    """Kafka's unit divided by this is ours."""
    family: catalog.Family | None = None
    """The family that shows it, None when it only serves others."""
    brokers_have_it: bool = True
    """False when only our own engine counts it."""

    @property
    def pattern(self) -> str:
        """The pattern of the MBeans that have it; it may match others as well."""
        fixed = "".join(f",{key}={value}" for key, value in self.fixed.items())
        return f"{self.domain}:type={self.type}{fixed},*"

    def admits(self, bean: Bean) -> bool:
        """Whether a bean of the right domain and type is meant, by its other key properties."""
        rest = {key: value for key, value in bean.properties if key != "type"}
        for key, value in self.fixed.items():
            if rest.pop(key, None) != value:
                return False
        if self.open:
            return not rest.keys() <= set(self.free)
        if self.required:
            return rest.keys() == set(self.free)
        return rest.keys() <= set(self.free)


@dataclass(frozen=True, slots=True)
class UsageAttribute:
    """What a quota type limits."""

    attribute: str
    divisor: float
    """Kafka's unit of usage and limit alike, divided by this, is ours."""
    family: catalog.Family
    callback_family: catalog.Family
    """The same for entities of a custom quota callback."""


USAGE: Final = {
    QuotaType.PRODUCE: UsageAttribute(
        "byte-rate",
        1.0,
        catalog.PRODUCE_BYTES_PER_SECOND,
        catalog.CALLBACK_PRODUCE_BYTES_PER_SECOND,
    ),
    QuotaType.FETCH: UsageAttribute(
        "byte-rate",
        1.0,
        catalog.FETCH_BYTES_PER_SECOND,
        catalog.CALLBACK_FETCH_BYTES_PER_SECOND,
    ),
    QuotaType.REQUEST: UsageAttribute(
        "request-time",
        PERCENT,
        catalog.REQUEST_THREADS,
        catalog.CALLBACK_REQUEST_THREADS,
    ),
    QuotaType.CONTROLLER_MUTATION: UsageAttribute(
        "mutation-rate",
        1.0,
        catalog.CONTROLLER_MUTATIONS_PER_SECOND,
        catalog.CALLBACK_CONTROLLER_MUTATIONS_PER_SECOND,
    ),
}


def _of_entities(  # noqa: PLR0913 - the columns of a table
    quota_type: QuotaType,
    name: str,
    meaning: Meaning,
    family: catalog.Family,
    divisor: float = 1.0,
    *,
    brokers_have_it: bool = True,
    custom: bool = False,
) -> Attribute:
    """An attribute that each user and client id has; ``custom`` under the tags of a custom quota callback."""
    return Attribute(
        type=quota_type.group,
        free=("user", "client-id"),
        open=custom,
        name=name,
        meaning=meaning,
        quota_type=quota_type,
        divisor=divisor,
        family=family,
        brokers_have_it=brokers_have_it,
    )


def _client_quotas() -> Iterator[Attribute]:
    """``ClientQuotaManager``, ``ClientRequestQuotaManager`` and ``ControllerMutationQuotaManager``."""
    for kind, usage in USAGE.items():
        yield _of_entities(
            kind, usage.attribute, Meaning.USAGE, usage.family, usage.divisor
        )
        yield _of_entities(
            kind,
            "throttle-time",
            Meaning.THROTTLE_TIME,
            catalog.THROTTLE_TIME_SECONDS,
            MILLISECONDS,
        )
        yield _of_entities(
            kind,
            "throttle-time-total",
            Meaning.THROTTLED_SECONDS,
            catalog.THROTTLED_SECONDS,
            MILLISECONDS,
            brokers_have_it=False,
        )
        yield _of_entities(
            kind,
            "throttle-count",
            Meaning.THROTTLED_REQUESTS,
            catalog.THROTTLED_REQUESTS,
            brokers_have_it=False,
        )
        yield Attribute(
            type=kind.group,
            name="queue-size",
            meaning=Meaning.DELAY_QUEUE_SIZE,
            quota_type=kind,
            family=catalog.DELAY_QUEUE_SIZE,
        )
    # which brokers report since KIP-1373, if they do at all
    for kind in (QuotaType.PRODUCE, QuotaType.FETCH, QuotaType.REQUEST):
        yield _of_entities(
            kind,
            "quota-utilization",
            Meaning.REPORTED_UTILIZATION,
            catalog.REPORTED_UTILIZATION,
            PERCENT,
        )
    yield _of_entities(
        QuotaType.CONTROLLER_MUTATION,
        "tokens",
        Meaning.TOKENS,
        catalog.CONTROLLER_MUTATION_TOKENS,
    )
    yield _of_entities(
        QuotaType.CONTROLLER_MUTATION,
        "rejection-count",
        Meaning.REJECTED_MUTATIONS,
        catalog.REJECTED_MUTATIONS,
        brokers_have_it=False,
    )
    # quotas of a custom callback (client.quota.callback.class, KIP-257): the same attributes under tags that it chooses
    for kind, usage in USAGE.items():
        yield _of_entities(
            kind,
            usage.attribute,
            Meaning.USAGE,
            usage.callback_family,
            usage.divisor,
            custom=True,
        )
        yield _of_entities(
            kind,
            "throttle-time",
            Meaning.THROTTLE_TIME,
            catalog.CALLBACK_THROTTLE_TIME_SECONDS,
            MILLISECONDS,
            custom=True,
        )


THROTTLING_ERROR: Final = "THROTTLING_QUOTA_EXCEEDED"
"""Error 89 (KIP-599)."""


def _of_requests(
    name: str, error: str | None, attribute: str, meaning: Meaning
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


def _of_controller(
    kind: str,
    bean: str,
    attribute: str,
    meaning: Meaning,
    family: catalog.Family | None,
) -> Attribute:
    return Attribute(
        domain="kafka.controller",
        type=kind,
        fixed={"name": bean},
        name=attribute,
        meaning=meaning,
        family=family,
    )


_NODE: Final = (  # Kafka's RequestChannelMetrics, QuorumControllerMetrics and AppInfoParser
    Attribute(
        type=QuotaType.REQUEST.group,
        name="exempt-request-time",
        meaning=Meaning.EXEMPT_REQUEST_TIME,
        divisor=PERCENT,
        family=catalog.EXEMPT_REQUEST_THREADS,
    ),
    _of_requests("ThrottleTimeMs", None, "Mean", Meaning.REQUEST_THROTTLE_MEAN),
    _of_requests("ThrottleTimeMs", None, "Count", Meaning.REQUEST_THROTTLE_COUNT),
    _of_requests("ErrorsPerSec", THROTTLING_ERROR, "Count", Meaning.THROTTLING_ERRORS),
    _of_controller(
        "KafkaController",
        "ActiveControllerCount",
        "Value",
        Meaning.ACTIVE_CONTROLLER,
        None,
    ),
    _of_controller(
        "ControllerEventManager",
        "EventQueueTimeMs",
        "Mean",
        Meaning.CONTROLLER_EVENT_MEAN,
        catalog.CONTROLLER_EVENT_QUEUE_SECONDS,
    ),
    _of_controller(
        "ControllerEventManager",
        "EventQueueTimeMs",
        "Count",
        Meaning.CONTROLLER_EVENT_COUNT,
        catalog.CONTROLLER_EVENTS,
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


def _of_connections(
    name: str,
    meaning: Meaning,
    family: catalog.Family,
    scope: str | None = None,
    divisor: float = 1.0,
) -> Attribute:
    return Attribute(
        type="socket-server-metrics",
        free=() if scope is None else (scope,),
        required=True,
        name=name,
        meaning=meaning,
        divisor=divisor,
        family=family,
    )


_CONNECTIONS: Final = (  # Kafka's ConnectionQuotas
    _of_connections(
        "broker-connection-accept-rate",
        Meaning.BROKER_CONNECTIONS,
        catalog.BROKER_CONNECTIONS_PER_SECOND,
    ),
    _of_connections(
        "connection-accept-rate",
        Meaning.LISTENER_CONNECTIONS,
        catalog.LISTENER_CONNECTIONS_PER_SECOND,
        "listener",
    ),
    _of_connections(
        "connection-accept-rate",
        Meaning.IP_CONNECTIONS,
        catalog.IP_CONNECTIONS_PER_SECOND,
        "ip",
    ),
    _of_connections(
        "connection-accept-throttle-time",
        Meaning.LISTENER_CONNECTION_THROTTLE,
        catalog.LISTENER_CONNECTION_THROTTLE_SECONDS,
        "listener",
        MILLISECONDS,
    ),
    _of_connections(
        "ip-connection-accept-throttle-time",
        Meaning.IP_CONNECTION_THROTTLE,
        catalog.IP_CONNECTION_THROTTLE_SECONDS,
        "listener",
        MILLISECONDS,
    ),
)


def _transfers() -> Iterator[Attribute]:
    """``ReplicationQuotaManager``, ``RLMQuotaManager`` and ``RLMQuotaMetrics``."""
    for replica in ReplicationQuotaType:
        yield Attribute(
            type=replica.value,
            name="byte-rate",
            meaning=Meaning.REPLICATION,
            direction=replica.label,
            family=catalog.REPLICATION_BYTES_PER_SECOND,
        )
    for remote in RLMQuotaType:
        yield Attribute(
            type=remote.value,
            name="byte-rate",
            meaning=Meaning.REMOTE_STORAGE,
            direction=remote.label,
            family=catalog.REMOTE_STORAGE_BYTES_PER_SECOND,
        )
    for remote in RLMQuotaType:
        yield Attribute(
            type="RemoteLogManager",
            name=f"remote-{remote.label}-throttle-time-avg",
            meaning=Meaning.REMOTE_STORAGE_THROTTLE,
            direction=remote.label,
            divisor=MILLISECONDS,
            family=catalog.REMOTE_STORAGE_THROTTLE_SECONDS,
        )


ATTRIBUTES: Final = (*_client_quotas(), *_NODE, *_CONNECTIONS, *_transfers())
"""All that sources ask for, and all that they return."""

_BY_PLACE: Final[dict[tuple[str, str, str], list[Attribute]]] = {}
for _attribute in ATTRIBUTES:
    _BY_PLACE.setdefault(
        (_attribute.domain, _attribute.type, _attribute.name), []
    ).append(_attribute)


def attribute_of(column: BeanColumn) -> Attribute | None:
    """What a column means, None for one that is not used. Columns from ``wanted`` have it already."""
    if isinstance(column.mapped, Attribute):
        return column.mapped
    bean = column.bean
    candidates = _BY_PLACE.get((bean.domain, bean.get("type") or "", column.attribute))
    return next((found for found in candidates or () if found.admits(bean)), None)


def wanted(column: BeanColumn) -> BeanColumn | None:
    """The column with what it means, None for one that is not used."""
    found = attribute_of(column)
    return None if found is None else BeanColumn(column.bean, column.attribute, found)
