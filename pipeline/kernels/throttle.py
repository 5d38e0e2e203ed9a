"""How long a rate past its limit, or a bucket in debt, throttles (`metrics.throttle_time`)."""

from typing import NamedTuple

import numpy as np

from .compiled import Floats, Ints, kernel, run
from .rate import Measured
from .rounding import LONG_MAX, rounded

UNCLAMPED = LONG_MAX
"""No limit to a throttle: bandwidth, up to Kafka 4.3 (`metrics.KafkaRelease.longest_rate_ms`)."""


class Throttles(NamedTuple):
    """Throttle times in ms, one limit after the other."""

    times: Ints


Throttles.WRITTEN = True  # type: ignore[attr-defined]


@kernel
def rate_throttle(rate: float, limit: float, span: int, most_ms: int) -> int:
    """Return the ms of silence after which a rate is back at its limit, at most `most_ms`; 0 within the limit."""
    if rate <= limit:
        return 0
    return min(rounded((rate - limit) / limit * span), most_ms)


@kernel
def debt_throttle(tokens: float, limit: float) -> int:
    """Return the ms after which a bucket in debt is back at zero."""
    return rounded(-tokens / limit * 1000.0)


def throttle_times(
    measured: Measured, limits: Floats, most_ms: int = UNCLAMPED
) -> Ints:
    """
    Return the throttle in ms of each measurement under each limit, as an array of limits x measurements.

    They are not narrowed to 32 bits: see `narrowed_times`.

    Args:
        measured: what `observe` returned for one sensor, or several.
        limits: above 0, in the unit of the rates; infinite for none.
        most_ms: longest throttle, one window for request quotas (KIP-124).

    """
    outcome = Throttles(np.zeros(len(limits) * len(measured.rates), np.int64))
    run(_each_limit, measured, limits, outcome, most_ms, work=len(outcome.times))
    return outcome.times.reshape(len(limits), len(measured.rates))


def narrowed_times(throttle_ms: Ints) -> Ints:
    """Return throttle times as a broker's protocol holds them: in 32 bits, longer ones wrapped around."""
    return throttle_ms.astype(np.int32).astype(np.int64)


@kernel
def _each_limit(
    measured: Measured, limits: Floats, outcome: Throttles, most_ms: int
) -> None:
    count = len(measured.rates)
    for row in range(len(limits)):
        for number in range(count):
            outcome.times[row * count + number] = rate_throttle(
                measured.rates[number], limits[row], measured.spans[number], most_ms
            )
