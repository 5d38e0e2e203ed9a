"""The thread that removes sensors nobody records to."""

import threading
from collections.abc import Callable

from .clock import Clock


class ExpiryThread:
    """
    Calls `expire(now_ms)` after each period until closed (Kafka: `SensorExpiryThread`, every 30 s).

    Args:
        expire: what to do, told the time in epoch ms.
        clock: where the time comes from.
        period_s: seconds between calls, and before the first.

    """

    def __init__(
        self, expire: Callable[[int], object], clock: Clock, period_s: float = 30.0
    ) -> None:
        self._expire = expire
        self._clock = clock
        self._period_s = period_s
        self._closed = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name="SensorExpiryThread", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stop, waiting for a call that is under way (30 s at most)."""
        self._closed.set()
        if self._thread is not threading.current_thread():
            self._thread.join(timeout=30.0)

    def _run(self) -> None:
        while not self._closed.wait(self._period_s):
            self._expire(self._clock())
