"""
The attributes of MBeans that sources read, and their meanings: one table for all sources.

Names are parsed once; then a read is only an array of numbers, which the table makes base units of.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from itertools import compress, count
from operator import is_not
from typing import Final, NamedTuple

from quotascope.metrics import catalog
from quotascope.metrics.kafka.entities import QuotaType
from quotascope.metrics.kafka.node_quota_types import ReplicationQuotaType, RLMQuotaType

from .coverage import Coverage
from .names import property_known_as

SERVER: Final = "kafka.server"
STRIMZI_QUOTAS: Final = "io.strimzi.kafka.quotas"
"""The domain of Strimzi's kafka-quotas-plugin, a custom quota callback that reports its limits."""
MILLISECONDS: Final = 1000.0
NANOSECONDS: Final = 1e9
PERCENT: Final = 100.0
_BLOCK: Final = 64
"""Number of columns that are compared at once."""


class Bean(NamedTuple):
    """
    The name of one MBean, in whichever dialect it was written.

    Property values are unquoted, but otherwise as Kafka wrote them: ``user`` is
    still percent-encoded. A first page makes tens of thousands, so it is a tuple.
    """

    domain: str
    """JMX domain, such as ``kafka.server``."""
    properties: tuple[tuple[str, str], ...]
    """Key properties sorted by key, ``type`` included."""

    @classmethod
    def of(cls, domain: str, properties: Mapping[str, str]) -> Bean:
        """
        Make a bean from properties in any order.

        Halves of surrogate pairs, which no UTF-8 text can hold, become question marks; long names are cut (`known_as`).
        """
        pairs = (
            (key, property_known_as(key, value if value.isascii() else value.encode(errors="replace").decode()))
            for key, value in properties.items()
        )
        return cls(domain, tuple(sorted(pairs)))

    def get(self, key: str) -> str | None:
        """Return the value of one key property, or None when the name has none."""
        for name, value in self.properties:
            if name == key:
                return value
        return None


class Meaning(Enum):
    """
    Meanings of numbers that the exporter computes with.

    A number that is only passed on has its family as meaning.
    """

    USAGE = auto()
    THROTTLE_TIME = auto()
    TOKENS = auto()
    REPORTED_UTILIZATION = auto()
    DELAY_QUEUE_SIZE = auto()
    REQUEST_THROTTLE_MEAN = auto()
    REQUEST_THROTTLE_COUNT = auto()
    ACTIVE_CONTROLLER = auto()
    STARTED_AT = auto()
    CONTROLLER_EVENT_MEAN = auto()
    CONTROLLER_EVENT_COUNT = auto()
    CALLBACK_LIMIT = auto()


class Guard(Enum):
    """Reasons why a number of a node is not passed on as it is."""

    NAN_IS_ZERO = auto()
    """An average is NaN when there was nothing to average: no throttle."""
    ZERO_IS_UNKNOWN = auto()
    """A meter is 0 until it ticks, 5 s after the start of the node."""
    REQUESTS_ONLY = auto()
    """A percentile is 0 for a request that never came."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """One attribute of a kind of MBean, with its meaning and the divisor to a base unit."""

    domain: str = SERVER
    type: str
    """The key property ``type``; for quotas also the metric group."""
    fixed: Mapping[str, str] = field(default_factory=dict)
    """Further key properties that must have exactly these values."""
    free: tuple[str, ...] = ()
    """Key properties that distinguish one bean from another."""
    required: bool = False
    """True if every free key property must be there."""
    open: bool = False
    """True if it is about beans with further key properties of any name: tags of a custom quota callback (KIP-257)."""
    name: str
    """The attribute's name."""
    meaning: Meaning | catalog.Family
    quota_type: QuotaType | None = None
    part: str = ""
    """The value of the label ``direction``, ``pool`` or ``percentile``, which is in no free key property."""
    divisor: float = 1.0
    """Kafka's unit divided by this is ours."""
    family: catalog.Family | None = None
    """The family that shows it, None when it only serves others."""
    guard: Guard | None = None
    """The reason why a number of a node is not always passed on as it is."""
    optional: bool = False
    """True if an agent may refuse it, whose policy was written for the quotas alone."""

    @property
    def pattern(self) -> str:
        """
        The pattern of the MBeans that have it; it may match others as well.

        An optional attribute of a single bean has the bean's full name, so that the JVM need not search.
        """
        fixed = "".join(f",{key}={value}" for key, value in self.fixed.items())
        ending = "" if self.optional and not self.free else ",*"
        return f"{self.domain}:type={self.type}{fixed}{ending}"

    def admits(self, bean: Bean) -> bool:
        """Return whether a bean of the right domain and type is meant, by its other key properties."""
        properties = {key: value for key, value in bean.properties if key != "type"}
        for key, value in self.fixed.items():
            if properties.pop(key, None) != value:
                return False
        if self.open:
            return not properties.keys() <= set(self.free)
        if self.required:
            return properties.keys() == set(self.free)
        return properties.keys() <= set(self.free)


class BeanColumn(NamedTuple):
    """
    One attribute of one bean: the place of one number in a table.

    Two columns are equal whose bean and attribute are.
    """

    bean: Bean
    attribute: str
    mapped: Attribute | None = None
    """Its meaning; None as long as it was not looked up."""

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, BeanColumn) and self[:2] == other[:2])

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self[:2])


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
    """The fault of the answer although it could be read, and the remedy."""
    hint: str | None = None
    """Advice for an answer without a series of any entity although there are quotas."""
    coverage: Coverage = field(default=Coverage(), repr=False)
    """The coverage of this answer: the same object as long as the layout is the same. By default nothing is certain."""
    age_seconds: float = 0.0
    """Age of the numbers when they were read, where something else read the node before."""
    stale: bool = False
    """True if newer numbers should be there."""


PERCENTILES: Final = ("50", "95", "99")
"""Percentiles of the times that requests wait for a request handler."""
THROTTLING_ERROR: Final = "THROTTLING_QUOTA_EXCEEDED"
"""Error 89 (KIP-599)."""


def _of_entities(
    kind: QuotaType, name: str, meaning: Meaning, family: catalog.Family, divisor: float = 1.0
) -> Attribute:
    """Return an attribute that each user and client-id has."""
    return Attribute(
        type=kind.group,
        name=name,
        meaning=meaning,
        quota_type=kind,
        free=("user", "client-id"),
        family=family,
        divisor=divisor,
    )


def _client_quotas() -> Iterator[Attribute]:
    """Yield the attributes of Kafka's managers of client, request and controller mutation quotas."""
    for kind in QuotaType:
        yield _of_entities(kind, kind.attribute, Meaning.USAGE, catalog.USAGE[kind], kind.unit.divisor)
        yield _of_entities(kind, "throttle-time", Meaning.THROTTLE_TIME, catalog.THROTTLE_TIME_SECONDS, MILLISECONDS)
        yield Attribute(
            type=kind.group,
            name="queue-size",
            meaning=Meaning.DELAY_QUEUE_SIZE,
            quota_type=kind,
            family=catalog.DELAY_QUEUE_SIZE,
        )
    # brokers report this since KIP-1373, if at all
    for kind in QuotaType:
        if not kind.token_bucket:
            yield _of_entities(
                kind, "quota-utilization", Meaning.REPORTED_UTILIZATION, catalog.REPORTED_UTILIZATION, PERCENT
            )
    yield _of_entities(QuotaType.CONTROLLER_MUTATION, "tokens", Meaning.TOKENS, catalog.CONTROLLER_MUTATION_TOKENS)
    # quotas of a custom callback (client.quota.callback.class, KIP-257): the same attributes under tags that it chooses
    for kind in QuotaType:
        usage = _of_entities(kind, kind.attribute, Meaning.USAGE, catalog.CALLBACK_USAGE[kind], kind.unit.divisor)
        yield replace(usage, open=True)
        throttle = _of_entities(
            kind, "throttle-time", Meaning.THROTTLE_TIME, catalog.CALLBACK_THROTTLE_TIME_SECONDS, MILLISECONDS
        )
        yield replace(throttle, open=True)


def _of_node(  # noqa: PLR0913 - the columns of a table
    beans: str,
    name: str,
    meaning: Meaning | catalog.Family,
    *free: str,
    family: catalog.Family | None = None,
    divisor: float = 1.0,
    guard: Guard | None = None,
    part: str = "",
    required: bool = True,
    optional: bool = False,
) -> Attribute:
    """
    Return an attribute of ``beans`` that are about a node, such as ``kafka.server:type=Request``.

    Args:
        beans: Domain, type and further key properties.
        name: Name of the attribute.
        meaning: The family that shows the number, or what is computed with it.
        free: Key properties that distinguish beans, in the order of the family's labels.
        family: The family to which a number that is computed with contributes.
        divisor: Kafka's unit divided by this is ours.
        guard: Why the number is not always passed on as it is.
        part: The value of the label that is in no key property.
        required: True if the beans have all of ``free``.
        optional: True if an agent may refuse it.

    """
    domain, _, properties = beans.partition(":")
    fixed = dict(pair.split("=") for pair in properties.split(","))
    return Attribute(
        domain=domain,
        type=fixed.pop("type"),
        fixed=fixed,
        free=free,
        name=name,
        meaning=meaning,
        family=meaning if isinstance(meaning, catalog.Family) else family,
        divisor=divisor,
        guard=guard,
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
    # KafkaRequestHandlerPool: one bean by pool since KIP-1207. The meter of a pool counts idle nanoseconds, shared
    # among its threads, so that its rate is a ratio in spite of "percent".
    *(
        attribute
        for pool, ratio, time in (
            ("", catalog.REQUEST_HANDLER_IDLE, catalog.REQUEST_HANDLER_IDLE_SECONDS),
            ("broker", catalog.REQUEST_HANDLER_POOL_IDLE, catalog.REQUEST_HANDLER_POOL_IDLE_SECONDS),
            ("controller", catalog.REQUEST_HANDLER_POOL_IDLE, catalog.REQUEST_HANDLER_POOL_IDLE_SECONDS),
        )
        for beans in [f"{_HANDLERS},name={pool.title()}RequestHandlerAvgIdlePercent"]
        for attribute in (
            _of_node(beans, "OneMinuteRate", ratio, part=pool, guard=Guard.ZERO_IS_UNKNOWN, optional=True),
            _of_node(beans, "Count", time, part=pool, divisor=NANOSECONDS, optional=True),
        )
    ),
    # of SocketServer, RequestChannel and RequestMetrics, and of QuorumControllerMetrics (KIP-1190)
    _of_node(
        "kafka.network:type=SocketServer,name=NetworkProcessorAvgIdlePercent",
        "Value",
        catalog.NETWORK_PROCESSOR_IDLE,
        optional=True,
    ),
    _of_node(
        "kafka.network:type=RequestChannel,name=RequestQueueSize", "Value", catalog.REQUEST_QUEUE_SIZE, optional=True
    ),
    _of_node(f"{_EVENTS},name=AvgIdleRatio", "Value", catalog.CONTROLLER_EVENT_IDLE, optional=True),
    *(
        _of_node(
            f"{_REQUESTS},name=RequestQueueTimeMs",
            f"{percentile}thPercentile",
            catalog.REQUEST_QUEUE_SECONDS,
            "request",
            part=percentile,
            divisor=MILLISECONDS,
            guard=Guard.REQUESTS_ONLY,
            optional=True,
        )
        for percentile in PERCENTILES
    ),
)
LOAD_MEANINGS: Final = {attribute.meaning for attribute in _LOAD} | {Meaning.REQUEST_THROTTLE_COUNT}
"""Of the load of a node; without the count of responses, a percentile of 0 may be that of a request that never came."""

ATTRIBUTES: Final = (
    *_client_quotas(),
    # RequestChannelMetrics, RequestMetrics, QuorumControllerMetrics and AppInfoParser
    _of_node(f"{SERVER}:type=Request", "exempt-request-time", catalog.EXEMPT_REQUEST_THREADS, divisor=PERCENT),
    *(
        _of_node(f"{_REQUESTS},name=ThrottleTimeMs", name, meaning, "request", family=catalog.REQUEST_THROTTLED_SECONDS)
        for name, meaning in (("Mean", Meaning.REQUEST_THROTTLE_MEAN), ("Count", Meaning.REQUEST_THROTTLE_COUNT))
    ),
    _of_node(_ERRORS, "Count", catalog.THROTTLING_ERRORS, "request"),
    _of_node("kafka.controller:type=KafkaController,name=ActiveControllerCount", "Value", Meaning.ACTIVE_CONTROLLER),
    _of_node(
        f"{_EVENTS},name=EventQueueTimeMs",
        "Mean",
        Meaning.CONTROLLER_EVENT_MEAN,
        family=catalog.CONTROLLER_EVENT_QUEUE_SECONDS,
    ),
    _of_node(
        f"{_EVENTS},name=EventQueueTimeMs", "Count", Meaning.CONTROLLER_EVENT_COUNT, family=catalog.CONTROLLER_EVENTS
    ),
    _of_node(f"{SERVER}:type=app-info", "StartTimeMs", Meaning.STARTED_AT, "id", divisor=MILLISECONDS),
    # ConnectionQuotas
    _of_node(_SOCKETS, "broker-connection-accept-rate", catalog.BROKER_CONNECTIONS_PER_SECOND),
    _of_node(_SOCKETS, "connection-accept-rate", catalog.LISTENER_CONNECTIONS_PER_SECOND, "listener"),
    _of_node(_SOCKETS, "connection-accept-rate", catalog.IP_CONNECTIONS_PER_SECOND, "ip"),
    *(
        _of_node(_SOCKETS, name, family, "listener", divisor=MILLISECONDS, guard=Guard.NAN_IS_ZERO)
        for name, family in (
            ("connection-accept-throttle-time", catalog.LISTENER_CONNECTION_THROTTLE_SECONDS),
            ("ip-connection-accept-throttle-time", catalog.IP_CONNECTION_THROTTLE_SECONDS),
        )
    ),
    # ReplicationQuotaManager, RLMQuotaManager and RLMQuotaMetrics
    *(
        _of_node(f"{SERVER}:type={kind.value}", "byte-rate", catalog.REPLICATION_BYTES_PER_SECOND, part=kind.label)
        for kind in ReplicationQuotaType
    ),
    *(
        _of_node(f"{SERVER}:type={kind.value}", "byte-rate", catalog.REMOTE_STORAGE_BYTES_PER_SECOND, part=kind.label)
        for kind in RLMQuotaType
    ),
    *(
        _of_node(
            f"{SERVER}:type=RemoteLogManager",
            f"remote-{kind.label}-throttle-time-avg",
            catalog.REMOTE_STORAGE_THROTTLE_SECONDS,
            part=kind.label,
            divisor=MILLISECONDS,
            guard=Guard.NAN_IS_ZERO,
        )
        for kind in RLMQuotaType
    ),
    # StaticQuotaCallback and PolicyBasedThrottle of Strimzi's kafka-quotas-plugin
    _of_node(f"{STRIMZI_QUOTAS}:type=StaticQuotaCallback", "Value", Meaning.CALLBACK_LIMIT, "name", optional=True),
    _of_node(
        f"{STRIMZI_QUOTAS}:type=ThrottleFactor,name=ThrottleFactor",
        "Value",
        catalog.CALLBACK_THROTTLE_FACTOR,
        "observingBrokerId",
        required=False,
        optional=True,
    ),
    *_LOAD,
)
"""All that sources ask for, and all that they return."""
BY_MEANING: Final = {attribute.meaning: attribute for attribute in ATTRIBUTES if not attribute.open}
"""One attribute of each meaning: all of them have one divisor, but for usages, and one guard."""

_BY_PLACE: Final[dict[tuple[str, str, str], list[Attribute]]] = {}
for _attribute in ATTRIBUTES:
    _BY_PLACE.setdefault((_attribute.domain, _attribute.type, _attribute.name), []).append(_attribute)


def attribute_of(column: BeanColumn) -> Attribute | None:
    """Return the attribute of a column, None for a column that is not used. Columns from ``wanted`` have it already."""
    if column.mapped is not None:
        return column.mapped
    bean = column.bean
    candidates = _BY_PLACE.get((bean.domain, bean.get("type") or "", column.attribute))
    return next((candidate for candidate in candidates or () if candidate.admits(bean)), None)


def wanted(column: BeanColumn) -> BeanColumn | None:
    """Return the column with its meaning, None for one that is not used."""
    attribute = attribute_of(column)
    return None if attribute is None else BeanColumn(column.bean, column.attribute, attribute)


def replaced(old: Sequence[object], new: Sequence[object]) -> list[int]:
    """Return the indexes (ascending) at which two sequences have different objects, or only one has an object."""
    places: list[int] = []
    length = min(len(old), len(new))
    for start in range(0, length, _BLOCK):
        old_block, new_block = old[start : start + _BLOCK], new[start : start + _BLOCK]
        if old_block != new_block:
            places += compress(count(start), map(is_not, old_block, new_block))
    return [*places, *range(length, max(len(old), len(new)))]
