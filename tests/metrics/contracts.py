"""What every statistic keeps to; a test class of a statistic inherits the contract of its kind."""

import math
from collections.abc import Callable
from typing import ClassVar, final

from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import EPOCH_MS, Event, configs, traces

from quotascope.metrics import MetricConfig, Quota, SampledStat, Stat

TEN_SECONDS = MetricConfig(samples=10, time_window_ms=1_000, quota=Quota(5.0))


def same(a: float, b: float) -> bool:
    """Whether two doubles are equal, NaN to itself."""
    return a == b or (math.isnan(a) and math.isnan(b))


def fed(stat: Stat, config: MetricConfig, trace: list[Event]) -> Stat:
    """Record a trace."""
    for event in trace:
        stat.record(config, event.value, event.at_ms)
    return stat


def end_of(trace: list[Event]) -> int:
    """When the last event was."""
    return trace[-1].at_ms if trace else EPOCH_MS


class StatContract:
    """Any statistic."""

    make: ClassVar[Callable[[], Stat]]
    empty: ClassVar[float]
    """What it reads when nothing was recorded, under `TEN_SECONDS`."""

    @final
    def test_reads_its_empty_value(self) -> None:
        """Before anything is recorded there is a defined value."""
        assert same(type(self).make().measure(TEN_SECONDS, EPOCH_MS), self.empty)

    @final
    @given(config=configs, trace=traces(), later=st.integers(0, 100_000))
    def test_peek_is_what_measure_would_be(self, config: MetricConfig, trace: list[Event], later: int) -> None:
        """Looking without an effect gives the number that looking with one gives."""
        stat = fed(type(self).make(), config, trace)
        now_ms = end_of(trace) + later
        peeked = stat.peek(config, now_ms)
        assert same(peeked, stat.measure(config, now_ms))

    @final
    @given(config=configs, trace=traces())
    def test_peek_changes_nothing(self, config: MetricConfig, trace: list[Event]) -> None:
        """A value that is peeked at after each event ends as one that no one looked at."""
        watched = type(self).make()
        watched.peek(config, EPOCH_MS)
        for event in trace:
            watched.record(config, event.value, event.at_ms)
            watched.peek(config, event.at_ms + 1_000_000)
        unseen = fed(type(self).make(), config, trace)
        now_ms = end_of(trace) + 500
        assert same(watched.measure(config, now_ms), unseen.measure(config, now_ms))

    @final
    @given(config=configs, trace=traces(max_size=20))
    def test_replay_is_incremental(self, config: MetricConfig, trace: list[Event]) -> None:
        """At every moment the running value is what replaying all events up to then gives."""
        running = type(self).make()
        for count, event in enumerate(trace, start=1):
            running.record(config, event.value, event.at_ms)
            replayed = fed(type(self).make(), config, trace[:count])
            now_ms = event.at_ms + 700
            assert same(running.peek(config, now_ms), replayed.measure(config, now_ms))

    @final
    def test_takes_whole_numbers(self) -> None:
        """A caller who records an int gets a double all the same."""
        stat = type(self).make()
        stat.record(TEN_SECONDS, 3, EPOCH_MS)
        assert isinstance(stat.measure(TEN_SECONDS, EPOCH_MS), float)


class SampledContract(StatContract):
    """A statistic over windows."""

    make: ClassVar[Callable[[], SampledStat]]

    @staticmethod
    def expected(live: list[float]) -> float:
        """Return what the statistic is over the values that count."""
        raise NotImplementedError

    @final
    @given(config=configs, trace=traces(), later=st.integers(0, 100_000))
    def test_agrees_with_a_plain_model(self, config: MetricConfig, trace: list[Event], later: int) -> None:
        """The ring of windows gives what grouping the whole history of events from scratch gives."""
        now_ms = end_of(trace) + later
        stat = fed(type(self).make(), config, trace)
        expected = self.expected(live_values(config, trace, now_ms))
        assert same(stat.measure(config, now_ms), expected)

    @final
    def test_counts_a_window_until_it_is_obsolete(self) -> None:
        """A value counts for `samples` windows after it was recorded, and not a millisecond longer."""
        stat = type(self).make()
        stat.record(TEN_SECONDS, 7.0, EPOCH_MS)
        assert same(stat.measure(TEN_SECONDS, EPOCH_MS + 9_999), self.expected([7.0]))
        assert same(stat.measure(TEN_SECONDS, EPOCH_MS + 10_000), self.empty)

    @final
    def test_own_window_beats_the_configs(self) -> None:
        """With a time window of its own the config's is not looked at."""
        stat = type(self).make()
        stat.set_time_window(10)
        stat.record(TEN_SECONDS, 7.0, EPOCH_MS)
        assert same(stat.measure(TEN_SECONDS, EPOCH_MS + 99), self.expected([7.0]))
        assert same(stat.measure(TEN_SECONDS, EPOCH_MS + 100), self.empty)

    @final
    def test_fewer_samples_keep_the_ring(self) -> None:
        """Windows beyond a lowered number of samples count until they are obsolete."""
        stat = type(self).make()
        wide = MetricConfig(samples=5, time_window_ms=1_000)
        for second in range(5):
            stat.record(wide, 1.0 + second, EPOCH_MS + second * 1_000)
        narrow = MetricConfig(samples=2, time_window_ms=1_000)
        expected = self.expected([4.0, 5.0])
        assert same(stat.measure(narrow, EPOCH_MS + 4_999), expected)


def live_values(config: MetricConfig, trace: list[Event], now_ms: int) -> list[float]:
    """Group a history into windows, in no clever way, and return the values that still count."""
    windows: list[list[Event]] = []
    for event in trace:
        last = windows[-1] if windows else None
        if last is None or event.at_ms - last[0].at_ms >= config.time_window_ms or len(last) >= config.event_window:
            windows.append([])
        windows[-1].append(event)
    kept = windows[-(config.samples + 1) :]
    live = [window for window in kept if now_ms - window[-1].at_ms < config.span_ms]
    return [event.value for window in live for event in window]
