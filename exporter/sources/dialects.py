"""The dialects of Prometheus text: how agents, and rules for them, name and label the attributes of MBeans."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from itertools import chain, groupby
from typing import Final

from quotascope.metrics.kafka.entities import QuotaType
from quotascope.metrics.kafka.errors import MalformedName
from quotascope.metrics.kafka.jmx import quote_tag_value, unquote_tag_value

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
from .forms import Plan
from .spellings import Role, roles_of

ColumnOf = Callable[[str, Mapping[str, str]], BeanColumn | None]
"""Function from the name and the labels of a sample to its column, None for a sample that is not used."""


_CLIENT_ROLES: Final = frozenset([Role.USER, Role.CLIENT_ID])
_CLIENT_LABELS: Final = frozenset(["user", "client_id", "client-id"])
"""Labels that name a client in pages without rules."""


class Gap(Enum):
    """A kind of values that published rules leave out, in words."""

    MUTATIONS = "controller mutation quotas"
    DELAY_QUEUES = "delay queues"
    EXEMPT_TIME = "exempt request time"
    THROTTLED_TIME = "throttled time by request"
    CONNECTIONS = "new connections"
    REPLICATION = "replication"
    REMOTE_STORAGE = "tiered storage"


_ALL_BUT_CLIENTS: Final = (
    Gap.DELAY_QUEUES, Gap.EXEMPT_TIME, Gap.THROTTLED_TIME, Gap.CONNECTIONS, Gap.REPLICATION, Gap.REMOTE_STORAGE,
)  # fmt: skip
"""Gaps of rules that show little more than the quotas of clients."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDialect:
    """
    The form in which one kind of agent, or of rules for it, shows the attributes of MBeans.

    Lines about quotas are read by their spelling in every dialect. The dialect decides how values are quoted, whether
    there can be further labels, and which lines are about nodes.
    """

    name: str
    """The value of the label ``dialect``, which also forces the dialect in a configuration."""
    marks: tuple[str, ...]
    """Beginnings of lines; a page with such a line is in this dialect."""
    not_beside: tuple[str, ...] = ()
    """Beginnings of lines; a page with such a line is not in this dialect."""
    prefixes: tuple[str, ...]
    """Beginnings of all lines of interest; other lines are not read."""
    quoted: bool = True
    """True if values are quoted as in the names of MBeans."""
    whole: bool = False
    """True if labels are all key properties of a bean, so that further labels can be tags of a custom callback."""
    node_column_of: ColumnOf
    """Function that returns the column of a line about a node."""
    advice: str
    """Advice for a page without a series of any entity although there are quotas."""
    labels: tuple[str, ...] = ("user", "client_id")
    """The labels of a quota metric that are understood."""
    complete: bool = False
    """
    True if each bean of Kafka has a rule of its own, so that a page with the delay queue of a quota type has its
    entities.
    """
    alike: bool = False
    """True if one rule makes the entities of all kinds: a page with one kind of a quota type has all kinds of it."""
    whole_names: frozenset[str] = frozenset()
    """The names of quota metrics that are made without rules, so that their labels are all key properties."""
    gaps: tuple[Gap, ...] = ()
    """The values that its published rules leave out."""

    def names_whole(self, name: str, labels: Collection[str]) -> bool:
        """Return whether a quota metric is made without rules, so that each label is a key property of its bean."""
        if name not in self.whole_names:
            return False
        roles = roles_of(tuple(labels))
        return all(roles[role] in _CLIENT_LABELS for role in _CLIENT_ROLES if role in roles)

    def is_in(self, page: str) -> bool:
        """Return whether a page, which begins with a line end, is in this dialect."""
        return has_line(page, self.marks) and not has_line(page, self.not_beside)


def has_line(page: str, beginnings: tuple[str, ...]) -> bool:
    """Return whether a page, which begins with a line end, has a line with one of the ``beginnings``."""
    return any(pattern.search(page) for pattern in _patterns(beginnings))


@cache
def _patterns(beginnings: tuple[str, ...]) -> list[re.Pattern[str]]:
    """Return patterns that together find a line with one of the beginnings, one pattern for each first character."""
    # re searches for the common beginning of all alternatives, which is a hundred times as fast
    groups = groupby(sorted(beginnings), key=lambda text: text[0])
    return [re.compile("|".join(re.escape(f"\n{text}") for text in texts)) for _, texts in groups]


# Names and columns that several dialects share

_Place = tuple[str, str, str]
"""JMX domain, the key property ``type``, and the attribute."""


def _places(attributes: Iterable[Attribute]) -> dict[str, _Place]:
    """
    Return the places of attributes by the name that a metric has without a rule, in lower case.

    Such a name is ``kafka_server_produce_byte_rate``.
    """
    places: dict[str, _Place] = {}
    for attribute in attributes:
        name = re.sub(r"[^a-zA-Z0-9_]+", "_", f"{attribute.domain}_{attribute.type}_{attribute.name}").lower()
        places[name] = attribute.domain, attribute.type, attribute.name
    return places


_ACTIVE_CONTROLLER: Final = BeanColumn(
    Bean.of("kafka.controller", {"type": "KafkaController", "name": "ActiveControllerCount"}), "Value"
)
_ACTIVE: Final = "kafka_controller_kafkacontroller_activecontrollercount"


_LOAD_BEANS: Final = {
    f"{attribute.domain}_{attribute.type}_{attribute.fixed['name']}".replace(".", "_").lower(): attribute
    for attribute in ATTRIBUTES
    if attribute.meaning in LOAD_MEANINGS
}
"""An attribute of each bean about the load of a node, by the metric's name."""
_LOAD_NAME: Final = re.compile(rf"({'|'.join(_LOAD_BEANS)})(?:_(oneminuterate|count|(?:count_)?total))?")
_QUANTILES: Final = {"0.5": "50", "0.50": "50", "0.95": "95", "0.99": "99"}


def _node_column(name: str, labels: Mapping[str, str], errors: str) -> BeanColumn | None:
    """
    Return the column of a metric about a node that is named after its bean in lower case; None for any other.

    Counts end in ``_count_total`` (kafka_2_0_0), in ``_total`` or ``_count`` (Strimzi), or have no ending, as gauges
    (Confluent). Percentiles have a label ``quantile``. The rate since the start, which kafka_2_0_0 shows as
    ``_percent``, is not read.

    Args:
        name: The name of the metric.
        labels: Its labels.
        errors: The name that the metric of errors by request has in the dialect.

    """
    if name == _ACTIVE:
        return _ACTIVE_CONTROLLER
    if name == errors:  # `wanted` leaves out all errors but refusals by a quota
        properties = {"type": "RequestMetrics", "name": "ErrorsPerSec", **labels}
        return wanted(BeanColumn(Bean.of("kafka.network", properties), "Count"))
    match = _LOAD_NAME.fullmatch(name)
    if match is None:
        return None
    attribute_of_load, ending = _LOAD_BEANS[match[1]], match[2]
    properties = {"type": attribute_of_load.type, **attribute_of_load.fixed, **labels}
    if (quantile := properties.pop("quantile", None)) is not None:
        attribute = f"{_QUANTILES.get(quantile)}thPercentile"  # `wanted` leaves out other percentiles
    elif ending == "oneminuterate":
        attribute = "OneMinuteRate"
    else:
        attribute = "Value" if attribute_of_load.name == "Value" else "Count"
    return wanted(BeanColumn(Bean.of(attribute_of_load.domain, properties), attribute))


_PROPERTY: Final = re.compile(r'(type|user|client-id)=("(?:[^"\\]|\\.)*+"|[A-Za-z0-9_\-%. \t]*)(?:, |\Z)', re.DOTALL)
_TAG: Final = re.compile(r'([^",=:*?]+)=("(?:[^"\\]|\\.)*+"|[^",=:*?]*)(?:, |\Z)')


def properties_of(text: str, pattern: re.Pattern[str] = _PROPERTY) -> dict[str, str]:
    """
    Return the unquoted key properties in a text that is a part of a bean's name. Raises ``MalformedName``.

    The patterns of rules such as ``type=(.+), user=(.+), client-id=(.+)`` are greedy: they cut in the wrong place if a
    client-id looks like a part of an MBean's name. So their labels are joined to the original name first.
    """
    properties: dict[str, str] = {}
    position = 0
    while position < len(text):
        match = pattern.match(text, position)
        if match is None or match[1] in properties:
            raise MalformedName(text, "not the key properties of a quota bean")
        properties[match[1]] = unquote_tag_value(match[2])
        position = match.end()
    return properties


# A jmx_exporter with the rules of `quotascope rules jmx-exporter`: the inverse of the table of names

_QUOTA_TYPE: Final = "quota_type"
_NAMES_BY_FAMILY: Final[dict[str, list[Name]]] = {}
for _name in NAMES:
    _NAMES_BY_FAMILY.setdefault(_name.family.name, []).append(_name)
_OWN_LABELS: Final = {
    family: frozenset(chain({TAGS}, *((*name.constants, *name.properties) for name in names)))
    for family, names in _NAMES_BY_FAMILY.items()
}


def own_labels(name: str) -> frozenset[str]:
    """Return the labels that quotascope's rules give a metric; none for a metric that they do not make."""
    return _OWN_LABELS.get(name, frozenset())


def own_column(name: str, labels: Mapping[str, str]) -> BeanColumn | None:
    """Return the column of a metric that quotascope's rules make; None for any other metric."""
    own_names = _NAMES_BY_FAMILY.get(name, ())
    # constant labels, such as the quota type, distinguish the attributes that share a family
    own_name = next((own_name for own_name in own_names if own_name.constants.items() <= labels.items()), None)
    if own_name is None:
        return None
    attribute = own_name.attribute
    properties = {"type": attribute.type, **attribute.fixed}
    try:
        if attribute.open:
            properties |= properties_of(labels.get(TAGS, ""), _TAG)
        for label, key in own_name.properties.items():
            if label in labels:
                properties[key] = unquote_tag_value(labels[label])
    except MalformedName:
        return None
    bean = Bean.of(attribute.domain, properties)
    column = wanted(BeanColumn(bean, attribute.name))
    return column if column is not None and column.mapped is attribute else None


def own_plan(name: str, labels: Collection[str]) -> Plan | None:
    """
    Return the plan by which the labels of a metric that quotascope's rules make become a bean.

    Return None if the metric is not about an entity, or if the beans of the metric differ in more than their type.
    """
    names = _NAMES_BY_FAMILY.get(name, [])
    types = {own_name.constants.get(_QUOTA_TYPE, ""): own_name.attribute.type for own_name in names}
    if len(types) < len(names):  # two attributes have the same quota type
        return None
    for own_name in names:
        attribute = own_name.attribute
        if attribute.quota_type is None or attribute.open or attribute.fixed:  # not about an entity of Kafka's quotas
            return None
        if own_name.properties != names[0].properties or own_name.constants.keys() - {_QUOTA_TYPE}:
            return None
    return Plan(
        labels={key: label for label, key in names[0].properties.items() if label in labels},
        type_of=types.get,
        type_label=_QUOTA_TYPE if _QUOTA_TYPE in labels and "" not in types else "",
        keeps_empty=True,
        types=tuple(types.items()),
    )


def own_factor(column: BeanColumn) -> float:
    """Return the factor from a number of quotascope's rules, which is in base units, to Kafka's unit."""
    attribute = attribute_of(column)
    return 1.0 if attribute is None else name_of(attribute).divisor


QUOTASCOPE_RULES: Final = TextDialect(
    name="quotascope_rules",
    marks=(f"{START_TIME.name}{{",),
    prefixes=("kafka_quota_",),
    node_column_of=own_column,
    complete=True,
    advice=(
        "quotas have values only if one is configured and a client was measured under it; if so, write the "
        "agent's rules again with `quotascope rules jmx-exporter`"
    ),
)


# The rules of jmx_exporter's example kafka-2_0_0.yml
#
# Its three quota rules are, shortened, `type=(.+), user=(.+), client-id=(.+)`, `type=(.+), client-id=(.+)` and
# `type=(.+), user=(.+)`. They show all attributes of entities, but no delay queue, no exempt request time and no
# throttle by request. They show the count of the meters of request handlers.

_2_0_0_QUOTA: Final = "kafka_server_quota_"
_2_0_0_ERRORS: Final = "kafka_network_requestmetrics_errors_total"


def _2_0_0_node_column(name: str, labels: Mapping[str, str]) -> BeanColumn | None:
    """Return the column of a metric about a node as kafka_2_0_0 names it; None for any other."""
    return _node_column(name, labels, _2_0_0_ERRORS)


KAFKA_2_0_0: Final = TextDialect(
    name="kafka_2_0_0",
    gaps=_ALL_BUT_CLIENTS,
    marks=(_2_0_0_QUOTA,),
    prefixes=(_2_0_0_QUOTA, _ACTIVE, f"{_2_0_0_ERRORS}{{", *_LOAD_BEANS),
    labels=("resource", "user", "clientId"),
    node_column_of=_2_0_0_node_column,
    advice="check that the agent's rules contain all three quota rules of kafka-2_0_0.yml: "
    "the one for users without a client-id was added only in 2023",
)


# jmx_exporter without rules: domain, type and attribute make the name, the other key properties are labels
#
# Amazon MSK's open monitoring (port 11001) is such an agent. `lowercaseOutputName` and `lowercaseOutputLabelNames` are
# understood. It shows everything that Jolokia shows.

_DEFAULT_PLACES: Final = _places(ATTRIBUTES)
_DEFAULT_NAMES: Final = frozenset(
    spelled
    for name, (_, kind, attribute) in _DEFAULT_PLACES.items()
    for spelled in (name, f"kafka_server_{kind}_{attribute}".replace("-", "_"))
)
_QUOTAS: Final = tuple(f"kafka_server_{quota_type.group}_" for quota_type in QuotaType)
_QUOTAS_LOWER: Final = tuple(map(str.lower, _QUOTAS))
_LEADS: Final = "kafka_controller_KafkaController_Value{"
_DEFAULT_PREFIXES: Final = (
    *_QUOTAS,
    _LEADS,
    "kafka_controller_ControllerEventManager_",
    "kafka_network_RequestMetrics_Mean{",
    "kafka_network_RequestMetrics_Count{",
    *(f"kafka_network_RequestMetrics_{percentile}thPercentile{{" for percentile in (50, 95, 99)),
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
    """Return the column of a metric that jmx_exporter makes without rules; None for any other."""
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


_RULES_GIVE_TYPES: Final = tuple(
    f"# TYPE {prefix}{attribute.name.replace('-', '_')} {kind}"
    for prefix in _QUOTAS
    for attribute in ATTRIBUTES
    if "user" in attribute.free and prefix.endswith(f"_{attribute.type}_")
    for kind in ("gauge", "counter")
)
"""Beginnings of comments that show rules: without rules, jmx_exporter knows no type of an attribute."""
JMX_DEFAULT: Final = TextDialect(
    name="jmx_default",
    not_beside=_RULES_GIVE_TYPES,
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
    alike=True,
    whole=True,
    whole_names=_DEFAULT_NAMES,
    node_column_of=_default_column,
    advice=(
        "check that the agent has rules for kafka.server:type=Produce,user=*,client-id=* and the like, and no "
        "filter of object names leaves them out"
    ),
)


_STARTED_OF_RULES: Final = "kafka_server_app_info_starttimems{"
"""A node's start as jmx_exporter shows it in lower case, with rules and without."""


# Strimzi's metrics-reporter, a plugin of the broker that needs no JMX
#
# Names are made of Kafka's group and name in lower case, labels are Kafka's tags as they are: client-ids are not
# quoted, and a tag without a value is an empty label.

_STRIMZI_PLACES: Final = _places(
    attribute for attribute in ATTRIBUTES if attribute.domain == SERVER and not attribute.optional
)
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
"""Columns of Strimzi's quotas plugin by metric, which has no labels in the reporter."""


def _strimzi_column(name: str, labels: Mapping[str, str]) -> BeanColumn | None:
    """Return the column of a metric of Strimzi's metrics-reporter; None for a metric that is not used."""
    place = _STRIMZI_PLACES.get(name)
    if place is not None:
        domain, kind, attribute = place
        tags = {"client-id" if label == "client_id" else label: value for label, value in labels.items() if value}
        return wanted(BeanColumn(Bean.of(domain, {**tags, "type": kind}), attribute))
    if name in _STRIMZI_PLUGIN:
        return wanted(_STRIMZI_PLUGIN[name])
    return _node_column(name, labels, _STRIMZI_ERRORS)


STRIMZI: Final = TextDialect(
    name="strimzi",
    gaps=(Gap.THROTTLED_TIME,),
    marks=tuple(  # the space is for delay queues, which have no labels: an allowlist may contain nothing else
        f"{name}{end}" for name in _STRIMZI_PLACES if name.startswith(_QUOTAS_LOWER) for end in "{ "
    ),
    # a jmx_exporter, which unlike the reporter explains each metric, and shows the MBean app-info by its other
    # attribute
    not_beside=("jmx_", "# HELP kafka_server_", _STARTED_OF_RULES),
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
    alike=True,
    quoted=False,
    whole=True,
    whole_names=frozenset(_STRIMZI_PLACES),
    node_column_of=_strimzi_column,
    advice="the operator's default allowlist has no quota metrics: add "
    f"kafka_server_({'|'.join(quota_type.group.lower() for quota_type in QuotaType)})_.* to the allowList of "
    "metricsConfig; is it a jmx_exporter with lowercaseOutputName instead, check its rules and filters",
)


# The rules of Confluent's jmx-monitoring-stacks
#
# They give Produce, Fetch and Request by entity. Beans with nothing but a type are left out, and so are
# ControllerMutation and app-info: no delay queue, no mutations, no node id.

_CONFLUENT_PLACES: Final = _places(attribute for attribute in ATTRIBUTES if "user" in attribute.free)
_CONFLUENT_ERRORS: Final = "kafka_network_requestmetrics_errorspersec"


def _confluent_node_column(name: str, labels: Mapping[str, str]) -> BeanColumn | None:
    """Return the column of a metric about a node as Confluent's rules name it; None for any other."""
    return _node_column(name, labels, _CONFLUENT_ERRORS)


CONFLUENT: Final = TextDialect(
    name="confluent",
    gaps=(Gap.MUTATIONS, *_ALL_BUT_CLIENTS),
    marks=tuple(f"{name}{{" for name in _CONFLUENT_PLACES),
    not_beside=(_STARTED_OF_RULES,),
    prefixes=(*_QUOTAS_LOWER, _ACTIVE, f"{_CONFLUENT_ERRORS}{{", *_LOAD_BEANS),
    node_column_of=_confluent_node_column,
    advice="check that the agent's rules contain the three under `# Quotas` of Confluent's kafka_broker.yml",
)


# Rules of any other spelling


def _any_node_column(name: str, labels: Mapping[str, str]) -> BeanColumn | None:
    """Return the column of a metric about a node by its name in any dialect; None if it has none."""
    column = _default_column(name, labels)
    for errors in _ERRORS:
        column = column or _node_column(name, labels, errors)
    return column


_ERRORS: Final = (_2_0_0_ERRORS, _STRIMZI_ERRORS, _CONFLUENT_ERRORS)
JMX_RULES: Final = TextDialect(
    name="jmx_rules",
    marks=_RULES_GIVE_TYPES,
    prefixes=(
        _2_0_0_QUOTA,
        *_QUOTAS_LOWER,
        *_DEFAULT_PREFIXES,
        _STRIMZI_START,
        _ACTIVE,
        f"{_CONFLUENT_ERRORS}",
        f"{_2_0_0_ERRORS}{{",
        *_LOAD_BEANS,
    ),
    node_column_of=_any_node_column,
    labels=("type", "user", "client_id"),
    advice="check with `quotascope rules check` what the agent's rules leave out",
)


DIALECTS: Final = (QUOTASCOPE_RULES, KAFKA_2_0_0, JMX_DEFAULT, STRIMZI, CONFLUENT, JMX_RULES)
"""All dialects, in the order in which detection looks for their marks."""
BY_NAME: Final = {dialect.name: dialect for dialect in DIALECTS}


def detected(page: str) -> TextDialect | None:
    """Return the dialect of a page, which begins with a line end; None if it has the marks of none."""
    dialect = next((dialect for dialect in DIALECTS if dialect.is_in(page)), None)
    if dialect is STRIMZI and _is_from_jmx_exporter(page):
        return JMX_RULES
    return dialect


def _is_from_jmx_exporter(page: str) -> bool:
    """
    Return whether a page with the marks of Strimzi's metrics-reporter is from jmx_exporter with names in lower case.

    The reporter writes the type of each metric. A page without comments, as some proxies leave it, is from jmx_exporter
    if clients are in names of metrics, or if their names are quoted as Java quotes them: the names that need it, and no
    others. The reporter quotes no name, and writes an absent one as an empty label.
    """
    if has_line(page, _REPORTER_TYPES):
        return False
    if MANGLED_NAME.search(page):
        return True
    if '="\\"' not in page:
        return False
    lines = (line for line in page.split("\n") if line.startswith(_QUOTAS_LOWER))
    # users and client-ids without the escapes of the text format
    values = {value.replace(r"\"", '"').replace(r"\\", "\\") for line in lines for value in _CLIENT_VALUE.findall(line)}
    return any(value.startswith('"') for value in values) and all(map(_is_as_in_java, values))


def _is_as_in_java(value: str) -> bool:
    """Return whether Java writes a name in this way in the name of an MBean, quoted or not."""
    try:
        return bool(value) and quote_tag_value(unquote_tag_value(value)) == value
    except MalformedName:
        return False


_REPORTER_TYPES: Final = tuple(f"# TYPE {start}" for start in _QUOTAS_LOWER)
_CLIENT_VALUE: Final = re.compile(r'(?<=[{,])(?:user|client_id)="((?:[^"\\]|\\.)*+)"')


MANGLED_NAME: Final = re.compile(
    r"\n(kafka_server_(?:[Pp]roduce|[Ff]etch|[Rr]equest|[Cc]ontroller[Mm]utation)"
    r"_(?:user|client_id)_[a-zA-Z0-9_:]{1,200})"
)
"""
Pattern of a metric's name that holds the user and the client-id.

The generic rules of jmx_exporter's example ``kafka-kraft-3_0_0.yml`` stand before its quota rules and take their beans,
so that user ``a`` becomes ``kafka_server_produce_user_a_byte_rate``. All characters but letters and digits are lost, so
the entity cannot be recovered.
"""
MANGLED_ADVICE: Final = (
    "move the agent's three quota rules above all rules such as `kafka.server<type=(.+)><>([a-z-]+)`, "
    "or use the rules that `quotascope rules jmx-exporter` writes"
)
