"""Readers of the event logs of finished and of running applications."""

from ..errors import CodecUnusable, EventLogDamaged, EventLogError, NoEventLog
from .files import logs_of
from .log import EventLog, event_of
from .sorting import TooLarge, in_order

__all__ = [
    "CodecUnusable",
    "EventLog",
    "EventLogDamaged",
    "EventLogError",
    "NoEventLog",
    "TooLarge",
    "event_of",
    "in_order",
    "logs_of",
]
