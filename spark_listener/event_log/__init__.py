"""Reads the event logs of finished and of running applications."""

from ..errors import CodecUnusable, EventLogDamaged, EventLogError, NoEventLog
from .files import logs_of
from .log import EventLog, event_of

__all__ = [
    "CodecUnusable",
    "EventLog",
    "EventLogDamaged",
    "EventLogError",
    "NoEventLog",
    "event_of",
    "logs_of",
]
