"""What can go wrong with reading an event."""

from __future__ import annotations

from ..errors import SparkListenerError


class UnreadableEvent(SparkListenerError):
    """An event lacks what every version of Spark writes."""
