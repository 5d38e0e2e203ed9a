"""Properties of all statistics, and statistics over windows and over all time."""

import math
import struct
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.metrics.examples import TEN_SECONDS, make_frequencies, make_percentiles, same
from tests.strategies import EPOCH_MS, Event, configs, traces

from quotascope.metrics.engine.config import MetricConfig
from quotascope.metrics.engine.cumulative import CumulativeSum
from quotascope.metrics.engine.extras.all_time import CumulativeCount, Value
from quotascope.metrics.engine.quota import Quota
from quotascope.metrics.engine.rate import Rate, SimpleRate
from quotascope.metrics.engine.sampled import SampledStat
from quotascope.metrics.engine.stat import CompoundStat, Measurable, Stat
from quotascope.metrics.engine.token_bucket import TokenBucket
from quotascope.metrics.engine.windowed import Avg, Max, Min, WindowedCount, WindowedSum

Make = Callable[[], Stat]
EMPTY: dict[Make, float] = {
    **dict.fromkeys((WindowedSum, WindowedCount, CumulativeSum, CumulativeCount, Value, Rate, SimpleRate), 0.0),
    **dict.fromkeys((Avg, Max, Min, make_percentiles), math.nan),
    make_frequencies: 0.0,
    TokenBucket: 50.0,
}
"""What each statistic reads when nothing was recorded, under `TEN_SECONDS`."""
each_statistic = pytest.mark.parametrize("make", EMPTY)
SAMPLED: dict[Callable[[], SampledStat], Callable[[list[float]], float]] = {
    WindowedSum: math.fsum,
    WindowedCount: len,
    Avg: lambda live: math.fsum(live) / len(live) if live else math.nan,
    Max: lambda live: max(live, default=math.nan),
    Min: lambda live: min(live, default=math.nan),
}
"""What each statistic over windows is over the values that count."""
each_sampled = pytest.mark.parametrize(("make", "expected"), SAMPLED.items())


def fed(stat: Stat, config: MetricConfig, trace: list[Event]) -> Stat:
    for event in trace:
        stat.record(config, event.value, event.at_ms)
    return stat


def end_of(trace: list[Event]) -> int:
    return trace[-1].at_ms if trace else EPOCH_MS


@each_statistic
def test_reads_its_empty_value(make: Make) -> None:
    """Before anything is recorded there is a defined value, and an int that is recorded becomes a double."""
    stat = make()
    assert same(stat.measure(TEN_SECONDS, EPOCH_MS), EMPTY[make])
    stat.record(TEN_SECONDS, 3, EPOCH_MS)
    assert isinstance(stat.measure(TEN_SECONDS, EPOCH_MS), float)


@each_statistic
@given(config=configs, trace=traces(), later=st.integers(0, 100_000))
def test_a_peek_is_what_measure_would_be_and_changes_nothing(
    make: Make, config: MetricConfig, trace: list[Event], later: int
) -> None:
    """A value that is peeked at after each event ends as one that was never looked at, and as the last peek says."""
    watched = make()
    watched.peek(config, EPOCH_MS)
    for event in trace:
        watched.record(config, event.value, event.at_ms)
        watched.peek(config, event.at_ms + 1_000_000)
    now_ms = end_of(trace) + later
    peeked = watched.peek(config, now_ms)
    assert same(peeked, watched.measure(config, now_ms))
    assert same(peeked, fed(make(), config, trace).measure(config, now_ms))


def live_values(config: MetricConfig, trace: list[Event], now_ms: int) -> list[float]:
    """Group a history into windows, in no clever way, and return the values that still count."""
    windows: list[list[Event]] = []
    for event in trace:
        newest = windows[-1] if windows else None
        if (
            newest is None
            or event.at_ms - newest[0].at_ms >= config.time_window_ms
            or len(newest) >= config.event_window
        ):
            windows.append([])
        windows[-1].append(event)
    remaining = windows[-(config.samples + 1) :]
    live = [window for window in remaining if now_ms - window[-1].at_ms < config.span_ms]
    return [event.value for window in live for event in window]


@each_sampled
@given(config=configs, trace=traces(), later=st.integers(0, 100_000))
def test_agrees_with_a_plain_model(
    make: Callable[[], SampledStat],
    expected: Callable[[list[float]], float],
    config: MetricConfig,
    trace: list[Event],
    later: int,
) -> None:
    """The ring of windows, at most one more than samples, equals windows computed from the full history."""
    now_ms = end_of(trace) + later
    stat = make()
    fed(stat, config, trace)
    assert len(stat.view(config, now_ms)) <= config.samples + 1
    assert same(stat.measure(config, now_ms), expected(live_values(config, trace, now_ms)))


@each_sampled
def test_fewer_samples_keep_the_ring(make: Callable[[], SampledStat], expected: Callable[[list[float]], float]) -> None:
    """Windows beyond a lowered number of samples count until they are obsolete."""
    stat = make()
    for second in range(5):
        stat.record(MetricConfig(samples=5, time_window_ms=1_000), 1.0 + second, EPOCH_MS + second * 1_000)
    narrow = MetricConfig(samples=2, time_window_ms=1_000)
    assert same(stat.measure(narrow, EPOCH_MS + 4_999), expected([4.0, 5.0]))


def test_a_read_lets_obsolete_windows_begin_again() -> None:
    """Kafka's reads have an effect: the next value falls into a window that began with the first read."""
    measured, unread = WindowedSum(), WindowedSum()
    for stat in (measured, unread):
        stat.record(TEN_SECONDS, 1.0, EPOCH_MS)
    for after_ms in (20_000, 20_100):
        measured.measure(TEN_SECONDS, EPOCH_MS + after_ms)
    starts = []
    for stat in (measured, unread):
        stat.record(TEN_SECONDS, 1.0, EPOCH_MS + 20_500)
        starts.append([sample.start_ms - EPOCH_MS for sample in stat.view(TEN_SECONDS, EPOCH_MS + 20_500)])
    assert starts == [[20_000], [20_500, 20_500]]


def test_a_clock_set_back_keeps_the_window_open() -> None:
    """A clock that is set back piles events up in the window that lies in the future, as in Kafka."""
    stat = WindowedSum()
    stat.record(TEN_SECONDS, 1.0, EPOCH_MS)
    for second in range(60):
        stat.record(TEN_SECONDS, 1.0, EPOCH_MS - 3_600_000 + second * 1_000)
    assert stat.measure(TEN_SECONDS, EPOCH_MS - 3_540_000) == 61.0
    assert len(stat.view(TEN_SECONDS, EPOCH_MS)) == 1


adding_up = st.one_of(
    st.integers(-1_000, 1_000).map(float),
    st.sampled_from([0.1, -0.0, 1e16, 2.0**51, 2.0**50, 0.5, math.inf, math.nan]),
    st.floats(),
)


@given(trace=st.lists(st.tuples(adding_up, st.integers(-500, 3_000), st.booleans()), max_size=40))
def test_a_sum_is_that_in_ring_order(trace: list[tuple[float, int, bool]]) -> None:
    """A read equals the sum of the windows in order to the last bit, with whole numbers and without."""
    stat, now_ms = WindowedSum(), EPOCH_MS
    for value, step_ms, whole in trace:
        now_ms += step_ms
        stat.record(TEN_SECONDS, float(len(trace)) if whole else value, now_ms)
        one_by_one = stat.peek(TEN_SECONDS, now_ms)
        read = stat.measure(TEN_SECONDS, now_ms)
        assert struct.pack("d", read) == struct.pack("d", one_by_one)


@pytest.mark.parametrize(
    ("stat", "values", "expected"),
    [
        (Max(), (1.0, math.nan, 2.0), math.nan),
        (Min(), (math.inf,), 1.7976931348623157e308),
    ],
    ids=["one NaN spoils the window it is in", "nothing above the largest double is the minimum"],
)
def test_extremes_are_javas(stat: Stat, values: tuple[float, ...], expected: float) -> None:
    """A maximum of NaN is that of `Math.max`, and a minimum begins with Kafka's first value."""
    for value in values:
        stat.record(TEN_SECONDS, value, EPOCH_MS)
    assert same(stat.measure(TEN_SECONDS, EPOCH_MS), expected)


def test_the_base_classes_do_nothing_by_themselves() -> None:
    """A subclass that forgets a method is refused."""
    for call in (
        lambda: Measurable().measure(TEN_SECONDS, 0),
        lambda: Stat().record(TEN_SECONDS, 1.0, 0),
        CompoundStat().stats,
        lambda: SampledStat(0.0).record(TEN_SECONDS, 1.0, EPOCH_MS),
        lambda: SampledStat(0.0).measure(TEN_SECONDS, EPOCH_MS),
    ):
        with pytest.raises(NotImplementedError):
            call()


KAFKAS = MetricConfig(samples=10, time_window_ms=2_000, quota=Quota(5.0))
"""The config of Kafka's own tests of the token bucket: a burst of 100."""


@given(config=configs, trace=traces())
def test_a_bucket_is_never_above_the_burst(config: MetricConfig, trace: list[Event]) -> None:
    """Neither time nor returned tokens fill a bucket above the burst."""
    bucket = TokenBucket()
    burst = config.samples * (config.time_window_ms / 1000) * (config.quota or Quota(0.0)).bound
    for event in trace:
        bucket.record(config, event.value, event.at_ms)
        assert bucket.measure(config, event.at_ms) <= burst


@given(trace=traces())
def test_a_token_is_never_spent_twice(trace: list[Event]) -> None:
    """Tokens taken while they last are at most the burst and the tokens accrued since."""
    bucket = TokenBucket()
    taken = 0.0
    for event in trace:
        if bucket.measure(KAFKAS, event.at_ms) >= abs(event.value):
            bucket.record(KAFKAS, abs(event.value), event.at_ms)
            taken += abs(event.value)
    assert taken <= (100.0 + 5.0 * (end_of(trace) - EPOCH_MS) / 1000) * (1 + 1e-12)


def test_a_bucket_without_a_quota_has_no_limit() -> None:
    """A bucket without a quota records nothing, whatever is taken."""
    bucket = TokenBucket()
    bucket.record(MetricConfig(), 1e30, EPOCH_MS)
    assert bucket.peek(MetricConfig(), EPOCH_MS) == float(2**63 - 1)


def test_a_bucket_is_acceptable_down_to_zero() -> None:
    """Bound and direction of the quota play no part, and NaN passes, as in Kafka."""
    accepted = [TokenBucket().acceptable(Quota(5.0), value) for value in (100.0, 0.0, -0.0, math.nan, -1e-9)]
    assert accepted == [True, True, True, True, False]


@given(now_ms=st.integers(0, 10_000))
def test_a_full_bucket_is_full_by_any_clock(now_ms: int) -> None:
    """A bucket that starts full is full at any time, not only long after the epoch."""
    assert TokenBucket.full(now_ms).measure(KAFKAS, now_ms) == 100.0


def test_a_bucket_starts_with_what_it_is_given() -> None:
    """A bucket continues from a known state; a clock set back takes tokens away for as long, as in Kafka."""
    bucket = TokenBucket(tokens=10, at_ms=5_000)
    assert [bucket.measure(KAFKAS, at_ms) for at_ms in (5_000, 6_000)] == [10.0, 15.0]
    full = TokenBucket.full(EPOCH_MS)
    assert [full.measure(KAFKAS, EPOCH_MS + ms) for ms in (0, -60_000, 0)] == [100.0, -200.0, 100.0]
