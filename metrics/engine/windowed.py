"""Sum, count, average, maximum and minimum over the last few windows."""

import math
import sys

from ..kafka.numbers import is_whole, jmax, jmin
from .config import MetricConfig
from .native import i64
from .sampled import Sample, SampledStat


class WindowedSum(SampledStat):
    """
    Sum of the recent values, 0 when there are none (Kafka: `WindowedSum`).

    Doubles add up in ring order, to the last bit as in Kafka. Where all windows hold whole numbers, as bytes do, no
    order makes a difference, and a read adds the current window to the sum of the others.
    """

    __slots__ = ("_is_exact", "_others")

    def __init__(self) -> None:
        super().__init__(0.0)
        self._others: float = 0.0
        self._is_exact: bool = False

    def measure(self, config: MetricConfig, now_ms: i64) -> float:
        """Return the sum over all windows that are not obsolete; an effect as in `SampledStat.measure`."""
        self.purge(config, now_ms)
        if self._is_exact:
            current = self._samples[self._current].value
            if is_whole(current):
                return self._others + current
        return self.combine(self._samples)

    def update(self, sample: Sample, value: float) -> None:
        """Add the value."""
        sample.value += value

    def combine(self, samples: list[Sample]) -> float:
        """Add up the windows in ring order."""
        total = 0.0
        for sample in samples:
            total += sample.value
        return total

    def survey(self) -> None:
        """Note what the windows beside the current one have in common."""
        super().survey()
        other_samples = size = 0.0
        exact = True
        for index, sample in enumerate(self._samples):
            if index != self._current:
                other_samples += sample.value
                size += abs(sample.value)
                exact = exact and is_whole(size) and is_whole(sample.value)
        self._others = other_samples
        self._is_exact = exact and bool(self._samples)


class WindowedCount(WindowedSum):
    """Number of the recent events, whatever their values (Kafka: `WindowedCount`)."""

    __slots__ = ()

    def update(self, sample: Sample, value: float) -> None:  # noqa: ARG002 - only the event counts
        """Count the event."""
        sample.value += 1.0


class Avg(SampledStat):
    """Mean of the recent values, NaN when there are none (Kafka: `Avg`)."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(0.0)

    def update(self, sample: Sample, value: float) -> None:
        """Add the value."""
        sample.value += value

    def combine(self, samples: list[Sample]) -> float:
        """Divide the sum of the windows by their events."""
        total = 0.0
        count = 0
        for sample in samples:
            total += sample.value
            count += sample.event_count
        return total / float(count) if count else math.nan


class Max(SampledStat):
    """Largest recent value, NaN when there is none (Kafka: `Max`)."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(-math.inf)

    def update(self, sample: Sample, value: float) -> None:
        """Keep the larger."""
        sample.value = jmax(sample.value, float(value))

    def combine(self, samples: list[Sample]) -> float:
        """Return the largest of the windows."""
        largest = -math.inf
        count = 0
        for sample in samples:
            largest = jmax(largest, sample.value)
            count += sample.event_count
        return largest if count else math.nan


class Min(SampledStat):
    """Smallest recent value, NaN when there is none (Kafka: `Min`)."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(sys.float_info.max)

    def update(self, sample: Sample, value: float) -> None:
        """Keep the smaller."""
        sample.value = jmin(sample.value, float(value))

    def combine(self, samples: list[Sample]) -> float:
        """Return the smallest of the windows; +inf reads as the largest double, as in Kafka."""
        smallest = sys.float_info.max
        count = 0
        for sample in samples:
            smallest = jmin(smallest, sample.value)
            count += sample.event_count
        return smallest if count else math.nan
