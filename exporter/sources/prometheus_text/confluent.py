"""
The rules of Confluent's jmx-monitoring-stacks.

They give Produce, Fetch and Request by entity. Beans with nothing but a type are left out, and
so are ControllerMutation and app-info: no delay queue, no mutations, no node id.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...beans import Bean, BeanColumn
from ...mapping import ATTRIBUTES, wanted
from .bean_families import places
from .dialect import TextDialect
from .node_columns import ACTIVE_CONTROLLER, refusals
from .rejoined import rejoined

_ENTITIES: Final = places(
    attribute for attribute in ATTRIBUTES if "user" in attribute.free
)
_KEYS: Final = {"user": "user", "client_id": "client-id"}
_ACTIVE: Final = "kafka_controller_kafkacontroller_activecontrollercount"
_ERRORS: Final = "kafka_network_requestmetrics_errorspersec"


def column_of(name: str, labels: Mapping[str, str]) -> BeanColumn | None:
    """The column of a sample, None when it is of no use."""
    place = _ENTITIES.get(name)
    if place is not None and labels.keys() <= _KEYS.keys():
        domain, kind, attribute = place
        tags = ((_KEYS[label], labels[label]) for label in _KEYS if label in labels)
        properties = rejoined((("type", kind), *tags))
        if not properties:
            return None
        return wanted(BeanColumn(Bean.of(domain, properties), attribute))
    if name == _ACTIVE:
        return ACTIVE_CONTROLLER
    return refusals(labels) if name == _ERRORS else None


CONFLUENT: Final = TextDialect(
    name="confluent",
    marks=tuple(f"{name}{{" for name in _ENTITIES),
    prefixes=(
        "kafka_server_produce_",
        "kafka_server_fetch_",
        "kafka_server_request_",
        "kafka_server_controllermutation_",
        _ACTIVE,
        f"{_ERRORS}{{",
    ),
    column_of=column_of,
    advice="check that the agent's rules hold the three under `# Quotas` of Confluent's kafka_broker.yml",
)
