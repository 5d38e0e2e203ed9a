"""Statistics over the last few windows of time."""

from .config import MetricConfig
from .native import i64, mypyc_attr
from .stat import Stat


@mypyc_attr(allow_interpreted_subclasses=True, acyclic=True)
class Sample:
    """
    One window: what was recorded from `start_ms` on, last at `last_event_ms` (epoch ms).

    Up to Kafka 3.7 windows know no last event: it stays at the start.
    """

    __slots__ = ("event_count", "last_event_ms", "start_ms", "value")

    def __init__(self, initial: float, now_ms: i64) -> None:
        self.value: float = initial
        self.event_count: i64 = 0
        self.start_ms: i64 = now_ms
        self.last_event_ms: i64 = now_ms

    def reset(self, initial: float, now_ms: i64) -> None:
        """Begin again at `now_ms`."""
        self.value = initial
        self.event_count = 0
        self.start_ms = now_ms
        self.last_event_ms = now_ms


@mypyc_attr(allow_interpreted_subclasses=True)
class SampledStat(Stat):
    """
    A ring of `samples + 1` windows that are reused in turn (Kafka: `SampledStat`).

    A window starts with the first event after the previous one was complete, so windows are aligned to nothing and
    gaps lie between them. One is complete after the time window or after the event window, whichever is first,
    and obsolete when its **last event** is `samples` windows old, so that a window which overlaps the monitored
    time counts whole. Both limits are inclusive.

    Up to Kafka 3.7 the ring has `samples` windows, and one is obsolete when its **start** is that old
    (`KafkaRelease.keeps_overlapping_windows`): the config says the release.

    Fewer samples in a new config do not shorten the ring: windows beyond it count until they are obsolete.
    Nothing guards against a clock that is set back: events pile up in the current window until the clock has caught
    up. Feed the engine from a `SteadyClock` where that hurts.

    Args:
        initial: value of an empty window.

    """

    __slots__ = (
        "_current",
        "_initial",
        "_oldest_start_ms",
        "_samples",
        "_stalest_event_ms",
        "_window_ms",
    )

    def __init__(self, initial: float) -> None:
        self._initial: float = initial
        self._samples: list[Sample] = []
        self._current: i64 = 0
        self._window_ms: i64 = 0
        self._oldest_start_ms: i64 = 0
        # No window's last event is before it, so that most reads need not look for obsolete windows.
        self._stalest_event_ms: i64 = 0

    def record(self, config: MetricConfig, value: float, now_ms: i64) -> None:
        """Add a value to the current window, or to the next one if that is complete."""
        if not self._samples:
            self._begin(now_ms)
        sample = self._samples[self._current]
        window_ms = self._window_ms
        if window_ms == 0:
            window_ms = config.time_window_ms
        if now_ms - sample.start_ms >= window_ms or sample.event_count >= config.event_window:
            sample = self._advance(config, now_ms)
        self.update(sample, value)
        sample.event_count += 1
        if config.keeps_overlapping:
            sample.last_event_ms = now_ms
            if now_ms < self._stalest_event_ms:  # noqa: PLR1730 - a third of the time of min()
                self._stalest_event_ms = now_ms

    def measure(self, config: MetricConfig, now_ms: i64) -> float:
        """
        Return the statistic over all windows that are not obsolete.

        Reading has an effect, as in Kafka: an obsolete window is emptied and starts at the time of the read, so a
        value recorded next falls into a window that began with the read. Use `peek` where only the recorder's view
        shall count.
        """
        self.purge(config, now_ms)
        return self.combine(self._samples)

    def peek(self, config: MetricConfig, now_ms: i64) -> float:
        """Return what `measure` would, without emptying any window."""
        return self.combine(self.view(config, now_ms))

    def purge(self, config: MetricConfig, now_ms: i64) -> None:
        """Empty all obsolete windows and let them start now."""
        span_ms = self.span_ms(config)
        if now_ms - self._stalest_event_ms < span_ms:
            return
        for sample in self._samples:
            if now_ms - sample.last_event_ms >= span_ms:
                sample.reset(self._initial, now_ms)
        self.survey()

    def view(self, config: MetricConfig, now_ms: i64) -> list[Sample]:
        """Return the windows as a read would leave them, at least one; the ring itself stays as it is."""
        span_ms = self.span_ms(config)
        seen = [
            sample if now_ms - sample.last_event_ms < span_ms else self.new_sample(now_ms) for sample in self._samples
        ]
        return seen or [self.new_sample(now_ms)]

    def oldest_start_ms(self, now_ms: i64) -> i64:
        """Return the earliest start of a window; the first one is created now if there is none."""
        if not self._samples:
            self._begin(now_ms)
        return self._oldest_start_ms

    def set_time_window(self, window_ms: i64) -> None:
        """Use this window instead of the config's, whatever the config (Kafka: `SampledStat.withTimeWindow`)."""
        self._window_ms = window_ms

    def span_ms(self, config: MetricConfig) -> i64:
        """Return the age of a window's last event at which the window is obsolete."""
        if self._window_ms == 0:
            return config.span_ms
        return config.samples * self._window_ms

    def new_sample(self, now_ms: i64) -> Sample:
        """Return an empty window that starts now."""
        return Sample(self._initial, now_ms)

    def update(self, sample: Sample, value: float) -> None:
        """Take a value into a window."""
        raise NotImplementedError

    def combine(self, samples: list[Sample]) -> float:
        """Return the statistic over these windows."""
        raise NotImplementedError

    def _begin(self, now_ms: i64) -> None:
        self._samples.append(self.new_sample(now_ms))
        self.survey()

    def _advance(self, config: MetricConfig, now_ms: i64) -> Sample:
        self._current = (self._current + 1) % config.slots
        if self._current >= len(self._samples):
            self._samples.append(self.new_sample(now_ms))
        else:
            self._samples[self._current].reset(self._initial, now_ms)
        self.survey()
        return self._samples[self._current]

    def survey(self) -> None:
        """Note the earliest start and the earliest last event of all windows; called after a window has begun."""
        if not self._samples:
            return
        oldest_ms = self._samples[0].start_ms
        stalest_ms = self._samples[0].last_event_ms
        for sample in self._samples:
            if sample.start_ms < oldest_ms:  # noqa: PLR1730 - a third of the time of min()
                oldest_ms = sample.start_ms
            if sample.last_event_ms < stalest_ms:  # noqa: PLR1730 - the same
                stalest_ms = sample.last_event_ms
        self._oldest_start_ms = oldest_ms
        self._stalest_event_ms = stalest_ms
