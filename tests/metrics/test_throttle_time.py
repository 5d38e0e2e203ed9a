"""How long to stay silent."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quotascope.metrics import (
    INT_MAX,
    LONG_MAX,
    MetricConfig,
    MetricName,
    Quota,
    QuotaViolation,
    Rate,
    Registry,
    TokenBucket,
    WrongStatistic,
    bounded_rate_throttle_time_ms,
    narrow,
    rate_formula_ms,
    rate_throttle_time_ms,
    token_formula_ms,
    token_throttle_time_ms,
)
from quotascope.metrics.stat import Stat


def violated(stat: Stat, value: float, bound: float, now_ms: int) -> QuotaViolation:
    """What a sensor raises when `value` is recorded in `stat` under an upper bound."""
    registry = Registry()
    sensor = registry.sensor("s", now_ms)
    config = MetricConfig(samples=11, time_window_ms=1000, quota=Quota(bound))
    sensor.add(registry.metric_name("m", "g"), stat, config)
    sensor.record(value, now_ms, check_quotas=False)
    with pytest.raises(QuotaViolation) as caught:
        sensor.check_quotas(now_ms)
    return caught.value


@pytest.mark.parametrize(
    ("observed", "bound", "window_ms", "expected"),
    [
        (600.0, 500.0, 10_500, 2100),
        (16.5, 16.5, 10_000, 0),
        (16.5, 20.4, 9000, -1721),
        (1002.5, 1000.0, 1000, 3),
        (997.5, 1000.0, 1000, -2),
        (5.0, 0.0, 1000, LONG_MAX),
        (0.0, 0.0, 1000, 0),
    ],
)
def test_rate_formula(
    observed: float, bound: float, window_ms: int, expected: int
) -> None:
    """The silence that brings a rate down to its bound, rounded half up; without a bound, forever."""
    assert rate_formula_ms(observed, bound, window_ms) == expected


@pytest.mark.parametrize(
    ("tokens", "bound", "expected"),
    [(0, 10, 0), (-5, 10, 500), (-60, 5, 12_000), (-0.004, 10, 0), (-0.005, 10, 1)],
)
def test_token_formula(tokens: float, bound: float, expected: int) -> None:
    """A debt is paid at the pace of the bound."""
    assert token_formula_ms(tokens, bound) == expected


def test_rate_violation() -> None:
    """The window is the one the rate was measured over: 10 s for a first value under 11 x 1 s."""
    violation = violated(Rate(), 10_000.0, 500.0, 0)
    assert violation.value == 1000.0
    assert rate_throttle_time_ms(violation, 0) == 10_000
    assert bounded_rate_throttle_time_ms(violation, 1000, 0) == 1000
    assert bounded_rate_throttle_time_ms(violation, 99_999, 0) == 10_000


def test_token_violation() -> None:
    """An overdrawn bucket is even again after its debt divided by the bound."""
    violation = violated(TokenBucket.full(0), 115.0, 10.0, 0)
    assert token_throttle_time_ms(violation) == 500


def test_wrong_statistic() -> None:
    """Neither formula answers for the other's statistic, nor for a violation made by hand."""
    by_hand = QuotaViolation(MetricName("m", "g"), 2.0, 1.0)
    with pytest.raises(WrongStatistic, match="is not a rate"):
        rate_throttle_time_ms(by_hand, 0)
    with pytest.raises(WrongStatistic, match="is not a token bucket"):
        token_throttle_time_ms(by_hand)
    with pytest.raises(WrongStatistic, match="is not a rate"):
        rate_throttle_time_ms(violated(TokenBucket.full(0), 115.0, 10.0, 0), 0)
    with pytest.raises(WrongStatistic, match="is not a token bucket"):
        token_throttle_time_ms(violated(Rate(), 10_000.0, 500.0, 0))


def test_narrow_wraps_around() -> None:
    """As in Kafka, 34.7 days turn negative and 94.9 years into 24.5 days."""
    assert narrow(2_999_990_000) == -1_294_977_296
    assert narrow(2_999_999_990_000) == 2_112_817_392


@given(st.integers(0, LONG_MAX))
def test_saturation(throttle_time_ms: int) -> None:
    """What stops before it is cut stays long."""
    assert narrow(throttle_time_ms, INT_MAX) == min(throttle_time_ms, INT_MAX)


def test_only_the_upper_end_stops() -> None:
    """Java's cut follows `Math.min`: far below zero a time wraps around all the same, as under a bound below zero."""
    assert narrow(-(2**31) - 1, INT_MAX) == INT_MAX
