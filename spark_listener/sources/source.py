"""The interface of a source of events, and the delay of an event."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

_TIMES: dict[str, tuple[str, ...]] = {
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
Fields in which JsonProtocol writes the time at which the event was posted, in ms since 1970.

Other times mean something else: a TaskStart has the launch that may precede a long queue, a progress the start of its
batch.
"""


class EventSource(Protocol):
    """Source of the events of one application for its job."""

    @property
    def name(self) -> str:
        """Name of the source: pull, callbacks, streaming or event_log."""
        ...

    @property
    def ended(self) -> bool:
        """True if the end of the application was among the events; none follows."""
        ...

    def collect(self) -> float:
        """Fetch the new events. Returns the delay of the latest in seconds; raises when the source is gone."""
        ...

    def close(self) -> None:
        """Fetch the last events, and leave nothing behind in Spark. Raises when Spark is gone."""
        ...


def lateness(event: Mapping[str, Any], now: float) -> float:
    """
    Return the seconds since an event was posted, 0 if it does not have that time.

    An event about a task that ended long before (Resubmitted) has that of the task's end. The driver stamps its events
    itself, but a log may come from a machine with a clock that is ahead: the result is never below 0.

    Args:
        event: an event, as JsonProtocol writes it.
        now: present time, seconds since 1970.

    """
    reason = event.get("Task End Reason")
    if isinstance(reason, Mapping) and reason.get("Reason") == "Resubmitted":
        return 0.0
    keys = _TIMES.get(str(event.get("Event")))
    if keys is None:
        return 0.0
    value: Any = event
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    if not isinstance(value, int) or value <= 0:
        return 0.0
    return max(0.0, now - value / 1000)
