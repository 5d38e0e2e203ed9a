"""
How much thread time a sensor can hold, by what the log tells: the limits of what may be inferred.

Without them any rule could be explained by enough unlogged time, and a comparison that cannot fail proves nothing.
"""

from typing import Final

from quotascope.metrics import MetricConfig, WindowedSum

from .percent import PERCENT_PER_MS

MOST_SHARE: Final = 2.0
"""
Ms of network thread for each ms of `sendTimeMs`, at most; real brokers charge 0.7 where many answers leave at once, since each waits for
the others, and up to 1.4 where one leaves alone, since reading the request is charged as well.
"""
MOST_OPENING_MS: Final = 100.0
"""Ms of network thread for opening and authenticating a connection, at most; a JVM that has just started takes 30."""


class PlausibleTime:
    """The least and the most percent that one sensor may hold, over the same windows as the sensor's own."""

    __slots__ = ("_least", "_most")

    def __init__(self) -> None:
        self._least = WindowedSum()
        self._most = WindowedSum()

    def handled(self, config: MetricConfig, now_ms: int, thread_ms: float) -> None:
        """A handler thread was busy, as the log tells."""
        percent = thread_ms * PERCENT_PER_MS
        self._least.record(config, percent, now_ms)
        self._most.record(config, percent, now_ms)

    def sent(
        self, config: MetricConfig, now_ms: int, send_ms: float, *, opened: bool
    ) -> None:
        """An answer has left, and a connection was `opened` for its request."""
        most_ms = send_ms * MOST_SHARE + (MOST_OPENING_MS if opened else 0.0)
        self._least.record(config, 0.0, now_ms)
        self._most.record(config, most_ms * PERCENT_PER_MS, now_ms)

    def bounds(self, config: MetricConfig, now_ms: int) -> tuple[float, float]:
        """The least and the most that the sensor's windows can hold."""
        return self._least.measure(config, now_ms), self._most.measure(config, now_ms)
