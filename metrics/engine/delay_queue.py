"""Connections that stay silent until their deadlines, and the queue that holds them in this order."""

import heapq
from itertools import count
from threading import Condition
from typing import Final

from ..kafka.numbers import tdiv
from .throttle_callback import ThrottleCallback

NANOS_PER_MS: Final = 1_000_000


class ThrottledChannel:
    """
    One throttle of one channel (Kafka: `ThrottledChannel`).

    Making it calls the callback at once with the start of the throttle.

    Args:
        throttle_time_ms: how long.
        callback: called at the start and at the end.
        now_ns: monotonic time in ns; a wall clock that is set may not lengthen a throttle.

    """

    __slots__ = ("_callback", "deadline_ns", "throttle_time_ms")

    def __init__(self, throttle_time_ms: int, callback: ThrottleCallback, now_ns: int) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.deadline_ns: int = now_ns + throttle_time_ms * NANOS_PER_MS
        self._callback = callback
        callback.start_throttling()

    def delay_ms(self, now_ns: int) -> int:
        """Return the remaining whole ms at the monotonic `now_ns`; negative when overdue."""
        return tdiv(self.deadline_ns - now_ns, NANOS_PER_MS)

    def is_due(self, now_ns: int) -> bool:
        """Return whether nothing of the delay remains."""
        return self.deadline_ns <= now_ns

    def notify_throttling_done(self) -> None:
        """Call the callback with the end of the throttle."""
        self._callback.end_throttling()


NANOS_PER_SECOND = 1_000_000_000


class DelayQueue:
    """
    A queue that hands out a channel only when it is due (Java: `DelayQueue`).

    Channels of one deadline leave in the order they came; Java leaves their order open. Safe for many threads.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, ThrottledChannel]] = []
        self._arrivals = count()
        self._changed = Condition()
        self._awake = False

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, channel: ThrottledChannel) -> None:
        """Put in a channel."""
        entry = channel.deadline_ns, next(self._arrivals), channel
        with self._changed:
            heapq.heappush(self._heap, entry)
            self._changed.notify_all()

    def poll(self, now_ns: int) -> ThrottledChannel | None:
        """Take out the channel with the earliest deadline, None unless it is due at the monotonic `now_ns`."""
        with self._changed:
            if not self._heap or not self._heap[0][2].is_due(now_ns):
                return None
            return heapq.heappop(self._heap)[2]

    def wait(self, now_ns: int, timeout_s: float) -> None:
        """Block until the queue changes, its first channel is due, `wake` is called, or `timeout_s` is over."""
        with self._changed:
            if self._heap:
                delay_s = (self._heap[0][0] - now_ns) / NANOS_PER_SECOND
                timeout_s = min(timeout_s, delay_s)
            if timeout_s > 0 and not self._awake:
                self._changed.wait(timeout_s)
            self._awake = False

    def wake(self) -> None:
        """Let the one that waits go on, or the next one not wait at all."""
        with self._changed:
            self._awake = True
            self._changed.notify_all()
