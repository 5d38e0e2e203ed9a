"""Histograms over the last few windows of time: how values are cut into bins, and how often each was met."""

import math
from array import array
from typing import cast

from ...kafka.errors import InvalidConfig
from ...kafka.numbers import jdiv, to_f32, trunc_i32
from ..config import MetricConfig
from ..sampled import Sample, SampledStat

_LEAST_BINS = 2


class BinScheme:
    """
    Bins of values, counted from 0 (Kafka: `Histogram.BinScheme`).

    Args:
        count: how many.

    Raises:
        InvalidConfig: fewer than two.

    """

    __slots__ = ("count",)

    def __init__(self, count: int) -> None:
        if count < _LEAST_BINS:
            raise InvalidConfig(f"a histogram needs at least 2 bins, not {count}")
        self.count: int = count

    def bin_of(self, value: float) -> int:
        """Return the bin that a value falls into (Kafka: `toBin`)."""
        raise NotImplementedError

    def edge(self, number: int) -> float:
        """Return where a bin begins: -inf below the first, +inf above the last (Kafka: `fromBin`)."""
        if number < 0:
            return -math.inf
        return math.inf if number >= self.count else self._edge(number)

    def _edge(self, number: int) -> float:
        raise NotImplementedError


class ConstantBins(BinScheme):
    """
    Bins of the same width from `min_value` to `max_value` (Kafka: `Histogram.ConstantBinScheme`).

    Values outside fall into the first or the last bin, NaN into the first. The range is not checked, as in Kafka:
    an empty one puts all values up to its minimum into the first bin and all others into the last.
    """

    __slots__ = ("_min", "_width")

    def __init__(self, count: int, min_value: float, max_value: float) -> None:
        super().__init__(count)
        self._min: float = float(min_value)
        self._width: float = (float(max_value) - self._min) / float(count)

    def bin_of(self, value: float) -> int:
        """Return the bin that a value falls into."""
        number = trunc_i32(jdiv(value - self._min, self._width))
        return max(0, min(number, self.count - 1))

    def _edge(self, number: int) -> float:
        return self._min + float(number) * self._width


class LinearBins(BinScheme):
    """
    Bins from 0 to `max_value`, each wider than the one before by the same amount (Kafka: `Histogram.LinearBinScheme`).

    Small values are distinguished better than large ones. Values above `max_value` fall into the last bin, NaN into the
    first.

    Raises:
        InvalidConfig: fewer than two bins, or a maximum that their arithmetic cannot hold: negative, not a number, or
            at the very ends of a double. Kafka finds out later, when nothing can be recorded.

    """

    __slots__ = ("_max", "_scale")

    def __init__(self, count: int, max_value: float) -> None:
        super().__init__(count)
        self._max: float = float(max_value)
        self._scale: float = self._max / (float(count) * (float(count) - 1.0) / 2.0)
        if not (self._max >= 0.0 and self.bin_of(self._max) < count):
            raise InvalidConfig(f"0 to {max_value} cannot be cut into {count} bins")

    def bin_of(self, value: float) -> int:
        """
        Return the bin that a value falls into.

        Raises:
            InvalidConfig: the value is negative.

        """
        if value < 0.0:
            raise InvalidConfig(f"linear bins begin at 0, {value} is below")
        if value > self._max:
            return self.count - 1
        root = math.sqrt(1.0 + jdiv(8.0 * value, self._scale))
        return trunc_i32(-0.5 + 0.5 * root)

    def _edge(self, number: int) -> float:
        return self._scale * (float(number) * (float(number) + 1.0)) / 2.0


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
    Base of `Percentiles` and `Frequencies`; its own value is the number of recent events.

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
