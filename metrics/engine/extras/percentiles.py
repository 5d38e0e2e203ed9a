"""Percentiles of recent values."""

import math
from collections.abc import Sequence
from enum import Enum

from ...kafka.errors import InvalidConfig
from ...kafka.numbers import to_f32
from ..config import MetricConfig
from ..metric_name import MetricName
from ..sampled import Sample
from ..stat import CompoundStat, Measurable, Measured, NamedMeasurable
from .histogram import BinScheme, ConstantBins, HistogramWindows, LinearBins, count_in, total_f32

_BYTES_PER_BIN = 4


class BucketSizing(Enum):
    """Division of the range of values into bins (Kafka: `Percentiles.BucketSizing`)."""

    CONSTANT = "constant"
    """Bins of the same width."""

    LINEAR = "linear"
    """Bins from 0 that widen evenly."""


class Percentile:
    """A metric that is one percentile: 50 is the median (Kafka: `Percentile`)."""

    __slots__ = ("name", "percentile")

    def __init__(self, name: MetricName, percentile: float) -> None:
        self.name: MetricName = name
        self.percentile: float = percentile


class Percentiles(CompoundStat):
    """
    Percentiles of the recent values, from histograms (Kafka: `Percentiles`); its own value is the median.

    A percentile is the lower edge of the first bin at which more than that share of the events is counted: NaN
    without events, +inf from 100 on. Counts and shares have 32 bits, as in Kafka, so that the bin is the same.

    Args:
        size_in_bytes: memory of one window's histogram, 4 bytes per bin.
        max_value: larger values count as this one.
        sizing: how the range is cut.
        percentiles: the metrics.
        min_value: smaller values count as this one.

    Raises:
        InvalidConfig: fewer than two bins, or linear bins that do not begin at 0.

    """

    __slots__ = ("_max", "_min", "_percentiles", "_windows")

    def __init__(
        self,
        size_in_bytes: int,
        max_value: float,
        sizing: BucketSizing,
        percentiles: Sequence[Percentile] = (),
        min_value: float = 0.0,
    ) -> None:
        self._min: float = float(min_value)
        self._max: float = float(max_value)
        self._percentiles: tuple[Percentile, ...] = tuple(percentiles)
        count = size_in_bytes // _BYTES_PER_BIN
        self._windows = HistogramWindows(_bins(count, self._min, self._max, sizing))

    def record(self, config: MetricConfig, value: float, now_ms: int) -> None:
        """Count a value, pinned to the range."""
        if value > self._max:
            value = self._max
        elif value < self._min:
            value = self._min
        self._windows.record(config, value, now_ms)

    def measure(self, config: MetricConfig, now_ms: int) -> float:
        """Return the median; empties obsolete windows first."""
        return self.value(config, now_ms, 0.5)

    def peek(self, config: MetricConfig, now_ms: int) -> float:
        """Return the median without an effect on later values."""
        return self.peek_value(config, now_ms, 0.5)

    def value(self, config: MetricConfig, now_ms: int, quantile: float) -> float:
        """Return the value at a quantile from 0 to 1; empties obsolete windows first."""
        return self._edge_above(self._windows.live(config, now_ms), quantile)

    def peek_value(self, config: MetricConfig, now_ms: int, quantile: float) -> float:
        """Return the value at a quantile from 0 to 1, without an effect on later values."""
        return self._edge_above(self._windows.view(config, now_ms), quantile)

    def stats(self) -> Sequence[NamedMeasurable]:
        """Return the percentiles in the given order."""
        return [
            NamedMeasurable(percentile.name, self._at(percentile.percentile / 100.0))
            for percentile in self._percentiles
        ]

    def _at(self, quantile: float) -> Measurable:
        return Measured(
            lambda config, now_ms: self.value(config, now_ms, quantile),
            lambda config, now_ms: self.peek_value(config, now_ms, quantile),
        )

    def _edge_above(self, samples: list[Sample], quantile: float) -> float:
        total = total_f32(samples)
        if total == 0.0:
            return math.nan
        target = to_f32(quantile)
        if target < 0.0:
            return self._windows.bins.edge(0)
        reached = 0.0
        for number in range(self._windows.bins.count):
            for sample in samples:
                count = count_in(sample, number)
                if count != 0.0:
                    reached = to_f32(reached + count)
                    if to_f32(reached / total) > target:
                        return self._windows.bins.edge(number)
        return math.inf


def _bins(count: int, min_value: float, max_value: float, sizing: BucketSizing) -> BinScheme:
    if sizing is BucketSizing.CONSTANT:
        return ConstantBins(count, min_value, max_value)
    if min_value != 0.0:
        raise InvalidConfig(f"linear bins begin at 0, not at {min_value}")
    return LinearBins(count, max_value)
