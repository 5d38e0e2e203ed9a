"""Clocks, for the edges only: inside the engine time is an argument."""

import time
from collections.abc import Callable

Clock = Callable[[], int]
"""Returns epoch ms."""


def wall_clock_ms() -> int:
    """Return the time of day in epoch ms; it may be set back (Kafka: `Time.SYSTEM`)."""
    return time.time_ns() // 1_000_000


class SteadyClock:
    """
    Epoch ms that never go back: the time of day at the start, then the steady passing of time.

    Kafka feeds its statistics from the time of day. If that is set back by an hour, windows stay open and rates too
    high for an hour; buckets lose an hour of tokens. A steady clock avoids both and drifts from the time of day.

    Args:
        wall_ns: time of day in epoch ns, read once.
        monotonic_ns: ns since any moment, never going back.

    """

    def __init__(
        self, wall_ns: Callable[[], int] = time.time_ns, monotonic_ns: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._monotonic_ns = monotonic_ns
        self._offset_ns = wall_ns() - monotonic_ns()

    def __call__(self) -> int:
        """Return epoch ms."""
        return (self._monotonic_ns() + self._offset_ns) // 1_000_000
