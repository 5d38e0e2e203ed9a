"""A thread that ends throttles in time, for programs that embed the engine."""

import logging
import threading
import time
from collections.abc import Callable

from .clock import Clock, wall_clock_ms
from .reaper import ThrottledChannelReaper

_log = logging.getLogger(__name__)


class ReaperThread:
    """
    Reaps until closed (Kafka: the thread `<prefix>ThrottledChannelReaper-<Type>`).

    It waits for the next deadline or, with nothing to wait for, a second at a time. A callback that raises is logged;
    the thread continues, where Kafka's would end and leave every later channel muted.

    Args:
        reaper: of the channels.
        name: of the thread.
        clock: epoch ms, for the metric.
        monotonic_ns: for the deadlines.

    """

    def __init__(
        self,
        reaper: ThrottledChannelReaper,
        name: str,
        clock: Clock = wall_clock_ms,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._reaper = reaper
        self._clock = clock
        self._monotonic_ns = monotonic_ns
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop; channels that are still throttled stay in the queue."""
        self._closed.set()
        self._reaper.queue.wake()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        while not self._closed.is_set():
            if not self._reap():
                self._reaper.queue.wait(self._monotonic_ns(), timeout_s=1.0)

    def _reap(self) -> bool:
        try:
            return self._reaper.reap(self._clock(), self._monotonic_ns())
        except Exception:  # noqa: BLE001 - logged in full
            _log.exception("a throttle callback failed")
            return True
