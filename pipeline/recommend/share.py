"""For how much of its time an entity is throttled, season by season."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Seasons:
    """The requests of one sensor, and the season of each."""

    times_ms: Ints
    """Decisions, in order."""
    whose: Ints
    """Number of the season of each."""
    count: int
    """How many seasons there are."""
    window_ms: int
    """How long a request counts as activity: one window of the quota."""

    def shares(self, throttles_ms: Ints) -> NDArray[np.float64]:
        """
        Return for each season the throttled time as a part of the time in which there was activity or a throttle.

        Throttles that overlap count once, up to one window after the last request, as in the results of a replay. Time belongs to the
        season of the request with which it begins.
        """
        left = self.times_ms[-1:] + self.window_ms - self.times_ms
        muted = np.clip(throttles_ms, 0, left)
        throttled = self._covered_ms(muted)
        whole = self._covered_ms(np.maximum(muted, self.window_ms))
        return np.divide(throttled, whole, out=np.zeros(self.count), where=whole > 0)

    def _covered_ms(self, lengths_ms: Ints) -> NDArray[np.float64]:
        """For each season the length of the union of `[time, time + length)`."""
        ends = np.maximum.accumulate(self.times_ms + lengths_ms)
        before = np.concatenate((self.times_ms[:1], ends[:-1]))
        new = np.maximum(ends - np.maximum(before, self.times_ms), 0)
        covered: NDArray[np.float64] = np.bincount(
            self.whose, weights=new, minlength=self.count
        ).astype(np.float64)
        return covered
