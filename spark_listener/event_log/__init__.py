"""Reads the event logs of finished and of running applications."""

from ..errors import CodecUnusable, EventLogDamaged, EventLogError, NoEventLog
from .log import EventLog

__all__ = [
    "CodecUnusable",
    "EventLog",
    "EventLogDamaged",
    "EventLogError",
    "NoEventLog",
]
