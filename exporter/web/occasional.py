"""Log lines about what strangers can cause as often as they like."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import structlog

log = structlog.get_logger()

_EVERY_SECONDS: Final = 60.0


class Occasional:
    """
    Logs an event at once, and then at most once a minute, with how often it happened since.

    Args:
        event: What happened.
        level: Of the log line.
        clock: Steady seconds.

    """

    def __init__(
        self,
        event: str,
        level: str = "warning",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._event = event
        self._level = level
        self._clock = clock
        self._count = 0
        self._logged_at = float("-inf")

    def happened(self, **details: object) -> None:
        """It happened; ``details`` are of this time, and logged when there is a line."""
        self._count += 1
        at = self._clock()
        if at - self._logged_at >= _EVERY_SECONDS:
            getattr(log, self._level)(self._event, times=self._count, **details)
            self._count, self._logged_at = 0, at
