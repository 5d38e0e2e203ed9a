"""When windows begin, end and are forgotten."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.metrics.contracts import TEN_SECONDS
from tests.strategies import EPOCH_MS, Event, configs, traces

from quotascope.metrics import (
    MetricConfig,
    Sample,
    SampledStat,
    WindowedCount,
    WindowedSum,
)


def starts(stat: SampledStat, config: MetricConfig, now_ms: int) -> list[int]:
    """Return when the windows began, from the beginning of the trace."""
    return [sample.start_ms - EPOCH_MS for sample in stat.view(config, now_ms)]


def test_a_window_starts_with_its_first_event() -> None:
    """Windows are aligned to nothing: there are gaps between them."""
    stat = WindowedSum()
    for at_ms in (300, 1_299, 1_300, 5_000):
        stat.record(TEN_SECONDS, 1.0, EPOCH_MS + at_ms)
    assert starts(stat, TEN_SECONDS, EPOCH_MS + 5_000) == [300, 1_300, 5_000]


def test_a_window_is_complete_after_its_events() -> None:
    """The event window ends a window whose time is not over."""
    config = MetricConfig(samples=5, time_window_ms=1_000, event_window=2)
    stat = WindowedCount()
    for at_ms in (0, 1, 2, 3, 4):
        stat.record(config, 1.0, EPOCH_MS + at_ms)
    assert starts(stat, config, EPOCH_MS + 4) == [0, 2, 4]


def test_an_overlapping_window_counts_whole() -> None:
    """A window that began before the monitored time and has an event in it is kept (KAFKA-16792)."""
    config = MetricConfig(samples=2, time_window_ms=1_000)
    stat = WindowedCount()
    for at_ms in (0, 900, 1_000, 2_000):
        stat.record(config, 1.0, EPOCH_MS + at_ms)
    assert stat.measure(config, EPOCH_MS + 2_899) == 4.0
    assert stat.measure(config, EPOCH_MS + 2_900) == 2.0


def test_a_read_lets_obsolete_windows_start_anew() -> None:
    """Kafka's reads have an effect: the next value falls into a window that began with the read."""
    read, unread = WindowedSum(), WindowedSum()
    for stat in (read, unread):
        stat.record(TEN_SECONDS, 1.0, EPOCH_MS)
    read.measure(TEN_SECONDS, EPOCH_MS + 20_000)
    for stat in (read, unread):
        stat.record(TEN_SECONDS, 1.0, EPOCH_MS + 20_500)
    assert starts(read, TEN_SECONDS, EPOCH_MS + 20_500) == [20_000]
    assert starts(unread, TEN_SECONDS, EPOCH_MS + 20_500) == [20_500, 20_500]


def test_a_clock_set_back_keeps_the_window_open() -> None:
    """Nothing guards against it: events pile up in the window that lies in the future."""
    stat = WindowedSum()
    stat.record(TEN_SECONDS, 1.0, EPOCH_MS)
    for second in range(60):
        stat.record(TEN_SECONDS, 1.0, EPOCH_MS - 3_600_000 + second * 1_000)
    assert stat.measure(TEN_SECONDS, EPOCH_MS - 3_540_000) == 61.0
    assert len(stat.view(TEN_SECONDS, EPOCH_MS)) == 1


def test_oldest_start_creates_the_first_window() -> None:
    """A statistic that is asked for its oldest window has one from then on."""
    stat = WindowedSum()
    assert stat.oldest_start_ms(EPOCH_MS + 7) == EPOCH_MS + 7
    assert stat.oldest_start_ms(EPOCH_MS + 9) == EPOCH_MS + 7


@given(config=configs, trace=traces())
def test_the_ring_never_grows_beyond_one_more_than_samples(
    config: MetricConfig, trace: list[Event]
) -> None:
    """Memory is bounded by the config, not by the traffic."""
    stat = WindowedSum()
    for event in trace:
        stat.record(config, event.value, event.at_ms)
    assert len(stat.view(config, EPOCH_MS)) <= config.samples + 1


@given(
    config=configs, trace=traces(), reads=st.lists(st.integers(0, 5_000), max_size=10)
)
def test_every_recorded_value_counts_until_it_is_obsolete(
    config: MetricConfig, trace: list[Event], reads: list[int]
) -> None:
    """Reading never takes a value away before its window is obsolete."""
    stat = WindowedCount()
    now_ms = EPOCH_MS
    for event, wait in zip(trace, reads, strict=False):
        now_ms = event.at_ms + wait
        stat.record(config, event.value, now_ms)
        assert stat.measure(config, now_ms) >= 1.0
        assert stat.measure(config, now_ms + config.span_ms - 1) >= 1.0


def test_the_base_class_has_no_statistic() -> None:
    """What a window holds is up to the subclass."""
    with pytest.raises(NotImplementedError):
        SampledStat(0.0).record(TEN_SECONDS, 1.0, EPOCH_MS)
    with pytest.raises(NotImplementedError):
        SampledStat(0.0).measure(TEN_SECONDS, EPOCH_MS)


def test_a_sample_can_begin_anew() -> None:
    """A reset leaves nothing of the window before."""
    sample = Sample(-1.0, 5)
    sample.value, sample.event_count, sample.last_event_ms = 9.0, 3, 8
    sample.reset(-1.0, 10)
    assert (
        sample.value,
        sample.event_count,
        sample.start_ms,
        sample.last_event_ms,
    ) == (-1.0, 0, 10, 10)
