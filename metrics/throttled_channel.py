"""A connection that stays silent until its deadline."""

from typing import Final

from .numbers import tdiv
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

    def __init__(
        self, throttle_time_ms: int, callback: ThrottleCallback, now_ns: int
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.deadline_ns: int = now_ns + throttle_time_ms * NANOS_PER_MS
        self._callback = callback
        callback.start_throttling()

    def delay_ms(self, now_ns: int) -> int:
        """Return the remaining whole ms at the monotonic `now_ns`; negative when overdue."""
        return tdiv(self.deadline_ns - now_ns, NANOS_PER_MS)

    def is_due(self, now_ns: int) -> bool:
        """Whether nothing of the delay remains."""
        return self.deadline_ns <= now_ns

    def notify_throttling_done(self) -> None:
        """Call the callback with the end of the throttle."""
        self._callback.end_throttling()
