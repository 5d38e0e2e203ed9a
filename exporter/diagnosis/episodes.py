"""Throttle episodes: from the first to the last throttle of an entity without a long pause."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from .trails import Trail

PAUSE_SECONDS: Final = 60.0
"""The longest pause within an episode. Brokers report a throttle for 30 to 60 s: the window of Kafka's sensor of throttle times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """One episode of one entity on one node; times are those of steps, and a throttle is seen for up to 60 s after it."""

    began_at: float
    """Unix time in seconds of the first step with a throttle."""
    ended_at: float
    """Unix time in seconds at the end of the last one."""
    longest_seconds: float
    """The longest throttle time, an average of 30 to 60 s."""
    ongoing: bool
    """Whether the entity was still throttled when it was seen last."""


def episodes(trail: Trail) -> list[Episode]:
    """The episodes of the last minutes, the latest last; a step in which the entity was not seen ends none."""
    times, throttles = trail.times, trail.throttle_time
    throttled = np.flatnonzero(throttles > 0)
    if not throttled.size:
        return []
    quiet = np.cumsum(throttles == 0) * trail.step_seconds
    pauses = np.flatnonzero(np.diff(quiet[throttled]) > PAUSE_SECONDS) + 1
    seen_last = np.flatnonzero(~np.isnan(throttles))[-1]
    return [
        Episode(
            began_at=float(times[steps[0]]),
            ended_at=float(times[steps[-1]] + trail.step_seconds),
            longest_seconds=float(throttles[steps].max()),
            ongoing=bool(steps[-1] == seen_last),
        )
        for steps in np.split(throttled, pauses)
    ]
