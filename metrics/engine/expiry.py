"""The thread that removes sensors without recent records."""

import logging
import threading
from collections.abc import Callable

from .clock import Clock

_log = logging.getLogger(__name__)

PERIOD_S = 30.0
"""Seconds between two looks at the sensors, as in Kafka."""


class ExpiryThread:
    """
    Calls `expire(now_ms)` after each period until closed (Kafka: `SensorExpiryThread`, every 30 s).

    An error is logged and the next period comes all the same; in Kafka it would be the last.

    Args:
        expire: called with the time in epoch ms.
        clock: where the time comes from.
        period_s: seconds between calls, and before the first; `PERIOD_S` if None.

    """

    def __init__(self, expire: Callable[[int], object], clock: Clock, period_s: float | None = None) -> None:
        self._expire = expire
        self._clock = clock
        self._period_s = PERIOD_S if period_s is None else period_s
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="SensorExpiryThread", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop, waiting for a call that is under way (30 s at most)."""
        self._closed.set()
        if self._thread is not threading.current_thread():
            self._thread.join(timeout=30.0)

    def _run(self) -> None:
        while not self._closed.wait(self._period_s):
            try:
                self._expire(self._clock())
            except Exception:  # noqa: BLE001 - logged; the next period may go well
                _log.exception("expiring sensors failed")
