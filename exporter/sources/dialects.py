"""The dialects of Prometheus text: how agents, and rules for them, name and label the attributes of MBeans."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import Final

from quotascope.metrics import MalformedName, unquote_tag_value

from ..mapping import (
    ATTRIBUTES,
    LOAD_MEANINGS,
    SERVER,
    STRIMZI_QUOTAS,
    Attribute,
    Bean,
    BeanColumn,
    attribute_of,
    wanted,
)
from ..rules import NAMES, START_TIME, TAGS, Name, name_of

ColumnOf = Callable[[str, Mapping[str, str]], BeanColumn | None]
"""The column of a sample by its name and labels, None for one that is not used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDialect:
    """How one kind of agent, or of rules for it, names and labels the attributes of MBeans."""

    name: str
    """The label ``dialect``, and what forces it in a configuration."""
    marks: tuple[str, ...]
    """Beginnings of lines; a page with a line that begins so is in this dialect."""
    not_beside: tuple[str, ...] = ()
    """Beginnings of lines; a page with a line that begins so is not in this dialect."""
    prefixes: tuple[str, ...]
    """Beginnings of all lines of interest; the others are not read."""
    column_of: ColumnOf
    factor_of: Callable[[BeanColumn], float] | None = None
    """What a number of the page is multiplied by to be Kafka's; None when all are."""
    advice: str
    """What to check when there are quotas, but no series of any entity."""

    def is_in(self, page: str) -> bool:
        """Whether a page, which begins with a line end, is in it."""
        return has_line(page, self.marks) and not has_line(page, self.not_beside)


def has_line(page: str, beginnings: tuple[str, ...]) -> bool:
    """Whether a page, which begins with a line end, has a line that begins with one of these texts."""
    return any(pattern.search(page) for pattern in _patterns(beginnings))


@cache
def _patterns(beginnings: tuple[str, ...]) -> list[re.Pattern[str]]:
    # where all alternatives of a pattern begin alike, re searches a page for that beginning, a hundred times as fast
    alike = groupby(sorted(beginnings), key=lambda text: text[0])
    return [re.compile("|".join(re.escape(f"\n{text}") for text in texts)) for _, texts in alike]


# What several dialects have in common

_Place = tuple[str, str, str]
"""JMX domain, the key property ``type``, and the attribute."""


def _places(attributes: Iterable[Attribute]) -> dict[str, _Place]:
    """By their names in lower case where no rule says otherwise, such as ``kafka_server_produce_byte_rate``."""
    return {
        re.sub(r"[^a-zA-Z0-9_]+", "_", f"{each.domain}_{each.type}_{each.name}").lower(): (
            each.domain,
            each.type,
            each.name,
        )
        for each in attributes
        if each.brokers_have_it
    }


_ACTIVE_CONTROLLER: Final = BeanColumn(
    Bean.of("kafka.controller", {"type": "KafkaController", "name": "ActiveControllerCount"}), "Value"
)
_ACTIVE: Final = "kafka_controller_kafkacontroller_activecontrollercount"


def _app_info(node_id: str) -> BeanColumn | None:
    """The column of a node's start time; its bean has the node id in its name."""
    bean = Bean.of(SERVER, {"type": "app-info", "id": node_id})
    return wanted(BeanColumn(bean, "StartTimeMs"))


_LOAD_BEANS: Final = {
    f"{each.domain}_{each.type}_{each.fixed['name']}".replace(".", "_").lower(): each
    for each in ATTRIBUTES
    if each.meaning in LOAD_MEANINGS
}
"""An attribute of each bean about the load of a node, by the metric's name."""
_LOAD_NAME: Final = re.compile(rf"({'|'.join(_LOAD_BEANS)})(?:_(oneminuterate|count|(?:count_)?total))?")
_QUANTILES: Final = {"0.5": "50", "0.50": "50", "0.95": "95", "0.99": "99"}


def _node_column(name: str, labels: Mapping[str, str], errors: str) -> BeanColumn | None:
    """
    The column of a number about a node, where a metric is named after its bean in lower case; ``errors`` is the name of those by request.

    Counts end in ``_count_total`` (kafka_2_0_0), ``_total`` or ``_count`` (Strimzi), or in nothing, as gauges do
    (Confluent); percentiles have a label ``quantile``. The rate since the start, which kafka_2_0_0 shows as ``_percent``, is not read.
    """
    if name == _ACTIVE:
        return _ACTIVE_CONTROLLER
    if name == errors:  # of which only refusals by a quota are wanted
        properties = {"type": "RequestMetrics", "name": "ErrorsPerSec", **labels}
        return wanted(BeanColumn(Bean.of("kafka.network", properties), "Count"))
    found = _LOAD_NAME.fullmatch(name)
    if found is None:
        return None
    of, ending = _LOAD_BEANS[found[1]], found[2]
    properties = {"type": of.type, **of.fixed, **labels}
    if (quantile := properties.pop("quantile", None)) is not None:
        attribute = f"{_QUANTILES.get(quantile)}thPercentile"
    elif ending == "oneminuterate":
        attribute = "OneMinuteRate"
    else:
        attribute = "Value" if of.name == "Value" else "Count"
    return wanted(BeanColumn(Bean.of(of.domain, properties), attribute))


_PROPERTY: Final = re.compile(r'(type|user|client-id)=("(?:[^"\\]|\\.)*+"|[^",]*)(?:, |\Z)', re.DOTALL)
_TAG: Final = re.compile(r'([^",=:*?]+)=("(?:[^"\\]|\\.)*+"|[^",]*)(?:, |\Z)')


def _properties(pattern: re.Pattern[str], text: str) -> dict[str, str]:
    """Key properties as they stand in a bean's name, unquoted. Raises ``MalformedName``."""
    found: dict[str, str] = {}
    position = 0
    while position < len(text):
        each = pattern.match(text, position)
        if each is None:
            raise MalformedName(text, "not the key properties of a quota bean")
        found[each[1]] = unquote_tag_value(each[2])
        position = each.end()
    return found


def _rejoined(labels: Mapping[str, str]) -> dict[str, str] | None:
    """
    Key properties from the labels that greedy rules of a jmx_exporter make of them, in their order; None when they are none.

    Rules such as ``type=(.+), user=(.+), client-id=(.+)`` cut a client-id that looks like a part
    of an MBean's name in the wrong place: but joined again, the labels are the name as it was.
    """
    text = ", ".join([f"{key}={value}" for key, value in labels.items()])
    if '"' not in text and text.count(", ") < len(labels):
        return dict(labels)  # nothing is quoted, so nothing was cut
    try:
        return _properties(_PROPERTY, text)
    except MalformedName:
        return None


# A jmx_exporter with our own rules (`quotascope rules jmx-exporter`): the table of names in the other direction

_NAMES_BY_FAMILY: Final[dict[str, list[Name]]] = {}
for _name in NAMES:
    _NAMES_BY_FAMILY.setdefault(_name.family.name, []).append(_name)


def _quotascope_column(name: str, labels: Mapping[str, str]) -> BeanColumn | None:
    named = (candidate for candidate in _NAMES_BY_FAMILY.get(name, ()) if candidate.constants.items() <= labels.items())
    found = next(named, None)
    if found is None:
        return None
    attribute = found.attribute
    properties = {"type": attribute.type, **attribute.fixed}
    try:
        if attribute.open:
            properties |= _properties(_TAG, labels.get(TAGS, ""))
        for label, key in found.properties.items():
            if label in labels:
                properties[key] = unquote_tag_value(labels[label])
    except MalformedName:
        return None
    bean = Bean.of(attribute.domain, properties)
    column = wanted(BeanColumn(bean, attribute.name))
    return column if column is not None and column.mapped is attribute else None


def _quotascope_factor(column: BeanColumn) -> float:
    attribute = attribute_of(column)
    return 1.0 if attribute is None else name_of(attribute).divisor


QUOTASCOPE_RULES: Final = TextDialect(
    name="quotascope_rules",
    marks=(f"{START_TIME.name}{{",),
    prefixes=("kafka_quota_",),
    column_of=_quotascope_column,
    factor_of=_quotascope_factor,
    advice="quotas have values only if one is configured and a client was measured under it; if so, write the agent's rules again with `quotascope rules jmx-exporter`",
)


# The rules of jmx_exporter's example kafka-2_0_0.yml
#
# Their three quota rules are, shortened, `type=(.+), user=(.+), client-id=(.+)`, `type=(.+), client-id=(.+)` and
# `type=(.+), user=(.+)`. They give no delay queue, no exempt request time and no throttle by request; all that concerns
# an entity is there. Of the meters of request handlers they give the count.

_2_0_0_QUOTA: Final = "kafka_server_quota_"
_2_0_0_ERRORS: Final = "kafka_network_requestmetrics_errors_total"
_2_0_0_ATTRIBUTES: Final = {
    f"{_2_0_0_QUOTA}{attribute.name.replace('-', '_')}": attribute.name
    for attribute in ATTRIBUTES
    if "user" in attribute.free and attribute.brokers_have_it
}
_2_0_0_KEYS: Final = {"resource": "type", "user": "user", "clientId": "client-id"}


def _2_0_0_column(name: str, labels: Mapping[str, str]) -> BeanColumn | None:
    attribute = _2_0_0_ATTRIBUTES.get(name)
    if attribute is not None:
        tags = {_2_0_0_KEYS[key]: labels[key] for key in _2_0_0_KEYS if key in labels}
        properties = _rejoined(tags)
        if not properties:
            return None
        return wanted(BeanColumn(Bean.of(SERVER, properties), attribute))
    if name == f"{_2_0_0_QUOTA}start_time_ms" and labels.get("resource") == "app-info":
        # where the id is a client-id, the node's own app-info has the same: it names no client
        return _app_info(labels.get("clientId", ""))
    return _node_column(name, labels, _2_0_0_ERRORS)


KAFKA_2_0_0: Final = TextDialect(
    name="kafka_2_0_0",
    marks=(_2_0_0_QUOTA,),
    prefixes=(_2_0_0_QUOTA, _ACTIVE, f"{_2_0_0_ERRORS}{{", *_LOAD_BEANS),
    column_of=_2_0_0_column,
    advice="check that the agent's rules contain all three quota rules of kafka-2_0_0.yml: "
    "the one for users without a client-id was added only in 2023",
)


# jmx_exporter without rules: domain, type and attribute make the name, the other key properties are labels
#
# Amazon MSK's open monitoring (port 11001) is such an agent. `lowercaseOutputName` and `lowercaseOutputLabelNames` are
# understood. Everything that Jolokia gives is there.

_DEFAULT_PLACES: Final = _places(ATTRIBUTES)
_QUOTAS: Final = tuple(f"kafka_server_{kind}_" for kind in ("Produce", "Fetch", "Request", "ControllerMutation"))
_QUOTAS_LOWER: Final = tuple(map(str.lower, _QUOTAS))
_LEADS: Final = "kafka_controller_KafkaController_Value{"
_DEFAULT_PREFIXES: Final = (
    *_QUOTAS,
    _LEADS,
    "kafka_controller_ControllerEventManager_",
    "kafka_network_RequestMetrics_Mean{",
    "kafka_network_RequestMetrics_Count{",
    *(f"kafka_network_RequestMetrics_{each}thPercentile{{" for each in (50, 95, 99)),
    "kafka_network_RequestChannel_Value{",
    "kafka_network_SocketServer_Value{",
    "kafka_server_KafkaRequestHandlerPool_",
    "kafka_server_app_info_StartTimeMs{",
    "kafka_server_socket_server_metrics_",
    "kafka_server_LeaderReplication_",
    "kafka_server_FollowerReplication_",
    "kafka_server_AlterLogDirsReplication_",
    "kafka_server_RLM",
    "kafka_server_RemoteLogManager_",
    "io_strimzi_kafka_quotas_StaticQuotaCallback_Value{",
    "io_strimzi_kafka_quotas_ThrottleFactor_Value{",
)


def _default_column(name: str, labels: Mapping[str, str]) -> BeanColumn | None:
    place = _DEFAULT_PLACES.get(name.lower())
    if place is None:
        return None
    domain, kind, attribute = place
    try:
        properties = {
            "client-id" if label == "client_id" else label: unquote_tag_value(value) for label, value in labels.items()
        }
    except MalformedName:
        return None
    return wanted(BeanColumn(Bean.of(domain, {**properties, "type": kind}), attribute))


JMX_DEFAULT: Final = TextDialect(
    name="jmx_default",
    marks=(
        *_QUOTAS,
        _LEADS,
        _LEADS.lower(),
        *(  # in lower case, the quotas' names are those of other dialects as well, but there a rule gives them a type
            f"# TYPE {name} {kind}"
            for name in _DEFAULT_PLACES
            if name.startswith(_QUOTAS_LOWER)
            for kind in ("untyped", "unknown")
        ),
    ),
    prefixes=(*_DEFAULT_PREFIXES, *map(str.lower, _DEFAULT_PREFIXES)),
    column_of=_default_column,
    advice="check that no includeObjectNames or excludeObjectNames of the agent leaves out kafka.server:type=Produce and the like",
)


# Strimzi's metrics-reporter, a plugin of the broker that needs no JMX
#
# Names are made of Kafka's group and name in lower case, labels are Kafka's tags as they are: client-ids are not quoted,
# and a tag without a value is an empty label.

_STRIMZI_PLACES: Final = _places(each for each in ATTRIBUTES if each.domain == SERVER and not each.optional)
_STRIMZI_START: Final = "kafka_server_app_info_start_time_ms"
_STRIMZI_ERRORS: Final = "kafka_network_requestmetrics_errorspersec_total"
_STRIMZI_PLUGIN: Final = {
    f"io_strimzi_kafka_quotas_{kind}_{name}".lower(): BeanColumn(
        Bean.of(STRIMZI_QUOTAS, {"type": kind, "name": name}), "Value"
    )
    for kind, name in (
        ("StaticQuotaCallback", "Produce"),
        ("StaticQuotaCallback", "Fetch"),
        ("StaticQuotaCallback", "Request"),
        ("ThrottleFactor", "ThrottleFactor"),
    )
}
"""Without labels: the reporter shows those of Kafka's scopes only."""


def _strimzi_column(name: str, labels: Mapping[str, str]) -> BeanColumn | None:
    place = _STRIMZI_PLACES.get(name)
    if place is not None:
        domain, kind, attribute = place
        tags = {"client-id" if label == "client_id" else label: value for label, value in labels.items() if value}
        return wanted(BeanColumn(Bean.of(domain, {**tags, "type": kind}), attribute))
    if name == _STRIMZI_START and labels.get("client_id"):
        return _app_info(labels["client_id"])
    if name in _STRIMZI_PLUGIN:
        return wanted(_STRIMZI_PLUGIN[name])
    return _node_column(name, labels, _STRIMZI_ERRORS)


STRIMZI: Final = TextDialect(
    name="strimzi",
    marks=tuple(  # the space is for delay queues, which have no labels: an allowlist may contain nothing else
        f"{name}{end}" for name in _STRIMZI_PLACES if name.startswith(_QUOTAS_LOWER) for end in "{ "
    ),
    # a jmx_exporter, which unlike the reporter explains each metric
    not_beside=("jmx_", "# HELP kafka_server_"),
    prefixes=(
        *_QUOTAS_LOWER,
        "kafka_server_socket_server_metrics_",
        "kafka_server_leaderreplication_",
        "kafka_server_followerreplication_",
        "kafka_server_alterlogdirsreplication_",
        "kafka_server_rlm",
        "kafka_server_remotelogmanager_",
        _STRIMZI_START,
        _ACTIVE,
        f"{_STRIMZI_ERRORS}{{",
        *_STRIMZI_PLUGIN,
        *_LOAD_BEANS,
    ),
    column_of=_strimzi_column,
    advice="the operator's default allowlist has no quota metrics: add "
    "kafka_server_(produce|fetch|request|controllermutation)_.* to the allowList of metricsConfig",
)


# The rules of Confluent's jmx-monitoring-stacks
#
# They give Produce, Fetch and Request by entity. Beans with nothing but a type are left out, and so are
# ControllerMutation and app-info: no delay queue, no mutations, no node id.

_CONFLUENT_PLACES: Final = _places(each for each in ATTRIBUTES if "user" in each.free)
_CONFLUENT_ERRORS: Final = "kafka_network_requestmetrics_errorspersec"


def _confluent_column(name: str, labels: Mapping[str, str]) -> BeanColumn | None:
    place = _CONFLUENT_PLACES.get(name)
    if place is not None and labels.keys() <= {"user", "client_id"}:
        domain, kind, attribute = place
        tags = {"type": kind}
        for label, key in (("user", "user"), ("client_id", "client-id")):
            if label in labels:
                tags[key] = labels[label]
        properties = _rejoined(tags)
        if not properties:
            return None
        return wanted(BeanColumn(Bean.of(domain, properties), attribute))
    return _node_column(name, labels, _CONFLUENT_ERRORS)


CONFLUENT: Final = TextDialect(
    name="confluent",
    marks=tuple(f"{name}{{" for name in _CONFLUENT_PLACES),
    prefixes=(*_QUOTAS_LOWER, _ACTIVE, f"{_CONFLUENT_ERRORS}{{", *_LOAD_BEANS),
    column_of=_confluent_column,
    advice="check that the agent's rules contain the three under `# Quotas` of Confluent's kafka_broker.yml",
)


DIALECTS: Final = (QUOTASCOPE_RULES, KAFKA_2_0_0, JMX_DEFAULT, STRIMZI, CONFLUENT)
"""In the order in which detection looks for their marks."""


def detected(page: str) -> TextDialect | None:
    """The dialect of a page, which begins with a line end; None when it shows none."""
    return next((dialect for dialect in DIALECTS if dialect.is_in(page)), None)


MANGLED_NAME: Final = re.compile(
    r"\n(kafka_server_(?:[Pp]roduce|[Ff]etch|[Rr]equest|[Cc]ontroller[Mm]utation)"
    r"_(?:user|client_id)_[a-zA-Z0-9_:]{1,200})"
)
"""
A name of a metric that holds the user and the client-id.

The generic rules of jmx_exporter's example ``kafka-kraft-3_0_0.yml`` stand before its quota
rules and take their beans, so that user ``a`` becomes ``kafka_server_produce_user_a_byte_rate``.
Everything but letters and digits is lost on the way: the entity cannot be recovered.
"""
MANGLED_ADVICE: Final = (
    "move the agent's three quota rules above all rules such as `kafka.server<type=(.+)><>([a-z-]+)`, "
    "or use the rules that `quotascope rules jmx-exporter` writes"
)
