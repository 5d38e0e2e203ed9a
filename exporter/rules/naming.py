"""
What an agent with our own rules calls each attribute: our families, in our units.

An agent shows one attribute at a time. Where a family is made of two, or where none shows an attribute because it
only serves others, the agent has a family of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from quotascope.metrics.catalog import Family
from quotascope.metrics.catalog.family import counter, gauge

from ..mapping import ATTRIBUTES, MILLISECONDS, Attribute, Meaning

TAGS: Final = "tags"
"""The label of an agent for all tags of a custom quota callback, as they stand in the bean's name."""

THROTTLE_MEAN = gauge(
    "kafka_quota_request_throttle_mean_seconds",
    "Mean throttle time told in responses since the broker started, by request; times kafka_quota_requests_total it is their sum.",
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
    "Mean time that events of the controller waited to be handled; times kafka_quota_controller_events_total it is their sum.",
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """What an agent calls one attribute."""

    attribute: Attribute
    family: Family
    divisor: float
    """Kafka's unit divided by this is the family's."""
    constants: Mapping[str, str]
    """Labels that are the same for every bean."""
    properties: Mapping[str, str]
    """Key properties of the bean by the label that has their value."""


_IN_PARTS: Final = {
    Meaning.REQUEST_THROTTLE_MEAN: (THROTTLE_MEAN, MILLISECONDS),
    Meaning.REQUEST_THROTTLE_COUNT: (REQUESTS, 1.0),
    Meaning.CONTROLLER_EVENT_MEAN: (EVENT_QUEUE_MEAN, MILLISECONDS),
    Meaning.ACTIVE_CONTROLLER: (ACTIVE_CONTROLLER, 1.0),
    Meaning.STARTED_AT: (START_TIME, MILLISECONDS),
}
_PROPERTIES: Final = {"client_id": "client-id", "node_id": "id"}


def _named(attribute: Attribute) -> Name:
    family, divisor = attribute.family, attribute.divisor
    if family is None or attribute.meaning in _IN_PARTS:
        family, divisor = _IN_PARTS[attribute.meaning]
    constants = dict(_constants(attribute, family))
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


def _constants(attribute: Attribute, family: Family) -> Iterator[tuple[str, str]]:
    if "quota_type" in family.labels and attribute.quota_type is not None:
        yield "quota_type", attribute.quota_type.label
    if "direction" in family.labels:
        yield "direction", attribute.direction


NAMES: Final = tuple(map(_named, filter(lambda row: row.brokers_have_it, ATTRIBUTES)))
"""In the order of the table."""

_BY_ATTRIBUTE: Final = {id(name.attribute): name for name in NAMES}


def name_of(attribute: Attribute) -> Name:
    """What an agent calls an attribute of the table that brokers have. Raises ``KeyError`` for others."""
    return _BY_ATTRIBUTE[id(attribute)]
