"""
How the rules of jmx_exporter's ``kafka-2_0_0.yml`` name what they read, and back.

Their three quota rules are, shortened, ``type=(.+), user=(.+), client-id=(.+)``, ``type=(.+),
client-id=(.+)`` and ``type=(.+), user=(.+)``. They match greedily, so a client-id that
looks like a part of an MBean's name is cut in the wrong place: but joined again, the labels
are the name as it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from quotascope.metrics import MalformedName, unquote_tag_value

from ...beans import Bean, Column
from ...mapping import ATTRIBUTES, SERVER, wanted

_QUOTA: Final = "kafka_server_quota_"
_START: Final = f"{_QUOTA}start_time_ms"
_ACTIVE: Final = "kafka_controller_kafkacontroller_activecontrollercount"
_ERRORS: Final = "kafka_network_requestmetrics_errors_total"
PREFIXES: Final = (_QUOTA, _ACTIVE, f"{_ERRORS}{{")
"""What the lines of interest begin with."""

_ATTRIBUTES: Final = {
    f"{_QUOTA}{attribute.name.replace('-', '_')}": attribute.name
    for attribute in ATTRIBUTES
    if "user" in attribute.free and attribute.brokers_have_it
}
_LABELS: Final = {"resource": "type", "user": "user", "clientId": "client-id"}
_PROPERTY: Final = re.compile(
    r'(type|user|client-id)=("(?:[^"\\]|\\.)*"|[^",]*)(?:, |\Z)', re.DOTALL
)


def column_of(key: tuple[str, tuple[tuple[str, str], ...]]) -> Column | None:
    """The column of a sample, None when it is of no use."""
    name, labels = key[0], dict(key[1])
    attribute = _ATTRIBUTES.get(name)
    if attribute is not None:
        return _entity_column(labels, attribute)
    column = _other_column(name, labels)
    return None if column is None else wanted(column)


def _entity_column(labels: Mapping[str, str], attribute: str) -> Column | None:
    text = ", ".join(
        f"{_LABELS[label]}={labels[label]}" for label in _LABELS if label in labels
    )
    try:
        properties = dict(_properties(text))
    except MalformedName:
        return None
    return wanted(Column(Bean.of(SERVER, properties), attribute))


def _properties(text: str) -> Iterator[tuple[str, str]]:
    position = 0
    while position < len(text):
        found = _PROPERTY.match(text, position)
        if found is None:
            raise MalformedName(text, "not the properties of a quota bean")
        yield found[1], unquote_tag_value(found[2])
        position = found.end()


def _other_column(name: str, labels: Mapping[str, str]) -> Column | None:
    if name == _START and labels.get("resource") == "app-info":
        # Where the id is a client-id, the node's own app-info has the same: it names no client.
        properties = {"type": "app-info", "id": labels.get("clientId", "")}
        return Column(Bean.of(SERVER, properties), "StartTimeMs")
    if name == _ACTIVE:
        properties = {"type": "KafkaController", "name": "ActiveControllerCount"}
        return Column(Bean.of("kafka.controller", properties), "Value")
    if name == _ERRORS:
        properties = {"type": "RequestMetrics", "name": "ErrorsPerSec", **labels}
        return Column(Bean.of("kafka.network", properties), "Count")
    return None
