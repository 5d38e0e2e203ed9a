"""
The rules of jmx_exporter's example ``kafka-2_0_0.yml``.

Their three quota rules are, shortened, ``type=(.+), user=(.+), client-id=(.+)``, ``type=(.+),
client-id=(.+)`` and ``type=(.+), user=(.+)``. They give no delay queue, no exempt request
time and no throttle by request; all that concerns an entity is there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...beans import Bean, BeanColumn
from ...mapping import ATTRIBUTES, SERVER, wanted
from .dialect import TextDialect
from .node_columns import ACTIVE_CONTROLLER, app_info, refusals
from .rejoined import rejoined

_QUOTA: Final = "kafka_server_quota_"
_START: Final = f"{_QUOTA}start_time_ms"
_ACTIVE: Final = "kafka_controller_kafkacontroller_activecontrollercount"
_ERRORS: Final = "kafka_network_requestmetrics_errors_total"
_ATTRIBUTES: Final = {
    f"{_QUOTA}{attribute.name.replace('-', '_')}": attribute.name
    for attribute in ATTRIBUTES
    if "user" in attribute.free and attribute.brokers_have_it
}
_KEYS: Final = {"resource": "type", "user": "user", "clientId": "client-id"}


def column_of(name: str, labels: Mapping[str, str]) -> BeanColumn | None:
    """The column of a sample, None when it is of no use."""
    attribute = _ATTRIBUTES.get(name)
    if attribute is not None:
        properties = rejoined(
            (_KEYS[label], labels[label]) for label in _KEYS if label in labels
        )
        if not properties:
            return None
        return wanted(BeanColumn(Bean.of(SERVER, properties), attribute))
    if name == _START and labels.get("resource") == "app-info":
        # Where the id is a client-id, the node's own app-info has the same: it names no client.
        return app_info(labels.get("clientId", ""))
    if name == _ACTIVE:
        return ACTIVE_CONTROLLER
    return refusals(labels) if name == _ERRORS else None


KAFKA_2_0_0: Final = TextDialect(
    name="kafka_2_0_0",
    marks=(_QUOTA,),
    prefixes=(_QUOTA, _ACTIVE, f"{_ERRORS}{{"),
    column_of=column_of,
    advice="check that the agent's rules hold all three quota rules of kafka-2_0_0.yml: "
    "the one for users without a client-id came only in 2023",
)
