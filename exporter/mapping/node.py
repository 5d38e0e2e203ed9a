"""A node itself: Kafka's ``RequestChannelMetrics``, ``QuorumControllerMetrics`` and ``AppInfoParser``."""

from __future__ import annotations

from typing import Final

from quotascope.metrics import QuotaType, catalog

from .attribute import MILLISECONDS, PERCENT, Attribute, Meaning

THROTTLING_ERROR: Final = "THROTTLING_QUOTA_EXCEEDED"
"""Error 89 (KIP-599)."""


def _of_requests(
    name: str, attribute: str, meaning: Meaning, error: str | None = None
) -> Attribute:
    return Attribute(
        domain="kafka.network",
        type="RequestMetrics",
        fixed={"name": name} if error is None else {"name": name, "error": error},
        free=("request",),
        required=True,
        name=attribute,
        meaning=meaning,
        family=catalog.REQUEST_THROTTLED_SECONDS
        if error is None
        else catalog.THROTTLING_ERRORS,
    )


def _of_controller_events(
    attribute: str, meaning: Meaning, family: catalog.Family
) -> Attribute:
    return Attribute(
        domain="kafka.controller",
        type="ControllerEventManager",
        fixed={"name": "EventQueueTimeMs"},
        name=attribute,
        meaning=meaning,
        family=family,
    )


NODE: Final = (
    Attribute(
        type=QuotaType.REQUEST.group,
        name="exempt-request-time",
        meaning=Meaning.EXEMPT_REQUEST_TIME,
        divisor=PERCENT,
        family=catalog.EXEMPT_REQUEST_THREADS,
    ),
    _of_requests("ThrottleTimeMs", "Mean", Meaning.REQUEST_THROTTLE_MEAN),
    _of_requests("ThrottleTimeMs", "Count", Meaning.REQUEST_THROTTLE_COUNT),
    _of_requests("ErrorsPerSec", "Count", Meaning.THROTTLING_ERRORS, THROTTLING_ERROR),
    Attribute(
        domain="kafka.controller",
        type="KafkaController",
        fixed={"name": "ActiveControllerCount"},
        name="Value",
        meaning=Meaning.ACTIVE_CONTROLLER,
    ),
    _of_controller_events(
        "Mean",
        Meaning.CONTROLLER_EVENT_MEAN,
        catalog.CONTROLLER_EVENT_QUEUE_SECONDS,
    ),
    _of_controller_events(
        "Count", Meaning.CONTROLLER_EVENT_COUNT, catalog.CONTROLLER_EVENTS
    ),
    Attribute(
        type="app-info",
        free=("id",),
        required=True,
        name="StartTimeMs",
        meaning=Meaning.STARTED_AT,
        divisor=MILLISECONDS,
    ),
)
