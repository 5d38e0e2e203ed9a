"""The burst-spreading rate of KIP-599's draft, many at once (`metrics.burst_spreading`); Kafka has a token bucket instead."""

from typing import NamedTuple

import numpy as np

from .bucket import PROBE
from .compiled import Floats, Ints, kernel
from .rounding import rounded


class Spreads(NamedTuple):
    """Rates, and what is booked in their windows."""

    limits: Floats
    """Partitions per second, above 0."""
    samples: Ints
    window_ms: Ints
    bases: Ints
    """Where the windows of each begin; they are in order, the current one last."""
    windows: Floats
    currents: Ints
    """Number of the current window since 1970."""


Spreads.WRITTEN = True  # type: ignore[attr-defined]


def new_spreads(limits: Floats, samples: Ints, window_ms: Ints) -> Spreads:
    """Return rates that nothing was booked on."""
    return Spreads(
        limits=limits,
        samples=samples,
        window_ms=window_ms,
        bases=np.cumsum(samples) - samples,
        windows=np.zeros(int(samples.sum()), np.float64),
        currents=np.zeros(len(limits), np.int64),
    )


@kernel
def spread(
    spreads: Spreads, rate: int, permits: float, now_ms: int, treatment: int
) -> tuple[int, bool]:
    """
    Book a mutation over the windows before, or refuse it; return the ms to wait, at least 1, and whether it was refused.

    The draft knows no clients that are too old to be refused.
    """
    _advance(spreads, rate, now_ms // spreads.window_ms[rate])
    base, samples = spreads.bases[rate], spreads.samples[rate]
    total = 0.0
    for place in range(base, base + samples):
        total += spreads.windows[place]
    limit = spreads.limits[rate]
    span_s = samples * spreads.window_ms[rate] / 1000.0
    per_second = total / span_s
    if per_second > limit:
        wait_ms = (per_second - limit) / limit * span_s * 1000.0
        return max(1, rounded(wait_ms)), True
    if treatment != PROBE:
        _book(spreads, rate, permits)
    return 0, False


@kernel
def _book(spreads: Spreads, rate: int, permits: float) -> None:
    base, samples = spreads.bases[rate], spreads.samples[rate]
    full = spreads.limits[rate] * spreads.window_ms[rate] / 1000.0
    left = permits
    for place in range(base, base + samples - 1):
        booked = max(0.0, min(left, full - spreads.windows[place]))
        spreads.windows[place] += booked
        left -= booked
    spreads.windows[base + samples - 1] += left


@kernel
def _advance(spreads: Spreads, rate: int, current: int) -> None:
    samples = spreads.samples[rate]
    over = min(max(0, current - spreads.currents[rate]), samples)
    if over == 0:
        return
    base = spreads.bases[rate]
    for place in range(base, base + samples - over):
        spreads.windows[place] = spreads.windows[place + over]
    for place in range(base + samples - over, base + samples):
        spreads.windows[place] = 0.0
    spreads.currents[rate] = current
