"""The rounding of throttle times, of debts as of rates: half a millisecond up, as in Java."""

import numpy as np
import pytest
from tests.pipeline.kernels.ways import WAYS, kernels

from quotascope.metrics import WindowConfig
from quotascope.metrics.throttle_time import rate_formula_ms, token_formula_ms
from quotascope.pipeline.kernels.compiled import run
from quotascope.pipeline.kernels.rounding import rounded
from quotascope.pipeline.kernels.throttle import debt_throttle, rate_throttle
from quotascope.pipeline.recommend.debt import DebtSensor

DEBTS = [
    (-1.0, 8.0, 125),
    (-0.0004, 1.0, 0),
    (-0.0005, 1.0, 1),
    (-0.00149, 1.0, 1),
    (-0.0015, 1.0, 2),
    (-1.0, 3.0, 333),
    (-2.0, 3.0, 667),
    (-1.8e-18, 5.0, 0),
    (-1.0, 5e-324, 9223372036854775807),
]
"""Tokens, tokens per second, and the milliseconds until there are none missing: Java's `Math.round(-tokens / bound * 1000)`."""


@pytest.mark.parametrize(("tokens", "bound", "expected"), DEBTS)
def test_debt(tokens: float, bound: float, expected: int) -> None:
    """Engine and kernel round half up, and neither up nor down always."""
    assert token_formula_ms(tokens, bound) == expected
    if bound > 1e-300:
        assert debt_throttle(tokens, bound) == expected


@pytest.mark.parametrize(
    ("rate", "limit", "span", "expected"),
    [(1.00049, 1.0, 1000, 0), (1.0005, 1.0, 1000, 1), (1.5, 1.0, 3, 2), (4.0, 3.0, 1000, 333)],
)  # fmt: skip
def test_rate(rate: float, limit: float, span: int, expected: int) -> None:
    """So do both with a rate past its limit, if the doubles make it a half at all."""
    exact = (rate - limit) / limit * span
    assert rate_throttle(rate, limit, span, 1 << 62) == rate_formula_ms(rate, limit, span)  # fmt: skip
    assert abs(rate_throttle(rate, limit, span, 1 << 62) - exact) <= 0.5
    assert expected == pytest.approx(exact, abs=0.51)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.5, 1), (-0.5, 0), (1.4999, 1), (2.5, 3), (-2.5, -2), (0.49999999999999994, 0), (float("nan"), 0), (1e300, 2**63 - 1), (-1e300, -(2**63)), (2.0**63, 2**63 - 1), (-(2.0**63), -(2**63)), (2.0**63 - 1024, 2**63 - 1024)],
)  # fmt: skip
def test_rounded(way: str, value: float, expected: int) -> None:
    """Plain and compiled, halves go up, NaN to 0, and what 64 bits do not hold stops at their end."""
    with kernels(way):
        assert run(rounded, value, work=1_000_000) == expected


def test_recommended_debt_is_rounded_up() -> None:
    """The search rounds up, since it must not take a throttle for none: a debt of 1/3 s is 334 ms, of none 0."""
    sensor = DebtSensor(
        times_ms=np.array([0, 0], np.int64),
        values=np.array([34.0, 1.0]),
        permissive=np.array([False, False]),
        config=WindowConfig(),
    )
    assert sensor.throttles_ms(np.array([3.0, 4.0])).tolist() == [[0, 334], [0, 0]]
