"""Columns about a node itself, which several dialects give under names of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...beans import Bean, BeanColumn
from ...mapping import SERVER, wanted

ACTIVE_CONTROLLER: Final = BeanColumn(
    Bean.of(
        "kafka.controller", {"type": "KafkaController", "name": "ActiveControllerCount"}
    ),
    "Value",
)


def app_info(node_id: str) -> BeanColumn | None:
    """The start of the node with this id, which tells the id as well."""
    return wanted(
        BeanColumn(Bean.of(SERVER, {"type": "app-info", "id": node_id}), "StartTimeMs")
    )


def refusals(labels: Mapping[str, str]) -> BeanColumn | None:
    """Errors by request, None for errors that are no refusals by a quota."""
    properties = {"type": "RequestMetrics", "name": "ErrorsPerSec", **labels}
    return wanted(BeanColumn(Bean.of("kafka.network", properties), "Count"))
