"""Java's arithmetic where Python's differs: Kafka's figures depend on it to the last bit."""

import math
import struct
from typing import Final

LONG_MAX: Final = 9223372036854775807
"""Largest 64-bit integer; Kafka's "unlimited"."""
LONG_MIN: Final = -9223372036854775808
INT_MAX: Final = 2147483647
"""Largest 32-bit integer."""
INT_MIN: Final = -2147483648
_TWO_TO_63: Final = 9223372036854775808.0
_TWO_TO_51: Final = 2251799813685248.0
_NO_FRACTION: Final = 6755399441055744.0


def jround(x: float) -> int:
    """Round half up (2.5 -> 3, -2.5 -> -2), NaN to 0, saturating at 64 bits (Java: `Math.round(double)`)."""
    if math.isnan(x):
        return 0
    if x >= _TWO_TO_63:
        return LONG_MAX
    if x <= -_TWO_TO_63:
        return LONG_MIN
    below = math.floor(x)
    return below + 1 if x - below >= 0.5 else below  # noqa: PLR2004 - a half


def is_whole(x: float) -> bool:
    """Decide whether a number has no fraction and is below 2^51: a few such numbers add up exactly in any order."""
    # Above 2^52 doubles are whole: adding 1.5 * 2^52 rounds.
    return -_TWO_TO_51 < x < _TWO_TO_51 and x + _NO_FRACTION - _NO_FRACTION == x


def to_i32(n: int) -> int:
    """Keep the low 32 bits as a signed number (Java: `(int) long`, Scala: `Long.toInt`)."""
    return ((n + 0x80000000) & 0xFFFFFFFF) - 0x80000000


def to_i64(n: int) -> int:
    """Keep the low 64 bits as a signed number, as sums and differences of Java's `long` do."""
    return ((n + 0x8000000000000000) & 0xFFFFFFFFFFFFFFFF) - 0x8000000000000000


def trunc_i32(x: float) -> int:
    """Drop the fraction, NaN to 0, saturating at 32 bits (Java: `(int) double`)."""
    if math.isnan(x):
        return 0
    if x >= INT_MAX:
        return INT_MAX
    return INT_MIN if x <= INT_MIN else int(x)


def trunc_i64(x: float) -> int:
    """Drop the fraction, NaN to 0, saturating at 64 bits (Java: `(long) double`)."""
    if math.isnan(x):
        return 0
    if x >= LONG_MAX:
        return LONG_MAX
    return LONG_MIN if x <= LONG_MIN else int(x)


_FLOAT32 = struct.Struct("f")


def to_f32(x: float) -> float:
    """Round to the nearest number of 32 bits (Java: `(float) double`); one operation on two such is exact so."""
    try:
        rounded: float = _FLOAT32.unpack(_FLOAT32.pack(x))[0]
    except OverflowError:
        return math.copysign(math.inf, x)
    return rounded


def tdiv(a: int, b: int) -> int:
    """Divide and truncate toward zero (Java: `long / long`); Python's `//` rounds down."""
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def jdiv(a: float, b: float) -> float:
    """Divide doubles as Java does: x/0 is an infinity or NaN, not an error."""
    if b != 0.0:
        return a / b
    if a == 0.0 or math.isnan(a):
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def jmin(a: float, b: float) -> float:
    """Return the smaller; NaN if either is NaN, and -0.0 is below 0.0 (Java: `Math.min`)."""
    if math.isnan(a) or math.isnan(b):
        return math.nan
    if a == b:
        return a if math.copysign(1.0, a) < 0.0 else b
    return min(b, a)


def jmax(a: float, b: float) -> float:
    """Return the larger; NaN if either is NaN, and 0.0 is above -0.0 (Java: `Math.max`)."""
    return -jmin(-a, -b)
