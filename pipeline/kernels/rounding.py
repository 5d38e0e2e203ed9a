"""Java's rounding and narrowing, as `metrics.numbers` has them."""

import math

from .compiled import kernel

LONG_MAX = 9223372036854775807
INT_MAX = 2147483647
_TWO_TO_63 = 9223372036854775808.0
_HALF = 0.5
_SIGN = 0x80000000
_LOW = 0xFFFFFFFF


@kernel
def rounded(x: float) -> int:
    """Round half up, NaN to 0, saturating at 64 bits (`metrics.numbers.jround`)."""
    if math.isnan(x):
        return 0
    if x >= _TWO_TO_63:
        return LONG_MAX
    if x <= -_TWO_TO_63:
        return -LONG_MAX - 1
    below = int(math.floor(x))  # noqa: RUF046 - a double when compiled
    if x - below >= _HALF:
        return below + 1
    return below


@kernel
def low_bits(n: int) -> int:
    """Keep the low 32 bits as a signed number (`metrics.numbers.to_i32`)."""
    return ((n + _SIGN) & _LOW) - _SIGN


@kernel
def narrowed(throttle_ms: int, saturate: bool) -> int:  # noqa: FBT001 - kernels take arguments by position
    """Return a throttle time as the protocol's 32 bits hold it (`metrics.throttle_time.narrow`)."""
    if saturate:
        return min(throttle_ms, INT_MAX)
    return low_bits(throttle_ms)
