"""Java's arithmetic."""

import math
from collections.abc import Callable, Mapping

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
    ("convert", "values"),
    [
        # halves go up, what cannot be a long saturates (`Math.round`)
        (jround, {2.5: 3, -2.5: -2, 0.49999999999999994: 0, -0.5: 0}),
        (jround, {4503599627370497.5: 4503599627370498}),
        (jround, {9007199254740993.0: 9007199254740992}),
        (jround, {math.nan: 0, math.inf: LONG_MAX, -math.inf: LONG_MIN}),
        (jround, {1e19: LONG_MAX, -1e19: LONG_MIN}),
        # a long throttle wraps to a negative one, which is no throttle (`(int) long`)
        (to_i32, {0: 0, -1: -1, INT_MAX: INT_MAX, INT_MAX + 1: INT_MIN}),
        (to_i32, {2_999_990_000: -1_294_977_296, 2**32: 0}),
        # a double becomes an int or a long as by Java's cast
        (trunc_i32, {2.9: 2, -2.9: -2, 1e300: INT_MAX, math.nan: 0}),
        (trunc_i32, {-math.inf: -INT_MAX - 1}),
        (trunc_i64, {2.9: 2, -2.9: -2, 1e300: LONG_MAX, math.nan: 0}),
        # the nearest float, out of range an infinity with its sign (`(float) double`)
        (to_f32, {0.5: 0.5, 1 / 3: 0.3333333432674408, 1e-300: 0.0}),
        (to_f32, {16_777_217.0: 16_777_216.0, 1e300: math.inf}),
        (to_f32, {-1e300: -math.inf, math.inf: math.inf, -math.inf: -math.inf}),
    ],
)
def test_conversions(
    convert: Callable[[float], float], values: Mapping[float, float]
) -> None:
    """Java's rounding and casts."""
    assert {value: convert(value) for value in values} == values


@given(a=longs, b=longs.filter(bool))
def test_tdiv_truncates_toward_zero(a: int, b: int) -> None:
    """The remainder has the sign of what is divided, as Java defines its `%`, or is 0."""
    remainder = a - tdiv(a, b) * b
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
