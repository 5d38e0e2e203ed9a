"""When an event happened, by the driver's clock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_PLACES: dict[str, tuple[str, ...]] = {
    "SparkListenerApplicationEnd": ("Timestamp",),
    "SparkListenerExecutorAdded": ("Timestamp",),
    "SparkListenerExecutorRemoved": ("Timestamp",),
    "SparkListenerJobEnd": ("Completion Time",),
    "SparkListenerJobStart": ("Submission Time",),
    "SparkListenerStageCompleted": ("Stage Info", "Completion Time"),
    "SparkListenerStageSubmitted": ("Stage Info", "Submission Time"),
    "SparkListenerTaskEnd": ("Task Info", "Finish Time"),
}
"""
Where JsonProtocol writes the time at which the event was posted, in ms since 1970.

Not among them are times of something else: a TaskStart has the launch that may precede a long queue, a progress the start of its batch.
"""


def lateness(event: Mapping[str, Any], now: float) -> float:
    """
    How long ago the event was posted, in seconds; 0 where it does not say.

    `now` is seconds since 1970. The driver stamps its events itself, but a log may come from a machine whose clock is ahead: never below 0.
    """
    value: Any = event
    for key in _PLACES.get(str(event.get("Event")), ("",)):
        value = value.get(key) if isinstance(value, Mapping) else None
    if not isinstance(value, int) or value <= 0:
        return 0.0
    return max(0.0, now - value / 1000)
