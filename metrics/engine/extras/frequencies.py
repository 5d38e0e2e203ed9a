"""Shares of recent values."""

from collections.abc import Sequence

from ...kafka.errors import InvalidConfig
from ...kafka.numbers import jdiv, to_f32
from ..config import MetricConfig
from ..metric_name import MetricName
from ..sampled import Sample
from ..stat import CompoundStat, Measurable, Measured, NamedMeasurable
from .histogram import ConstantBins, HistogramWindows, count_in


class Frequency:
    """A metric that is the share of one value, and of what is nearest to it (Kafka: `Frequency`)."""

    __slots__ = ("center_value", "name")

    def __init__(self, name: MetricName, center_value: float) -> None:
        self.name: MetricName = name
        self.center_value: float = center_value


class Frequencies(CompoundStat):
    """
    Frequencies of a few values among the recent ones (Kafka: `Frequencies`).

    Shares are from 0 to 1, and 0 without events. Its own value is the number of events. Values beyond the range
    count as its nearest end.

    Args:
        buckets: how many values are distinguished.
        min_value: the center of the first bucket.
        max_value: the center of the last bucket.
        frequencies: the metrics; one for each bucket, or for some.

    Raises:
        InvalidConfig: fewer than two buckets, more metrics than buckets, or a center outside the range.

    """

    __slots__ = ("_frequencies", "_windows")

    def __init__(self, buckets: int, min_value: float, max_value: float, frequencies: Sequence[Frequency]) -> None:
        _check(buckets, min_value, max_value, frequencies)
        self._frequencies: tuple[Frequency, ...] = tuple(frequencies)
        half = jdiv(max_value - min_value, float(buckets - 1)) / 2.0
        bins = ConstantBins(buckets, min_value - half, max_value + half)
        self._windows = HistogramWindows(bins)

    @staticmethod
    def for_boolean_values(false_name: MetricName | None, true_name: MetricName | None) -> "Frequencies":
        """
        Return the shares of 0 and 1; a name that is None is left out.

        Raises:
            InvalidConfig: both are None.

        """
        named = ((false_name, 0.0), (true_name, 1.0))
        chosen = [Frequency(name, value) for name, value in named if name is not None]
        if not chosen:
            raise InvalidConfig("name the metric of at least one of false and true")
        return Frequencies(2, 0.0, 1.0, chosen)

    def record(self, config: MetricConfig, value: float, now_ms: int) -> None:
        """Count a value."""
        self._windows.record(config, value, now_ms)

    def measure(self, config: MetricConfig, now_ms: int) -> float:
        """Return the number of recent events; empties obsolete windows first."""
        return self._windows.measure(config, now_ms)

    def peek(self, config: MetricConfig, now_ms: int) -> float:
        """Return the number of recent events without an effect on later values."""
        return self._windows.peek(config, now_ms)

    def frequency(self, config: MetricConfig, now_ms: int, value: float) -> float:
        """Return the share of the bucket that a value falls into; empties obsolete windows first."""
        return self._share(self._windows.live(config, now_ms), value)

    def peek_frequency(self, config: MetricConfig, now_ms: int, value: float) -> float:
        """Return the share of the bucket that a value falls into, without an effect on later values."""
        return self._share(self._windows.view(config, now_ms), value)

    def stats(self) -> Sequence[NamedMeasurable]:
        """Return the shares in the given order."""
        return [
            NamedMeasurable(frequency.name, self._share_of(frequency.center_value)) for frequency in self._frequencies
        ]

    def _share_of(self, value: float) -> Measurable:
        return Measured(
            lambda config, now_ms: self.frequency(config, now_ms, value),
            lambda config, now_ms: self.peek_frequency(config, now_ms, value),
        )

    def _share(self, samples: list[Sample], value: float) -> float:
        total = self._windows.combine(samples)
        if total == 0.0:
            return 0.0
        number = self._windows.bins.bin_of(value)
        count = 0.0
        for sample in samples:
            count = to_f32(count + count_in(sample, number))
        return count / total


def _check(buckets: int, min_value: float, max_value: float, frequencies: Sequence[Frequency]) -> None:
    if max_value < min_value:
        raise InvalidConfig(f"no values lie between {min_value} and {max_value}")
    if buckets < len(frequencies):
        raise InvalidConfig(f"{len(frequencies)} frequencies do not fit in {buckets} buckets")
    for frequency in frequencies:
        if frequency.center_value < min_value or frequency.center_value > max_value:
            raise InvalidConfig(f"{frequency.center_value} is not from {min_value} to {max_value}")
