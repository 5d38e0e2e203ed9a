"""The longest of late."""

from __future__ import annotations


class RecentLongest:
    """
    The largest value of the last `span` seconds, or of up to twice as long, in constant space.

    It is the same for all who ask, and however often they do. Times are seconds of one clock.
    """

    __slots__ = ("_before", "_began", "_now", "_span")

    def __init__(self, span: float, now: float) -> None:
        self._span = span
        self._began = now
        self._before = 0
        self._now = 0

    def record(self, value: int, now: float) -> None:
        """Take in a value that is not negative."""
        self._turn(now)
        self._now = max(self._now, value)

    def value(self, now: float) -> int:
        """The largest; 0 when there was none."""
        self._turn(now)
        return max(self._before, self._now)

    def _turn(self, now: float) -> None:
        passed = int((now - self._began) // self._span)
        if passed > 0:
            self._before = self._now if passed == 1 else 0
            self._now = 0
            self._began += passed * self._span
