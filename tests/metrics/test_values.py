"""Settings, bounds, releases, Java's arithmetic, and the texts of errors."""

import math
import pickle
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.metrics.examples import same

from quotascope.metrics.engine.config import MetricConfig, RecordingLevel
from quotascope.metrics.engine.cumulative import CumulativeSum
from quotascope.metrics.engine.errors import (
    ConnectionThrottled,
    DuplicateMetric,
    InvalidHierarchy,
    NotMeasurable,
    QuotaViolation,
    ThrottlingQuotaExceeded,
    TooManyConnections,
    UnknownConnection,
)
from quotascope.metrics.engine.locks import Lock
from quotascope.metrics.engine.metric import KafkaMetric
from quotascope.metrics.engine.metric_name import MetricName
from quotascope.metrics.engine.quota import Quota
from quotascope.metrics.engine.registry import Registry
from quotascope.metrics.engine.window_config import ManagerConfig
from quotascope.metrics.kafka.entities import DEFAULT, QuotaEntity
from quotascope.metrics.kafka.errors import InvalidConfig, MalformedName, MetricsError
from quotascope.metrics.kafka.numbers import (
    INT_MAX,
    INT_MIN,
    LONG_MAX,
    LONG_MIN,
    is_whole,
    jdiv,
    jmax,
    jmin,
    jround,
    tdiv,
    to_f32,
    to_i32,
    trunc_i32,
    trunc_i64,
)
from quotascope.metrics.kafka.principal import Principal
from quotascope.metrics.kafka.release import KafkaRelease
from quotascope.metrics.kafka.rules import QuotaRules
from quotascope.metrics.kafka.windows import WindowConfig


def test_kafkas_defaults() -> None:
    """The defaults are 2 x 30 s, no end by events, no quota, INFO."""
    assert MetricConfig() == MetricConfig(2, 30_000, LONG_MAX, None, (), RecordingLevel.INFO)


@pytest.mark.parametrize(("samples", "window_ms"), [(0, 1_000), (-1, 1_000), (1, 0), (2, LONG_MAX)])
def test_refuses_what_cannot_be_measured(samples: int, window_ms: int) -> None:
    """A setting that cannot be measured is refused by name."""
    with pytest.raises(InvalidConfig, match=str(samples)):
        MetricConfig(samples, window_ms)


def test_equal_by_all_settings() -> None:
    """Two configs are equal when every setting is."""
    config = MetricConfig(3, 10, 5, Quota(1.0), {"a": "b"}, RecordingLevel.DEBUG)
    assert config == MetricConfig(3, 10, 5, Quota(1.0), [("a", "b")], RecordingLevel.DEBUG)
    assert hash(config) == hash(config.with_quota(Quota(1.0)))
    assert config != config.with_quota(Quota(2.0))
    assert config != "config"


def test_with_quota_keeps_the_rest() -> None:
    """A config with another quota differs in the quota alone."""
    settings = MetricConfig(3, 10, 5, None, {"a": "b"}, RecordingLevel.TRACE, KafkaRelease(3, 7))
    config = settings.with_quota(Quota(1.0))
    assert repr(config) == (
        "MetricConfig(samples=3, time_window_ms=10, event_window=5, quota=Quota(1.0, upper),"
        " tags=(('a', 'b'),), recording_level=TRACE, release=3.7)"
    )


finite = st.floats(allow_nan=False)


@given(bound=finite, value=finite)
def test_bounds_are_inclusive(bound: float, value: float) -> None:
    """A value may reach its bound from either side, and NaN violates it."""
    assert Quota(bound).acceptable(value) == (value <= bound)
    assert Quota(bound, upper=False).acceptable(value) == (value >= bound)
    assert Quota(bound).acceptable(bound)
    assert not Quota(bound).acceptable(math.nan)
    assert not Quota(bound, upper=False).acceptable(math.nan)


def test_equal_by_bound_and_direction() -> None:
    """Two quotas of the same bound and direction are the same quota."""
    assert Quota(5) == Quota(5.0)
    assert hash(Quota(5)) == hash(Quota(5.0))
    assert Quota(5.0) != Quota(5.0, upper=False)
    assert Quota(5.0) != Quota(6.0)
    assert Quota(5.0) != 5.0


@pytest.mark.parametrize("config", [WindowConfig, ManagerConfig])
@pytest.mark.parametrize(("samples", "seconds"), [(0, 1), (1, 0), (-1, 1)])
def test_refuses_windows_of_no_length(config: type[WindowConfig], samples: int, seconds: int) -> None:
    """Windows of no length are refused, with which no broker starts either."""
    with pytest.raises(InvalidConfig, match="at least 1 window of at least 1 s"):
        config(samples=samples, window_seconds=seconds)


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
def test_conversions(convert: Callable[[float], float], values: Mapping[float, float]) -> None:
    """Numbers are rounded and cast as in Java."""
    assert {value: convert(value) for value in values} == values


@given(a=longs, b=longs.filter(bool))
def test_tdiv_truncates_toward_zero(a: int, b: int) -> None:
    """The remainder has the sign of the dividend, as in Java's `%`, or is 0."""
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
        (0.0, 0.0, math.nan),
        (-0.0, 0.0, math.nan),
        (math.nan, 0.0, math.nan),
    ],
)
def test_jdiv(a: float, b: float, quotient: float) -> None:
    """Dividing by zero is an infinity with the product of the signs; 0/0 and NaN/0 are NaN."""
    assert same(jdiv(a, b), quotient)


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
    signs = [math.copysign(1.0, zero) for zero in (jmin(0.0, -0.0), jmin(-0.0, 0.0), jmax(0.0, -0.0), jmax(-0.0, 0.0))]
    assert signs == [-1.0, -1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("values", "whole"),
    [
        ((0.0, -0.0, 3.0, -3.0, 2.0**51 - 1), True),
        ((0.5, 2.0**50 + 0.5, -(2.0**50) - 0.25, 5e-324, 2.0**51, -(2.0**51), math.inf, math.nan), False),
    ],
)
def test_is_whole(values: tuple[float, ...], whole: bool) -> None:  # noqa: FBT001 - a parameter
    """Only values that add up exactly count as whole."""
    assert [is_whole(value) for value in values] == [whole] * len(values)


NAME = MetricName("byte-rate", "Produce", {"user": "a\nb"})
METRIC = KafkaMetric(Lock(), NAME, CumulativeSum(), MetricConfig())
ERRORS = [
    (InvalidConfig("no samples"), "no samples"),
    (InvalidHierarchy("s\n"), "a sensor meets 's\\n' twice among its parents and theirs"),
    (DuplicateMetric(NAME), f"a metric named {NAME} already exists"),
    (NotMeasurable(NAME), f"the metric {NAME} is a gauge, not a measurable"),
    (MalformedName("x\n" * 5_000, "bad"), "bad: " + repr("x\n" * 100)),
    (QuotaViolation(NAME, 6.0, 5.0, METRIC), f"{NAME} has value 6.0, its bound is 5.0"),
    (ThrottlingQuotaExceeded(1_500), "the throttling quota has been exceeded, wait 1500 ms"),
    (ConnectionThrottled("10.0.0.1", 5, 7), "10.0.0.1 opens connections too fast, throttled for 7 ms"),
    (TooManyConnections("10.0.0.1", 3), "10.0.0.1 may not have more than 3 connections"),
    (UnknownConnection("10.0.0.1"), "10.0.0.1 has no connection that could be closed"),
]  # fmt: skip


@pytest.mark.parametrize(("error", "text"), ERRORS, ids=lambda value: type(value).__name__)
def test_says_what_is_wrong_in_one_line(error: MetricsError, text: str) -> None:
    """Hostile names are escaped and cut; an error of a worker process arrives with its fields."""
    assert str(error) == text
    assert "\n" not in str(error)
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    assert (type(copy), str(copy)) == (type(error), str(error))


def test_values_pass_between_processes() -> None:
    """Values are pickled as their own kind, also by a compiled engine."""
    rules = QuotaRules({QuotaEntity("u", DEFAULT): 1.0})
    config = MetricConfig(3, 10, 5, Quota(1.0, upper=False), {"a": "b"}, RecordingLevel.DEBUG)
    values = [config, Principal.from_sanitized("a%3db"), rules, rules.snapshot(), rules.decide("u", "c")]
    copies = pickle.loads(pickle.dumps(values))  # noqa: S301 - our own
    assert [(type(copy), copy) for copy in copies] == [(type(value), value) for value in values]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Quota(5.0), "Quota(5.0, upper)"),
        (Quota(1.0, upper=False), "Quota(1.0, lower)"),
        (Principal("a\nb"), "Principal('a\\nb')"),
        (NAME, "MetricName('byte-rate', 'Produce', {'user': 'a\\nb'})"),
        (Registry().sensor("s\n", 0), "Sensor('s\\n')"),
        (METRIC, f"KafkaMetric({NAME!r})"),
    ]
)  # fmt: skip
def test_reprs_are_one_line(value: object, text: str) -> None:
    """A repr is one line that names the object, whatever a hostile name holds."""
    assert repr(value) == text
