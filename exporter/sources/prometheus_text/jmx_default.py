"""
What jmx_exporter gives without rules: domain, type and attribute make the name, the other key properties are labels.

Amazon MSK's open monitoring (port 11001) is such an agent. ``lowercaseOutputName`` and
``lowercaseOutputLabelNames`` are understood. All that Jolokia gives is there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from quotascope.metrics import MalformedName, unquote_tag_value

from ...beans import Bean, BeanColumn
from ...mapping import wanted
from .bean_families import places, with_both_cases
from .dialect import TextDialect

_PLACES: Final = places()
_KEYS: Final = {"client_id": "client-id"}
_QUOTAS: Final = tuple(
    f"kafka_server_{kind}_"
    for kind in ("Produce", "Fetch", "Request", "ControllerMutation")
)
_UNTYPED: Final = tuple(
    f"# TYPE {name} {kind}"
    for name in _PLACES
    if name.startswith(tuple(map(str.lower, _QUOTAS)))
    for kind in ("untyped", "unknown")
)
_LEADS: Final = "kafka_controller_KafkaController_Value{"


def column_of(name: str, labels: Mapping[str, str]) -> BeanColumn | None:
    """The column of a sample, None when it is of no use."""
    place = _PLACES.get(name.lower())
    if place is None:
        return None
    domain, kind, attribute = place
    try:
        properties = {
            _KEYS.get(label, label): unquote_tag_value(value)
            for label, value in labels.items()
        }
    except MalformedName:
        return None
    return wanted(BeanColumn(Bean.of(domain, {**properties, "type": kind}), attribute))


JMX_DEFAULT: Final = TextDialect(
    name="jmx_default",
    # in lower case, the quotas' names are those of other dialects as well, but there a rule gives them a type
    marks=(*_QUOTAS, _LEADS, _LEADS.lower(), *_UNTYPED),
    prefixes=with_both_cases(
        (
            *_QUOTAS,
            _LEADS,
            "kafka_controller_ControllerEventManager_Mean{",
            "kafka_controller_ControllerEventManager_Count{",
            "kafka_network_RequestMetrics_Mean{",
            "kafka_network_RequestMetrics_Count{",
            "kafka_server_app_info_StartTimeMs{",
            "kafka_server_socket_server_metrics_",
            "kafka_server_LeaderReplication_",
            "kafka_server_FollowerReplication_",
            "kafka_server_AlterLogDirsReplication_",
            "kafka_server_RLM",
            "kafka_server_RemoteLogManager_",
        )
    ),
    column_of=column_of,
    advice="check that no includeObjectNames or excludeObjectNames of the agent leaves out kafka.server:type=Produce and the like",
)
