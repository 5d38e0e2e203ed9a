"""
The spellings under which agents show Kafka's quota metrics.

Kafka's side is fixed: types, attributes, and the tags user and client-id. The rules of an agent choose everything else:
a prefix, upper or lower case, what stands between words, the labels' names, and whether type and attribute stand in the
name or in a label. Texts are compared without case and separators, so a table needs one entry for ``clientId`` and
``client_id``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from typing import Final

from quotascope.metrics.catalog import families
from quotascope.metrics.kafka.entities import QuotaType

APP_INFO: Final = "app-info"
"""The type of the MBean that has the node id in its name, and the node's start as an attribute."""

_LONGEST_NAME: Final = 300
"""Characters; Kafka's own parts of a name have 40."""


class Role(Enum):
    """The part of a quota MBean's name that a label holds."""

    TYPE = "type"
    USER = "user"
    CLIENT_ID = "client-id"
    ATTRIBUTE = "attribute"
    OBJECT_NAME = "_objectname"
    """All of it: jmx_exporter adds this label where the labels of a rule are the same for two MBeans."""


_ROLES: Final = {
    Role.TYPE: ("resource", "type", "quotatype", "quota", "kind", "resourcetype", "quotakind", "mbeantype", "beantype"),
    Role.USER: ("user", "username", "principal", "kafkauser", "quotauser", "userprincipal", "principalname"),
    Role.CLIENT_ID: ("clientid", "client", "clientname", "kafkaclientid", "quotaclientid", "kafkaclient"),
    Role.ATTRIBUTE: ("attribute", "attributename", "attr", "metric", "metricname", "quotametric", "measure"),
    Role.OBJECT_NAME: ("objectname",),
}
"""Spellings of labels by role, the usual one first: where a line has two of them, the first counts."""
_ROLE_OF: Final = {
    spelling: (role, rank) for role, spellings in _ROLES.items() for rank, spelling in enumerate(spellings)
}

_NODE_LABELS: Final = frozenset(
    [
        "instance",
        "pod",
        "podname",
        "node",
        "nodename",
        "nodeid",
        "host",
        "hostname",
        "broker",
        "brokerid",
        "brokername",
        "server",
        "target",
        "exportedinstance",
        "exportedpod",
        "kubernetespodname",
        "kubernetesnode",
        "k8spodname",
        "machine",
    ]
)
_SCRAPE_LABELS: Final = _NODE_LABELS | frozenset(
    [
        "job",
        "container",
        "containername",
        "endpoint",
        "cluster",
        "clusterid",
        "clustername",
        "kafkacluster",
        "kafkaclusterid",
        "kafkaclustername",
        "namespace",
        "env",
        "environment",
        "region",
        "zone",
        "availabilityzone",
        "az",
        "dc",
        "datacenter",
        "prometheus",
        "prometheusreplica",
        "replica",
        "monitor",
        "stage",
        "statefulset",
        "exportedjob",
        "exportednamespace",
        "site",
        "rack",
    ]
)
_SCRAPE_LABEL_STARTS: Final = ("kubernetes", "k8s", "strimziio", "appkubernetesio", "metakubernetes", "kafkacluster")

_STATISTICS: Final = frozenset(["quantile", "percentile", "le", "statistic", "stat", "aggregation"])

_TYPES: Final = {kind.group.lower(): kind.group for kind in QuotaType}
"""Groups by their names without case and separators."""
_TYPE_TEXTS: Final = {
    **_TYPES,
    **{f"{name}{end}": group for name, group in _TYPES.items() for end in ("quota", "quotas", "s")},
    **{spelling: kind.group for kind in QuotaType for spelling in kind.spellings},
    "appinfo": APP_INFO,
}
"""Groups by the spellings that the value of a label can have."""

TYPES_IN_NAMES: Final = "|".join(kind.label.replace("_", "_?") for kind in QuotaType)
"""A regular expression of the types in names of metrics, in lower case with or without underscores."""

_ATTRIBUTES: Final = {
    "byterate": ("byte-rate", 1.0),
    "byteratebytespersecond": ("byte-rate", 1.0),
    "bytesrate": ("byte-rate", 1.0),
    "bytespersecond": ("byte-rate", 1.0),
    "requesttime": ("request-time", 1.0),
    "requesttimepercent": ("request-time", 1.0),
    "requesttimepercentage": ("request-time", 1.0),
    "mutationrate": ("mutation-rate", 1.0),
    "throttletime": ("throttle-time", 1.0),
    "throttletimems": ("throttle-time", 1.0),
    "throttletimemillis": ("throttle-time", 1.0),
    "throttletimemilliseconds": ("throttle-time", 1.0),
    "throttletimeseconds": ("throttle-time", 1000.0),
    "tokens": ("tokens", 1.0),
    "queuesize": ("queue-size", 1.0),
    "exemptrequesttime": ("exempt-request-time", 1.0),
    "quotautilization": ("quota-utilization", 1.0),
    "starttimems": ("start-time-ms", 1.0),
}
"""Kafka's attribute by its spellings, and the factor from a number in the unit of the name to Kafka's unit."""
_LONGEST_FIRST: Final = sorted(_ATTRIBUTES, key=len, reverse=True)
_TYPE_OF_ATTRIBUTE: Final = {
    "request-time": QuotaType.REQUEST.group,
    "exempt-request-time": QuotaType.REQUEST.group,
    "mutation-rate": QuotaType.CONTROLLER_MUTATION.group,
    "tokens": QuotaType.CONTROLLER_MUTATION.group,
    "start-time-ms": APP_INFO,
}
"""The type of each attribute that only one type has."""
_ENDINGS: Final = ("total", "value", "gauge")
"""Ends that agents and rules put behind a name."""
_STEM: Final = re.compile(
    r"(?P<prefix>.*?)"
    r"(?:kafka(?:server|broker)?(?:clients?)?(?P<quota>quotas?)?|(?:server|broker)?(?:clients?)?(?P<only>quotas?))"
    rf"(?P<type>{'|'.join(_TYPES)}|appinfo)?(?:clients?)?(?P<behind>quotas?)?(?:metrics?)?"
)
_MORE: Final = re.compile(
    rf"(?P<stem>.*?(?:{'|'.join(_TYPES)}|quotas?).*?)(?:{'|'.join(_LONGEST_FIRST)})(?P<rest>(?!created$)[a-z0-9]+)"
)
"""Pattern of the name of a quota metric with more behind it: a statistic, or a unit that is not Kafka's."""
_OTHER: Final = re.compile(
    rf"(?:kafka_?(?:server|broker)?_?(?:clients?_?)?(?:quotas?)?_)(?P<type>{TYPES_IN_NAMES})_"
    r"(?P<rest>(?!user_|client_id_|(?:client_?)?quota|user$|client_?id$)[a-z0-9_]*(?<!_created))"
)
"""
Pattern of names with a quota type and an attribute that Kafka's quotas do not have: about quotas if a label names a
client.
"""
_OURS: Final = frozenset(family.name for family in families())
"""Families of quotascope itself, some of which are spelled like Kafka's."""


@dataclass(frozen=True, slots=True)
class QuotaName:
    """The name of a metric that is spelled like one of Kafka's quota metrics."""

    type: str
    """The group, such as ``Produce``; empty when only a label can tell it."""
    attribute: str
    """Kafka's attribute; empty when only a label can tell it."""
    factor: float
    """Factor from a number of the page to Kafka's unit."""
    certain: bool
    """True if the name alone shows that it is about quotas; others need labels that do."""
    ending: str = ""
    """The text behind the attribute, such as ``ratio`` or ``max``, by which its number is not Kafka's."""


def squeezed(text: str) -> str:
    """Return a text without case and separators."""
    return re.sub(r"[^a-z0-9]+", "", text.lower())


def quota_name(name: str) -> QuotaName | None:
    """Return the meaning of a metric's name, None when it is spelled like no quota metric."""
    return _quota_name(name) if len(name) <= _LONGEST_NAME else None


@lru_cache(maxsize=4096)
def _quota_name(name: str) -> QuotaName | None:
    """
    Return the meaning of a metric's name, None when it is spelled like no quota metric.

    A usual name is a stem with a quota type or the word quota, then an attribute, then an ending that means nothing.
    """
    if name in _OURS:
        return None
    text = squeezed(name)
    for ending in ("", *_ENDINGS):
        if text.endswith(ending):
            body = text.removesuffix(ending)
            spelling = next((spelling for spelling in _LONGEST_FIRST if body.endswith(spelling)), "")
            stem = _STEM.fullmatch(body.removesuffix(spelling))
            if stem is None:
                continue
            says_quota = any(stem[part] for part in ("type", "quota", "only", "behind"))
            if spelling or says_quota:
                attribute, factor = _ATTRIBUTES.get(spelling, ("", 1.0))
                group = _TYPE_TEXTS[stem["type"]] if stem["type"] else _TYPE_OF_ATTRIBUTE.get(attribute, "")
                return QuotaName(group, attribute, factor, certain=bool(says_quota and spelling))
    if _STEM.fullmatch(text):  # such as kafka_server: labels may have the type and the attribute
        return QuotaName("", "", 1.0, certain=False)
    longer = _MORE.fullmatch(text)
    usual = _quota_name(text.removesuffix(longer["rest"])) if longer else None
    if longer and usual and usual.attribute:
        return replace(usual, certain=False, ending=longer["rest"])
    other_attribute = _OTHER.fullmatch(name.lower())
    if other_attribute:
        group = _TYPES[squeezed(other_attribute["type"])]
        return QuotaName(group, "", 1.0, certain=False, ending=other_attribute["rest"])
    return None


_ENTITY_IN_NAME: Final = re.compile(rf"(?:{TYPES_IN_NAMES})_(?:user|client_?id)_")
"""Pattern of the beginning of a user or client-id in the name of a metric, where rules put it there."""


def prefix_of(name: str) -> str:
    """Return the text before the last ``kafka`` in the name of a quota metric, without looking into a client's name."""
    part_before_client = _ENTITY_IN_NAME.split(name.lower(), maxsplit=1)[0]
    return name[: max(part_before_client.rfind("kafka"), 0)]


@lru_cache(maxsize=64)
def group_of(text: str) -> str | None:
    """Return the group that a label's value names, None when it is none that concerns quotas."""
    return _TYPE_TEXTS.get(squeezed(text)) if len(text) <= _LONGEST_NAME else None


def attribute_of_text(text: str) -> tuple[str, float] | None:
    """Return the attribute that a label's value names, and the factor from its number to Kafka's unit."""
    return _ATTRIBUTES.get(squeezed(text)) if len(text) <= _LONGEST_NAME else None


def roles_of(labels: tuple[str, ...]) -> dict[Role, str]:
    """Return the label of each part of a bean's name, the likeliest where several have the same role."""
    ranked: dict[Role, tuple[int, str]] = {}
    for label in labels:
        role_and_rank = _ROLE_OF.get(squeezed(label))
        if role_and_rank is not None:
            role, rank = role_and_rank
            ranked[role] = min(ranked.get(role, (rank, label)), (rank, label))
    return {role: label for role, (_, label) in ranked.items()}


def is_scrape_label(label: str) -> bool:
    """Return whether a label usually describes a whole page: its cluster, its job or its pod."""
    text = squeezed(label)
    return text in _SCRAPE_LABELS or text.startswith(_SCRAPE_LABEL_STARTS)


def is_statistic_label(label: str) -> bool:
    """Return whether a label names the statistic of a number, so that it is no part of a bean's name."""
    return squeezed(label) in _STATISTICS


def is_node_label(label: str) -> bool:
    """Return whether a label usually names the broker of a series."""
    return squeezed(label) in _NODE_LABELS
