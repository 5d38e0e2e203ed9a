"""
A policy that Kafka does not have, for comparison: the burst-spreading rate of an early draft of KIP-599.

Kafka limits controller mutations with a `TokenBucket`. Before that was chosen, the draft kept a rate over windows and
booked a burst into past windows, so that it ages window by window instead of all at once. The waits are the token
bucket's; it was given up because the rate that operators would have seen is not the rate at which things happened.
Nothing in the engine uses this.
"""

from ...kafka.numbers import jdiv, jround
from ...kafka.windows import WindowConfig


class BurstSpreadingRate:
    """
    Admits mutations while the rate is at its bound or below, and spreads what it admits over the windows before.

    The rate is the sum of all windows over their whole length, however young. What is admitted fills the windows before
    the current one, oldest first, up to the bound each, and the rest goes into the current one: a mutation of any
    size is admitted. What is refused leaves no trace. Windows are aligned to the epoch; a clock that is set back stands
    still here until it has caught up.

    Args:
        bound: permits per second, above 0.
        config: number and length of the windows.

    """

    __slots__ = ("_current", "_window_ms", "_windows", "bound")

    def __init__(self, bound: float, config: WindowConfig | None = None) -> None:
        chosen = WindowConfig() if config is None else config
        self.bound: float = bound
        self._window_ms: int = chosen.window_ms
        self._current: int = 0
        # Oldest first; the last is the current one.
        self._windows: list[float] = [0.0] * chosen.samples

    def rate(self, now_ms: int) -> float:
        """Return the permits per second over all windows at `now_ms` (epoch ms)."""
        self._advance(now_ms)
        return sum(self._windows) / self._span_s()

    def throttle_time_ms(self, now_ms: int) -> int:
        """Return the ms until the rate is at its bound: at least 1, or 0 if it is not above."""
        rate = self.rate(now_ms)
        if rate <= self.bound:
            return 0
        wait_ms = jdiv(rate - self.bound, self.bound) * self._span_s() * 1000.0
        return max(1, jround(wait_ms))

    def record(self, permits: float, now_ms: int) -> int:
        """Book a mutation and return 0, or refuse it and return the ms to wait."""
        throttle_ms = self.throttle_time_ms(now_ms)
        if throttle_ms == 0:
            self._spread(permits)
        return throttle_ms

    def windows(self, now_ms: int) -> tuple[float, ...]:
        """Return what is booked in each window, oldest first, the current one last."""
        self._advance(now_ms)
        return tuple(self._windows)

    def _spread(self, permits: float) -> None:
        full = self.bound * self._window_ms / 1000.0
        remaining = permits
        for number in range(len(self._windows) - 1):
            booked = max(0.0, min(remaining, full - self._windows[number]))
            self._windows[number] += booked
            remaining -= booked
        self._windows[-1] += remaining

    def _advance(self, now_ms: int) -> None:
        current = now_ms // self._window_ms
        over = min(max(0, current - self._current), len(self._windows))
        self._windows = self._windows[over:] + [0.0] * over
        self._current = max(self._current, current)

    def _span_s(self) -> float:
        return len(self._windows) * self._window_ms / 1000.0
