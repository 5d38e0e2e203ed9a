"""Java's arithmetic."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotascope.metrics import INT_MAX, LONG_MAX, jround, tdiv, to_i32
from quotascope.metrics.numbers import (
    INT_MIN,
    LONG_MIN,
    is_whole,
    jdiv,
    jmax,
    jmin,
    to_f32,
    trunc_i32,
    trunc_i64,
)

longs = st.integers(LONG_MIN, LONG_MAX)


@pytest.mark.parametrize(
    ("x", "rounded"),
    [
        (2.5, 3),
        (-2.5, -2),
        (0.49999999999999994, 0),
        (4503599627370497.5, 4503599627370498),
        (9007199254740993.0, 9007199254740992),
        (-0.5, 0),
        (math.nan, 0),
        (math.inf, LONG_MAX),
        (-math.inf, LONG_MIN),
        (1e19, LONG_MAX),
        (-1e19, LONG_MIN),
    ],
)
def test_jround(x: float, rounded: int) -> None:
    """Halves go up, what cannot be a long saturates (`Math.round`)."""
    assert jround(x) == rounded


@pytest.mark.parametrize(
    ("n", "low"),
    [
        (0, 0),
        (INT_MAX, INT_MAX),
        (INT_MAX + 1, INT_MIN),
        (2_999_990_000, -1_294_977_296),
        (-1, -1),
        (2**32, 0),
    ],
)
def test_to_i32(n: int, low: int) -> None:
    """A long throttle wraps to a negative one, which is no throttle (`(int) long`)."""
    assert to_i32(n) == low


@given(a=longs, b=longs.filter(bool))
def test_tdiv_truncates_toward_zero(a: int, b: int) -> None:
    """Quotient and remainder have the signs that Java gives them."""
    quotient = tdiv(a, b)
    remainder = a - quotient * b
    assert abs(remainder) < abs(b)
    assert remainder == 0 or (remainder < 0) == (a < 0)


@pytest.mark.parametrize(
    ("a", "b", "quotient"),
    [
        (1.0, 4.0, 0.25),
        (1.0, 0.0, math.inf),
        (-1.0, 0.0, -math.inf),
        (1.0, -0.0, -math.inf),
        (math.inf, 0.0, math.inf),
    ],
)
def test_jdiv(a: float, b: float, quotient: float) -> None:
    """Dividing by zero is an infinity with the product of the signs."""
    assert jdiv(a, b) == quotient


@pytest.mark.parametrize("a", [0.0, -0.0, math.nan])
def test_jdiv_without_a_value(a: float) -> None:
    """0/0 and NaN/0 are NaN."""
    assert math.isnan(jdiv(a, 0.0))


@given(a=st.floats(), b=st.floats())
def test_jmin_and_jmax(a: float, b: float) -> None:
    """NaN wins, zeros have an order, and otherwise they are min and max."""
    smaller, larger = jmin(a, b), jmax(a, b)
    if math.isnan(a) or math.isnan(b):
        assert math.isnan(smaller)
        assert math.isnan(larger)
    else:
        assert {smaller, larger} == {a, b}
        assert smaller <= larger


def test_zeros_have_an_order() -> None:
    """-0.0 is below 0.0, whichever comes first."""
    signs = [
        math.copysign(1.0, zero)
        for zero in (jmin(0.0, -0.0), jmin(-0.0, 0.0), jmax(0.0, -0.0), jmax(-0.0, 0.0))
    ]
    assert signs == [-1.0, -1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("x", "whole"),
    [
        (2.9, 2),
        (-2.9, -2),
        (1e300, INT_MAX),
        (-math.inf, -INT_MAX - 1),
        (math.nan, 0),
    ],
)
def test_trunc_i32(x: float, whole: int) -> None:
    """A double becomes an int as by Java's cast."""
    assert trunc_i32(x) == whole


@pytest.mark.parametrize(
    ("x", "rounded"),
    [
        (0.5, 0.5),
        (1 / 3, 0.3333333432674408),
        (16_777_217.0, 16_777_216.0),
        (1e300, math.inf),
        (-1e300, -math.inf),
        (1e-300, 0.0),
    ],
)
def test_to_f32(x: float, rounded: float) -> None:
    """A double becomes the nearest float, out of range an infinity."""
    assert to_f32(x) == rounded


@pytest.mark.parametrize(
    ("x", "whole"), [(2.9, 2), (-2.9, -2), (1e300, LONG_MAX), (math.nan, 0)]
)
def test_trunc_i64(x: float, whole: int) -> None:
    """A double becomes a long as by Java's cast."""
    assert trunc_i64(x) == whole


@pytest.mark.parametrize(
    ("x", "whole"),
    [
        (0.0, True),
        (-0.0, True),
        (3.0, True),
        (-3.0, True),
        (2.0**51 - 1, True),
        (0.5, False),
        (2.0**50 + 0.5, False),
        (-(2.0**50) - 0.25, False),
        (5e-324, False),
        (2.0**51, False),
        (-(2.0**51), False),
        (math.inf, False),
        (math.nan, False),
    ],
)
def test_is_whole(x: float, whole: bool) -> None:  # noqa: FBT001 - a parameter
    """Only what adds up exactly counts as whole."""
    assert is_whole(x) == whole


@pytest.mark.parametrize("x", [1e300, -1e300, math.inf, -math.inf])
def test_to_f32_of_what_is_too_large_is_infinite(x: float) -> None:
    """With its sign, as Java's `(float) double`."""
    assert to_f32(x) == math.copysign(math.inf, x)


@given(a=longs, b=longs.filter(bool))
def test_tdiv_leaves_a_remainder_of_the_sign_of_what_is_divided(a: int, b: int) -> None:
    """So Java defines its `%`: smaller than the divisor, never of the other sign."""
    rest = a - tdiv(a, b) * b
    assert abs(rest) < abs(b)
    assert rest * a >= 0
