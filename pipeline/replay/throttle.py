"""How long a rate past its limit, or a bucket in debt, throttles (`metrics.throttle_time`), rounded and narrowed as Java does (`metrics.numbers`)."""

import math

from .compiled import kernel

LONG_MAX = 9223372036854775807
INT_MAX = 2147483647
_TWO_TO_63 = 9223372036854775808.0
_HALF = 0.5
_SIGN = 0x80000000
_LOW = 0xFFFFFFFF


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


@kernel
def rounded(x: float) -> int:
    """Round half up, NaN to 0, saturating at 64 bits (`metrics.numbers.jround`)."""
    if not abs(x) < _TWO_TO_63:
        if math.isnan(x):
            return 0
        return LONG_MAX if x > 0 else -LONG_MAX - 1
    below = math.floor(x)
    # Added, not branched on: half of all numbers round up, and no processor guesses which.
    return int(below) + int(x - below >= _HALF)


@kernel
def natural(n: int) -> int:
    """Return a number that is not negative: compiled code that sees so does not look for Python's indices from the end."""
    return n & LONG_MAX


@kernel
def low_bits(n: int) -> int:
    """Keep the low 32 bits as a signed number (`metrics.numbers.to_i32`)."""
    return ((n + _SIGN) & _LOW) - _SIGN
