"""The token bucket of controller mutations, many at once (`metrics.token_bucket`, `metrics.mutation_quota`, KIP-599)."""

from typing import NamedTuple

import numpy as np

from .compiled import Floats, Ints, kernel
from .throttle import debt_throttle

STRICT = 0
"""The client understands a refusal: checked first, and charged if it is not refused."""
PERMISSIVE = 1
"""The client is too old: charged, then checked."""
PROBE = 2
"""Checked as `STRICT` is, and not charged."""

IDLE_MS = 3_600_000
"""A sensor without a record for longer is removed; the next request finds a full bucket."""


class Buckets(NamedTuple):
    """Buckets, and what is in them."""

    limits: Floats
    """Partitions per second, above 0."""
    bursts: Floats
    """Most tokens: `samples * window in s * limit`."""
    tokens: Floats
    touched: Ints
    """When there were so many, epoch ms."""
    charged: Ints
    """When they were last charged, epoch ms; negative for never."""


Buckets.WRITTEN = True  # type: ignore[attr-defined]


def new_buckets(limits: Floats, samples: Ints, window_ms: Ints) -> Buckets:
    """Return buckets that nobody has used: empty in 1970 and so full at any real time, as in Kafka."""
    count = len(limits)
    return Buckets(
        limits=limits,
        bursts=samples.astype(np.float64) * (window_ms / 1000.0) * limits,
        tokens=np.zeros(count, np.float64),
        touched=np.zeros(count, np.int64),
        charged=np.full(count, -1, np.int64),
    )


@kernel
def renew(buckets: Buckets, bucket: int, now_ms: int) -> None:
    """Begin anew if the sensor was idle for so long that a broker has removed it."""
    if buckets.charged[bucket] < 0:
        buckets.charged[bucket] = now_ms
    elif now_ms - buckets.charged[bucket] > IDLE_MS:
        buckets.tokens[bucket] = 0.0
        buckets.touched[bucket] = 0
        buckets.charged[bucket] = now_ms


@kernel
def take(
    buckets: Buckets, bucket: int, permits: float, now_ms: int, treatment: int
) -> tuple[int, bool]:
    """
    Charge a mutation, or refuse it; return the throttle in ms and whether it was refused.

    Args:
        buckets: state.
        bucket: which one.
        permits: partitions.
        now_ms: epoch ms.
        treatment: `STRICT`, `PERMISSIVE` or `PROBE`.

    """
    renew(buckets, bucket, now_ms)
    limit, burst = buckets.limits[bucket], buckets.bursts[bucket]
    passed_s = (now_ms - buckets.touched[bucket]) / 1000.0
    tokens = min(burst, buckets.tokens[bucket] + limit * passed_s)
    buckets.touched[bucket] = now_ms
    buckets.tokens[bucket] = tokens
    if treatment != PERMISSIVE and tokens < 0.0:
        return debt_throttle(tokens, limit), True
    if treatment == PROBE:
        return 0, False
    left = min(burst, tokens - permits)
    buckets.tokens[bucket] = left
    buckets.charged[bucket] = now_ms
    if treatment == PERMISSIVE and left < 0.0:
        return debt_throttle(left, limit), False
    return 0, False
