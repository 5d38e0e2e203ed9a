"""
What a source reads, and which attribute of which MBean means what: one table for all sources.

Names are parsed once; then a read is only an array of numbers, which the table makes base units of.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final, Self

from quotascope.metrics import QuotaType, ReplicationQuotaType, RLMQuotaType, catalog

SERVER: Final = "kafka.server"
STRIMZI_QUOTAS: Final = "io.strimzi.kafka.quotas"
"""The domain of Strimzi's kafka-quotas-plugin, a custom quota callback that reports its limits."""
MILLISECONDS: Final = 1000.0
NANOSECONDS: Final = 1e9
PERCENT: Final = 100.0


@dataclass(frozen=True, slots=True)
class Bean:
    """
    The name of one MBean, in whichever dialect it was written.

    Property values are unquoted, but otherwise as Kafka wrote them: ``user`` is
    still percent-encoded.
    """

    domain: str
    """JMX domain, such as ``kafka.server``."""
    properties: tuple[tuple[str, str], ...]
    """Key properties sorted by key, ``type`` included."""

    @classmethod
    def of(cls, domain: str, properties: Mapping[str, str]) -> Bean:
        """
        Make a bean from properties in any order.

        Halves of surrogate pairs, which no UTF-8 text can hold, become question marks.
        """
        pairs = (
            (key, value) if value.isascii() else (key, value.encode(errors="replace").decode())
            for key, value in properties.items()
        )
        return cls(domain, tuple(sorted(pairs)))

    def get(self, key: str) -> str | None:
        """The value of one key property, or None when the name has none."""
        return next((value for name, value in self.properties if name == key), None)


class Meaning(Enum):
    """What a number stands for, and how the family that shows it has it."""

    family: catalog.Family | None
    """None where no family shows it as it is, or the quota type says which one."""
    divisor: float
    """Kafka's unit divided by this is ours; the sums of means and counts are made later."""
    percentile: str
    """The label ``percentile``; empty for what is none."""

    def __new__(cls, family: catalog.Family | None = None, divisor: float = 1.0, percentile: str = "") -> Self:
        """Number the members, so that two with the same family are two."""
        meaning = object.__new__(cls)
        meaning._value_ = len(cls.__members__)
        meaning.family, meaning.divisor, meaning.percentile = family, divisor, percentile
        return meaning

    USAGE = ()
    THROTTLE_TIME = catalog.THROTTLE_TIME_SECONDS, MILLISECONDS
    TOKENS = catalog.CONTROLLER_MUTATION_TOKENS
    THROTTLED_SECONDS = catalog.THROTTLED_SECONDS, MILLISECONDS
    THROTTLED_REQUESTS = catalog.THROTTLED_REQUESTS
    REFUSED_MUTATIONS = catalog.REFUSED_MUTATIONS
    REPORTED_UTILIZATION = catalog.REPORTED_UTILIZATION, PERCENT
    DELAY_QUEUE_SIZE = catalog.DELAY_QUEUE_SIZE
    EXEMPT_REQUEST_TIME = catalog.EXEMPT_REQUEST_THREADS, PERCENT
    REQUEST_THROTTLE_MEAN = catalog.REQUEST_THROTTLED_SECONDS
    REQUEST_THROTTLE_COUNT = catalog.REQUEST_THROTTLED_SECONDS  # noqa: PIE796 - numbered
    THROTTLING_ERRORS = catalog.THROTTLING_ERRORS
    ACTIVE_CONTROLLER = ()  # noqa: PIE796 - numbered
    STARTED_AT = None, MILLISECONDS
    CONTROLLER_EVENT_MEAN = catalog.CONTROLLER_EVENT_QUEUE_SECONDS
    CONTROLLER_EVENT_COUNT = catalog.CONTROLLER_EVENTS
    BROKER_CONNECTIONS = catalog.BROKER_CONNECTIONS_PER_SECOND
    LISTENER_CONNECTIONS = catalog.LISTENER_CONNECTIONS_PER_SECOND
    LISTENER_CONNECTION_THROTTLE = catalog.LISTENER_CONNECTION_THROTTLE_SECONDS, MILLISECONDS
    IP_CONNECTIONS = catalog.IP_CONNECTIONS_PER_SECOND
    IP_CONNECTION_THROTTLE = catalog.IP_CONNECTION_THROTTLE_SECONDS, MILLISECONDS
    REPLICATION = catalog.REPLICATION_BYTES_PER_SECOND
    REMOTE_STORAGE = catalog.REMOTE_STORAGE_BYTES_PER_SECOND
    REMOTE_STORAGE_THROTTLE = catalog.REMOTE_STORAGE_THROTTLE_SECONDS, MILLISECONDS
    CALLBACK_LIMIT = ()  # noqa: PIE796 - numbered
    CALLBACK_FACTOR = catalog.CALLBACK_THROTTLE_FACTOR
    HANDLER_IDLE = catalog.REQUEST_HANDLER_IDLE
    HANDLER_IDLE_TIME = catalog.REQUEST_HANDLER_IDLE_SECONDS, NANOSECONDS
    POOL_IDLE = catalog.REQUEST_HANDLER_POOL_IDLE
    POOL_IDLE_TIME = catalog.REQUEST_HANDLER_POOL_IDLE_SECONDS, NANOSECONDS
    NETWORK_IDLE = catalog.NETWORK_PROCESSOR_IDLE
    CONTROLLER_IDLE = catalog.CONTROLLER_EVENT_IDLE
    REQUEST_QUEUE_SIZE = catalog.REQUEST_QUEUE_SIZE
    REQUEST_QUEUE_P50 = catalog.REQUEST_QUEUE_SECONDS, MILLISECONDS, "50"
    REQUEST_QUEUE_P95 = catalog.REQUEST_QUEUE_SECONDS, MILLISECONDS, "95"
    REQUEST_QUEUE_P99 = catalog.REQUEST_QUEUE_SECONDS, MILLISECONDS, "99"


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
    part: str = ""
    """The value of the label ``direction``, ``pool`` or ``percentile``, which is in no free key property."""
    divisor: float = 1.0
    """Kafka's unit divided by this is ours."""
    family: catalog.Family | None = None
    """The family that shows it, None when it only serves others."""
    brokers_have_it: bool = True
    """False when only our own engine counts it."""
    optional: bool = False
    """Whether an agent may refuse it, whose policy was written for the quotas alone."""

    @property
    def pattern(self) -> str:
        """The pattern of the MBeans that have it; it may match others as well. An optional one that stands alone has its name, which the JVM need not look for."""
        fixed = "".join(f",{key}={value}" for key, value in self.fixed.items())
        rest = "" if self.optional and not self.free else ",*"
        return f"{self.domain}:type={self.type}{fixed}{rest}"

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
class BeanColumn:
    """One attribute of one bean: the place of one number in a table."""

    bean: Bean
    attribute: str
    mapped: Attribute | None = field(default=None, compare=False, repr=False)
    """What it means; None as long as it was not looked up."""


@dataclass(frozen=True, slots=True, eq=False)
class BeanLayout:
    """
    The columns of a table, each of them once.

    A source returns the same object as long as it sees the same beans, so whatever was
    derived from a layout may be kept under its identity. Columns that two layouts of one
    source share are the same objects.
    """

    columns: tuple[BeanColumn, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BeanTable:
    """One read of one broker or controller: a number for each column."""

    node_id: str
    """Node id of the broker or controller that answered."""
    layout: BeanLayout
    values: array[float] = field(repr=False)
    """float64, one for each column; NaN where the broker says NaN or null."""
    remark: str | None = None
    """What is wrong with the answer although it could be read, and what to do."""
    hint: str | None = None
    """What to check if there are quotas, because the answer had no series of any entity."""


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
        "byte-rate", 1.0, catalog.PRODUCE_BYTES_PER_SECOND, catalog.CALLBACK_PRODUCE_BYTES_PER_SECOND
    ),
    QuotaType.FETCH: UsageAttribute(
        "byte-rate", 1.0, catalog.FETCH_BYTES_PER_SECOND, catalog.CALLBACK_FETCH_BYTES_PER_SECOND
    ),
    QuotaType.REQUEST: UsageAttribute(
        "request-time", PERCENT, catalog.REQUEST_THREADS, catalog.CALLBACK_REQUEST_THREADS
    ),
    QuotaType.CONTROLLER_MUTATION: UsageAttribute(
        "mutation-rate", 1.0, catalog.CONTROLLER_MUTATIONS_PER_SECOND, catalog.CALLBACK_CONTROLLER_MUTATIONS_PER_SECOND
    ),
}
PERCENTILES: Final = {each: each.percentile for each in Meaning if each.percentile}
THROTTLING_ERROR: Final = "THROTTLING_QUOTA_EXCEEDED"
"""Error 89 (KIP-599)."""


def in_base_unit(quota_type: QuotaType, bound: float) -> float:
    """A bound in our unit: request time in threads instead of percent, all others as they are."""
    return bound / USAGE[quota_type].divisor


def _of_type(kind: str, name: str, meaning: Meaning) -> Attribute:
    """An attribute of beans of this type, in the family and unit of its meaning."""
    return Attribute(type=kind, name=name, meaning=meaning, family=meaning.family, divisor=meaning.divisor)


def _of_entities(kind: QuotaType, name: str, meaning: Meaning) -> Attribute:
    """An attribute that each user and client-id has."""
    attribute = _of_type(kind.group, name, meaning)
    return replace(attribute, quota_type=kind, free=("user", "client-id"))


def _client_quotas() -> Iterator[Attribute]:
    """``ClientQuotaManager``, ``ClientRequestQuotaManager`` and ``ControllerMutationQuotaManager``."""
    for kind, usage in USAGE.items():
        used = _of_entities(kind, usage.attribute, Meaning.USAGE)
        yield replace(used, family=usage.family, divisor=usage.divisor)
        yield _of_entities(kind, "throttle-time", Meaning.THROTTLE_TIME)
        for name, meaning in (
            ("throttle-time-total", Meaning.THROTTLED_SECONDS),
            ("throttle-count", Meaning.THROTTLED_REQUESTS),
        ):
            yield replace(_of_entities(kind, name, meaning), brokers_have_it=False)
        queue = _of_type(kind.group, "queue-size", Meaning.DELAY_QUEUE_SIZE)
        yield replace(queue, quota_type=kind)
    # which brokers report since KIP-1373, if they do at all
    for kind in (QuotaType.PRODUCE, QuotaType.FETCH, QuotaType.REQUEST):
        yield _of_entities(kind, "quota-utilization", Meaning.REPORTED_UTILIZATION)
    mutation = QuotaType.CONTROLLER_MUTATION
    yield _of_entities(mutation, "tokens", Meaning.TOKENS)
    refused = _of_entities(mutation, "refusal-count", Meaning.REFUSED_MUTATIONS)
    yield replace(refused, brokers_have_it=False)
    # quotas of a custom callback (client.quota.callback.class, KIP-257): the same attributes under tags that it chooses
    for kind, usage in USAGE.items():
        used = _of_entities(kind, usage.attribute, Meaning.USAGE)
        family = usage.callback_family
        yield replace(used, family=family, divisor=usage.divisor, open=True)
        throttle = _of_entities(kind, "throttle-time", Meaning.THROTTLE_TIME)
        family = catalog.CALLBACK_THROTTLE_TIME_SECONDS
        yield replace(throttle, family=family, open=True)


def _of_node(
    beans: str, name: str, meaning: Meaning, *free: str, part: str = "", required: bool = True, optional: bool = False
) -> Attribute:
    """An attribute of ``beans`` that are about a node, such as ``kafka.server:type=Request``, with the key properties ``free`` besides."""
    domain, _, properties = beans.partition(":")
    fixed = dict(pair.split("=") for pair in properties.split(","))
    return replace(
        _of_type(fixed.pop("type"), name, meaning),
        domain=domain,
        fixed=fixed,
        free=free,
        part=part,
        required=required,
        optional=optional,
    )


_REQUESTS: Final = "kafka.network:type=RequestMetrics"
_EVENTS: Final = "kafka.controller:type=ControllerEventManager"
_SOCKETS: Final = f"{SERVER}:type=socket-server-metrics"
_HANDLERS: Final = f"{SERVER}:type=KafkaRequestHandlerPool"
_ERRORS: Final = f"{_REQUESTS},name=ErrorsPerSec,error={THROTTLING_ERROR}"

_LOAD: Final = (
    # KafkaRequestHandlerPool: one bean by pool since KIP-1207. The meter of a pool counts idle nanoseconds, shared among its
    # threads, so that its rate is a ratio in spite of "percent".
    *(
        _of_node(
            f"{_HANDLERS},name={pool.title()}RequestHandlerAvgIdlePercent", name, meaning, part=pool, optional=True
        )
        for pool, ratio, time in (
            ("", Meaning.HANDLER_IDLE, Meaning.HANDLER_IDLE_TIME),
            ("broker", Meaning.POOL_IDLE, Meaning.POOL_IDLE_TIME),
            ("controller", Meaning.POOL_IDLE, Meaning.POOL_IDLE_TIME),
        )
        for name, meaning in (("OneMinuteRate", ratio), ("Count", time))
    ),
    # of SocketServer, RequestChannel and RequestMetrics, and of QuorumControllerMetrics (KIP-1190)
    _of_node(
        "kafka.network:type=SocketServer,name=NetworkProcessorAvgIdlePercent",
        "Value",
        Meaning.NETWORK_IDLE,
        optional=True,
    ),
    _of_node(
        "kafka.network:type=RequestChannel,name=RequestQueueSize", "Value", Meaning.REQUEST_QUEUE_SIZE, optional=True
    ),
    _of_node(f"{_EVENTS},name=AvgIdleRatio", "Value", Meaning.CONTROLLER_IDLE, optional=True),
    *(
        _of_node(
            f"{_REQUESTS},name=RequestQueueTimeMs",
            f"{percentile}thPercentile",
            meaning,
            "request",
            part=percentile,
            optional=True,
        )
        for meaning, percentile in PERCENTILES.items()
    ),
)
LOAD_MEANINGS: Final = {each.meaning for each in _LOAD} | {Meaning.REQUEST_THROTTLE_COUNT}
"""Of the load of a node; without the count of responses, a percentile of 0 may be that of a request that never came."""

ATTRIBUTES: Final = (
    *_client_quotas(),
    # RequestChannelMetrics, RequestMetrics, QuorumControllerMetrics and AppInfoParser
    _of_node(f"{SERVER}:type=Request", "exempt-request-time", Meaning.EXEMPT_REQUEST_TIME),
    _of_node(f"{_REQUESTS},name=ThrottleTimeMs", "Mean", Meaning.REQUEST_THROTTLE_MEAN, "request"),
    _of_node(f"{_REQUESTS},name=ThrottleTimeMs", "Count", Meaning.REQUEST_THROTTLE_COUNT, "request"),
    _of_node(_ERRORS, "Count", Meaning.THROTTLING_ERRORS, "request"),
    _of_node("kafka.controller:type=KafkaController,name=ActiveControllerCount", "Value", Meaning.ACTIVE_CONTROLLER),
    _of_node(f"{_EVENTS},name=EventQueueTimeMs", "Mean", Meaning.CONTROLLER_EVENT_MEAN),
    _of_node(f"{_EVENTS},name=EventQueueTimeMs", "Count", Meaning.CONTROLLER_EVENT_COUNT),
    _of_node(f"{SERVER}:type=app-info", "StartTimeMs", Meaning.STARTED_AT, "id"),
    # ConnectionQuotas
    _of_node(_SOCKETS, "broker-connection-accept-rate", Meaning.BROKER_CONNECTIONS),
    _of_node(_SOCKETS, "connection-accept-rate", Meaning.LISTENER_CONNECTIONS, "listener"),
    _of_node(_SOCKETS, "connection-accept-rate", Meaning.IP_CONNECTIONS, "ip"),
    _of_node(_SOCKETS, "connection-accept-throttle-time", Meaning.LISTENER_CONNECTION_THROTTLE, "listener"),
    _of_node(_SOCKETS, "ip-connection-accept-throttle-time", Meaning.IP_CONNECTION_THROTTLE, "listener"),
    # ReplicationQuotaManager, RLMQuotaManager and RLMQuotaMetrics
    *(
        _of_node(f"{SERVER}:type={each.value}", "byte-rate", Meaning.REPLICATION, part=each.label)
        for each in ReplicationQuotaType
    ),
    *(
        _of_node(f"{SERVER}:type={each.value}", "byte-rate", Meaning.REMOTE_STORAGE, part=each.label)
        for each in RLMQuotaType
    ),
    *(
        _of_node(
            f"{SERVER}:type=RemoteLogManager",
            f"remote-{each.label}-throttle-time-avg",
            Meaning.REMOTE_STORAGE_THROTTLE,
            part=each.label,
        )
        for each in RLMQuotaType
    ),
    # StaticQuotaCallback and PolicyBasedThrottle of Strimzi's kafka-quotas-plugin
    _of_node(f"{STRIMZI_QUOTAS}:type=StaticQuotaCallback", "Value", Meaning.CALLBACK_LIMIT, "name", optional=True),
    _of_node(
        f"{STRIMZI_QUOTAS}:type=ThrottleFactor,name=ThrottleFactor",
        "Value",
        Meaning.CALLBACK_FACTOR,
        "observingBrokerId",
        required=False,
        optional=True,
    ),
    *_LOAD,
)
"""All that sources ask for, and all that they return."""

_BY_PLACE: Final[dict[tuple[str, str, str], list[Attribute]]] = {}
for _attribute in ATTRIBUTES:
    _BY_PLACE.setdefault((_attribute.domain, _attribute.type, _attribute.name), []).append(_attribute)


def attribute_of(column: BeanColumn) -> Attribute | None:
    """What a column means, None for one that is not used. Columns from ``wanted`` have it already."""
    if column.mapped is not None:
        return column.mapped
    bean = column.bean
    candidates = _BY_PLACE.get((bean.domain, bean.get("type") or "", column.attribute))
    return next((found for found in candidates or () if found.admits(bean)), None)


def wanted(column: BeanColumn) -> BeanColumn | None:
    """The column with what it means, None for one that is not used."""
    found = attribute_of(column)
    return None if found is None else BeanColumn(column.bean, column.attribute, found)
