"""
Strimzi's metrics-reporter, a plugin of the broker that needs no JMX.

Names are made of Kafka's group and name in lower case, labels are Kafka's tags as they are:
client ids are not quoted, and a tag without a value is an empty label.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...beans import Bean, BeanColumn
from ...mapping import ATTRIBUTES, SERVER, wanted
from .bean_families import places
from .dialect import TextDialect
from .node_columns import ACTIVE_CONTROLLER, app_info, refusals

_PLACES: Final = places(
    attribute for attribute in ATTRIBUTES if attribute.domain == SERVER
)
_KEYS: Final = {"client_id": "client-id"}
_START: Final = "kafka_server_app_info_start_time_ms"
_ACTIVE: Final = "kafka_controller_kafkacontroller_activecontrollercount"
_ERRORS: Final = "kafka_network_requestmetrics_errorspersec_total"


def column_of(name: str, labels: Mapping[str, str]) -> BeanColumn | None:
    """The column of a sample, None when it is of no use."""
    place = _PLACES.get(name)
    if place is not None:
        domain, kind, attribute = place
        tags = {_KEYS.get(key, key): value for key, value in labels.items() if value}
        return wanted(BeanColumn(Bean.of(domain, {**tags, "type": kind}), attribute))
    if name == _START and labels.get("client_id"):
        return app_info(labels["client_id"])
    if name == _ACTIVE:
        return ACTIVE_CONTROLLER
    return refusals(labels) if name == _ERRORS else None


STRIMZI: Final = TextDialect(
    name="strimzi",
    marks=tuple(  # and the delay queues of an agent whose allowlist holds nothing else
        f"{name}{end}"
        for name, (_, kind, _) in _PLACES.items()
        if kind in {"Produce", "Fetch", "Request", "ControllerMutation"}
        for end in "{ "
    ),
    # a jmx_exporter, which unlike the reporter explains each metric
    not_beside=("jmx_", "# HELP kafka_server_"),
    prefixes=(
        "kafka_server_produce_",
        "kafka_server_fetch_",
        "kafka_server_request_",
        "kafka_server_controllermutation_",
        "kafka_server_socket_server_metrics_",
        "kafka_server_leaderreplication_",
        "kafka_server_followerreplication_",
        "kafka_server_alterlogdirsreplication_",
        "kafka_server_rlm",
        "kafka_server_remotelogmanager_",
        _START,
        _ACTIVE,
        f"{_ERRORS}{{",
    ),
    column_of=column_of,
    advice="the operator's default allowlist has no quota metrics: add "
    "kafka_server_(produce|fetch|request|controllermutation)_.* to the allowList of metricsConfig",
)
