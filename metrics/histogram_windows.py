"""Histograms over the last few windows of time."""

from array import array
from typing import cast

from .config import MetricConfig
from .histogram_bins import BinScheme
from .numbers import to_f32
from .sampled import Sample, SampledStat


class HistogramSample(Sample):
    """
    One window: how often each bin was met.

    The counts are numbers of 32 bits, as in Kafka: a bin stops growing at 16,777,216.
    """

    __slots__ = ("counts",)

    def __init__(self, bins: int, now_ms: int) -> None:
        super().__init__(0.0, now_ms)
        self.counts: array[float] = array("f", bytes(4 * bins))

    def reset(self, initial: float, now_ms: int) -> None:
        """Begin again at `now_ms`."""
        super().reset(initial, now_ms)
        self.counts = array("f", bytes(4 * len(self.counts)))


class HistogramWindows(SampledStat):
    """
    What `Percentiles` and `Frequencies` record into; its own value is the number of recent events.

    Args:
        bins: which values are distinguished.

    """

    __slots__ = ("bins",)

    def __init__(self, bins: BinScheme) -> None:
        super().__init__(0.0)
        self.bins: BinScheme = bins

    def live(self, config: MetricConfig, now_ms: int) -> list[Sample]:
        """Empty the obsolete windows, and return all."""
        self.purge(config, now_ms)
        return self._samples

    def new_sample(self, now_ms: int) -> Sample:
        """Return an empty window that starts now."""
        return HistogramSample(self.bins.count, now_ms)

    def update(self, sample: Sample, value: float) -> None:
        """Count the value in its bin."""
        cast("HistogramSample", sample).counts[self.bins.bin_of(value)] += 1.0

    def combine(self, samples: list[Sample]) -> float:
        """Return the number of events."""
        return float(sum(sample.event_count for sample in samples))


def count_in(sample: Sample, number: int) -> float:
    """Return how often a bin was met in a window."""
    return cast("HistogramSample", sample).counts[number]


def total_f32(samples: list[Sample]) -> float:
    """Return the number of events, added up in 32 bits."""
    total = 0.0
    for sample in samples:
        total = to_f32(total + to_f32(float(sample.event_count)))
    return total
