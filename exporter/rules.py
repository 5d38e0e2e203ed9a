r"""
Our own rules for jmx_exporter, out of the mapping table: names, patterns and the file.

An agent shows one attribute at a time. Where one of our families is made of two, or where none shows an attribute
because it only serves others, the agent has a family of its own.

A pattern is a regular expression, as Java and Python read it, for the text that jmx_exporter makes of an attribute:
``domain<type=Produce, user=alice, client-id="a,b"><>byte-rate: 12.5``. Key properties come in the order in which the
broker wrote them, their values as they are: what ``ObjectName.quote`` quoted stays quoted. In quotes, a backslash
stands before ``"``, ``\``, ``*``, ``?`` and the n of a line end. A pattern holds no dot, which in Java stops at six
kinds of line ends, and no repetition that backtracks, which in Java overflows the stack for a client-id of some
thousand characters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import permutations
from typing import Final

import yaml

from quotascope.metrics.catalog import CALLBACK_THROTTLE_FACTOR, Family, FamilyType
from quotascope.metrics.catalog.family import counter, gauge

from .mapping import ATTRIBUTES, MILLISECONDS, Attribute, Meaning

TAGS: Final = "tags"
"""The label in which an agent has all tags of a custom quota callback, as they stand in the bean's name."""

THROTTLE_MEAN = gauge(
    "kafka_quota_request_throttle_mean_seconds",
    "Mean throttle time reported in responses since the broker started, by request; times "
    "kafka_quota_requests_total it is their sum.",
    ("broker", "request"),
    "seconds",
    "kafka.network:type=RequestMetrics,name=ThrottleTimeMs Mean / 1000",
)
REQUESTS = counter(
    "kafka_quota_requests_total",
    "Responses since the broker started, by request, throttled or not.",
    ("broker", "request"),
    "requests",
    "kafka.network:type=RequestMetrics,name=ThrottleTimeMs Count",
)
EVENT_QUEUE_MEAN = gauge(
    "kafka_quota_controller_event_queue_mean_seconds",
    "Mean time that events of the controller waited to be handled; times kafka_quota_controller_events_total it "
    "is their sum.",
    ("broker",),
    "seconds",
    "kafka.controller:type=ControllerEventManager,name=EventQueueTimeMs Mean / 1000",
)
ACTIVE_CONTROLLER = gauge(
    "kafka_quota_active_controller",
    "1 when this node is the active controller, else 0.",
    ("broker",),
    "",
    "kafka.controller:type=KafkaController,name=ActiveControllerCount Value",
)
START_TIME = gauge(
    "kafka_quota_node_start_time_seconds",
    "When the node with this id was started, in seconds since 1970.",
    ("node_id",),
    "seconds",
    "kafka.server:type=app-info,id=N StartTimeMs / 1000",
)

STRIMZI_LIMIT = gauge(
    "kafka_quota_callback_static_limit",
    "Limit of Strimzi's quotas plugin as configured: bytes per second, or percent of a thread for requests.",
    ("broker", "name"),
    "",
    "io.strimzi.kafka.quotas:type=StaticQuotaCallback Value",
)
STRIMZI_FACTOR = gauge(
    "kafka_quota_callback_static_factor_ratio",
    "What Strimzi's quotas plugin multiplies the produce limit by.",
    ("broker", "observing_broker"),
    "ratio",
    "io.strimzi.kafka.quotas:type=ThrottleFactor,name=ThrottleFactor Value",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """The name of one attribute in the rules of an agent."""

    attribute: Attribute
    family: Family
    divisor: float
    """Kafka's unit divided by this is the family's."""
    constants: Mapping[str, str]
    """Labels with a value that is the same for every bean."""
    properties: Mapping[str, str]
    """Key properties of the bean, by the label that takes their value."""


_IN_PARTS: Final[Mapping[Meaning | Family, tuple[Family, float]]] = {
    Meaning.REQUEST_THROTTLE_MEAN: (THROTTLE_MEAN, MILLISECONDS),
    Meaning.REQUEST_THROTTLE_COUNT: (REQUESTS, 1.0),
    Meaning.CONTROLLER_EVENT_MEAN: (EVENT_QUEUE_MEAN, MILLISECONDS),
    Meaning.ACTIVE_CONTROLLER: (ACTIVE_CONTROLLER, 1.0),
    Meaning.STARTED_AT: (START_TIME, MILLISECONDS),
    Meaning.CALLBACK_LIMIT: (STRIMZI_LIMIT, 1.0),
    CALLBACK_THROTTLE_FACTOR: (STRIMZI_FACTOR, 1.0),
}
_PROPERTIES: Final = {
    "client_id": "client-id",
    "node_id": "id",
    "observing_broker": "observingBrokerId",
}


def _named(attribute: Attribute) -> Name:
    """Return the name of an attribute: that of its family, or of a family that only agents have (`_IN_PARTS`)."""
    family, divisor = attribute.family, attribute.divisor
    if family is None or attribute.meaning in _IN_PARTS:
        family, divisor = _IN_PARTS[attribute.meaning]
    constants: dict[str, str] = {}
    if "quota_type" in family.labels and attribute.quota_type is not None:
        constants["quota_type"] = attribute.quota_type.label
    for label in {"direction", "pool", "percentile"}.intersection(family.labels):
        constants[label] = attribute.part
    return Name(
        attribute=attribute,
        family=family,
        divisor=divisor,
        constants=constants,
        properties={
            label: _PROPERTIES.get(label, label)
            for label in family.labels
            if label != "broker" and label not in constants
        },
    )


NAMES: Final = tuple(_named(attribute) for attribute in ATTRIBUTES)
"""The names of all attributes, in the order of the table."""

_BY_ATTRIBUTE: Final = {id(name.attribute): name for name in NAMES}


def name_of(attribute: Attribute) -> Name:
    """Return the name of an attribute in the table. Raises ``KeyError`` for one that brokers do not have."""
    return _BY_ATTRIBUTE[id(attribute)]


_QUOTED: Final = r'"(?:[^"\\]|\\["\\*?n])*+"'
_PLAIN: Final = r'[^",=:*?<>]*+'
_VALUE: Final = rf'(?:"([^"\\]*+)"|({_QUOTED}|{_PLAIN}))'
"""
Pattern of a value: two groups, of which one takes part.

A value that was quoted for harmless characters alone comes without its quotes.
"""
_TAG: Final = rf'[^",=:*?<>]++=(?:{_QUOTED}|{_PLAIN})'
_GROUPS_OF_VALUE: Final = 2


def pattern_of(name: Name) -> tuple[str, dict[str, str]]:
    """Return one pattern for an attribute of all its beans, and for each label the groups that make up its value."""
    attribute = name.attribute
    fixed = [f", {key}={_literal(value)}" for key, value in attribute.fixed.items()]
    head = f"^{_literal(attribute.domain)}<type={_literal(attribute.type)}"
    tail = f"><>{_literal(attribute.name)}: "
    if attribute.open:
        return f"{head}, ({_TAG}(?:, {_TAG})*+){tail}", {}
    # Kafka writes the name next to the type, and promises no order of what follows
    head += "".join(fixed[:1])
    free = {f", {key}={_VALUE}": label for label, key in name.properties.items()}
    texts: list[str] = []
    groups: dict[str, str] = {}
    count = 0
    # one alternative for each order of the properties; a group has one number in all of the pattern
    for order in permutations([*fixed[1:], *free]):
        # not possessive: Java would keep the group of an order that failed later on
        parts = order if attribute.required else [f"(?:{part})?" for part in order]
        texts.append("".join(parts))
        for label in (free[part] for part in order if part in free):
            for _ in range(_GROUPS_OF_VALUE):
                count += 1
                groups[label] = f"{groups.get(label, '')}${count}"
    middle = "|".join(texts)
    return head + (f"(?:{middle})" if len(texts) > 1 else middle) + tail, groups


def _literal(text: str) -> str:
    """Return a pattern that matches exactly this text."""
    # re.escape would put backslashes before hyphens
    return re.sub(r"([.\\*+?^${}()|\[\]])", r"\\\1", text)


_HEAD: Final = """\
# Rules for jmx_exporter, written by `quotascope rules jmx-exporter`: Kafka's quotas under the names and \
units of quotascope.
#
#   java -javaagent:jmx_prometheus_javaagent.jar=9404:THIS_FILE ...
#
# quotascope reads the page like every other source (dialect quotascope_rules), and adds what no broker reports: limits,
# rules, utilization and causes. Where Prometheus scrapes the page itself, mind what rules cannot do:
#
# - user is percent-encoded, as Kafka writes it (svc%3Ateam%20a). A client_id with a quote, a backslash, an asterisk, \
a question mark
#   or a line end stays as Java quotes it, in quotes and with backslashes; all others are as the client gave them.
# - A throttle time is NaN as long as there was none, and kafka_quota_request_queue_seconds of a request that never \
came is 0.
# - kafka_quota_controller_mutation_tokens of a client without a limit is 1e20.
# - Entities left over from earlier rules are there too, for an hour.
# - The sums of throttle times and of the controller's waits are not there, but their means and counts.
# - There is no label broker: the target identifies it. Both this page and quotascope in one Prometheus count \
everything twice.
#
# To keep the rules that you have, put those below before them, and the object names into their list, if they have one.

startDelaySeconds: 0
lowercaseOutputName: false
lowercaseOutputLabelNames: false
"""


_RULES_HEAD: Final = """
# The first rule that matches counts, and nothing without a rule is shown. The beans of clients are many: for them the
# agent remembers which rule matched (cache): a few kilobytes of heap for each bean, in return for quicker scrapes.
rules:
"""


def jmx_exporter_rules() -> str:
    """Return the rules file: YAML with comments."""
    patterns = dict.fromkeys(name.attribute.pattern for name in NAMES)
    parts = [
        _HEAD,
        "\n# Nothing else is read.\nincludeObjectNames: &beans\n",
        *(f'  - "{pattern}"\n' for pattern in patterns),
        "# The same key for agents before 0.20.\nwhitelistObjectNames: *beans\n",
        _RULES_HEAD,
    ]
    for name in sorted(NAMES, key=lambda name: not _is_by_client(name)):
        text = yaml.safe_dump([rule_of(name)], sort_keys=False, width=10_000, allow_unicode=True)
        parts.extend(f"  {line}\n" for line in text.splitlines())
    return "".join(parts)


def rule_of(name: Name) -> dict[str, object]:
    """Return the rule of an attribute, as it stands in the list ``rules``."""
    pattern, groups = pattern_of(name)
    labels = {**name.constants, **groups}
    if name.attribute.open:
        labels[TAGS] = "$1"
    return {
        "pattern": pattern,
        "name": name.family.name,
        "type": "COUNTER" if name.family.type is FamilyType.COUNTER else "GAUGE",
        "help": name.family.help,
        **({"valueFactor": 1 / name.divisor} if name.divisor != 1 else {}),
        **({"labels": labels} if labels else {}),
        **({"cache": True} if _is_by_client(name) else {}),
    }


def _is_by_client(name: Name) -> bool:
    """Return whether there is one bean of this attribute for each client."""
    return name.attribute.open or "client_id" in name.properties
