"""
Throttle times: how long a client has to stay silent after a quota violation.

The formulae are those of Kafka's `QuotaUtils` and `ControllerMutationQuotaManager`, in 64 bits; a quota manager
narrows the result to the 32 bits of the protocol (`narrow`).
"""

from ..kafka.numbers import LONG_MAX, jdiv, jround, to_i32
from .errors import QuotaViolation, WrongStatistic
from .token_bucket import TokenBucket


def rate_formula_ms(observed: float, bound: float, window_ms: int) -> int:
    """
    Return the ms of silence after which a rate measured over `window_ms` falls to its bound.

    It is the X of `observed * window / (window + X) = bound`, rounded half up; negative below the bound. 6300 bytes
    in 10.5 s against 500 B/s make 600 B/s and (600 - 500) / 500 * 10500 = 2100 ms.
    """
    return jround(jdiv(observed - bound, bound) * window_ms)


def token_formula_ms(tokens: float, bound: float) -> int:
    """Return the ms after which a bucket in debt, refilled with `bound` tokens per second, is back at zero."""
    return jround(jdiv(-tokens, bound) * 1000.0)


def rate_throttle_time_ms(violation: QuotaViolation, now_ms: int) -> int:
    """
    Return the throttle time of a violated rate, in ms (Kafka: `QuotaUtils.throttleTime`).

    The window is that of the rate at `now_ms`, under the config that its metric has by then.

    Raises:
        WrongStatistic: the violated metric is no rate.

    """
    if violation.metric is None:
        raise WrongStatistic(violation.metric_name, "a rate")
    window_ms = violation.metric.window_size(now_ms)
    return rate_formula_ms(violation.value, violation.bound, window_ms)


def bounded_rate_throttle_time_ms(violation: QuotaViolation, max_ms: int, now_ms: int) -> int:
    """Return the throttle time of a violated rate in ms, at most `max_ms` (Kafka: `QuotaUtils.boundedThrottleTime`)."""
    return min(rate_throttle_time_ms(violation, now_ms), max_ms)


def token_throttle_time_ms(violation: QuotaViolation) -> int:
    """
    Return the throttle time of an overdrawn bucket, in ms (Kafka: `ControllerMutationQuotaManager.throttleTimeMs`).

    Raises:
        WrongStatistic: the violated metric is no token bucket.

    """
    metric = violation.metric
    if metric is None or not isinstance(metric.stat, TokenBucket):
        raise WrongStatistic(violation.metric_name, "a token bucket")
    return token_formula_ms(violation.value, violation.bound)


def narrow(throttle_time_ms: int, longest_ms: int = LONG_MAX) -> int:
    """
    Return the throttle time, at most `longest_ms`, as the protocol's 32-bit number: the high bits are cut off.

    Rates take `KafkaRelease.longest_rate_ms` for the longest, mutations none.
    """
    return to_i32(min(throttle_time_ms, longest_ms))
