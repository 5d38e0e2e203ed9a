"""
What can go wrong with reading an event log.

::

    EventLogError
    ├── NoEventLog          there is none, or the file is something else
    ├── CodecUnusable       it is compressed by something that cannot be read here
    └── EventLogDamaged     what is there cannot be decompressed
"""

from __future__ import annotations

from ..errors import SparkListenerError


class EventLogError(SparkListenerError):
    """An event log cannot be read."""


class NoEventLog(EventLogError):
    """There is none."""


class CodecUnusable(EventLogError):
    """It cannot be decompressed here."""


class EventLogDamaged(EventLogError):
    """Its bytes are not what the codec writes."""
