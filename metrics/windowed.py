"""Sum, count, average, maximum and minimum over the last few windows."""

import math
import sys

from .numbers import jmax, jmin
from .sampled import Sample, SampledStat


class WindowedSum(SampledStat):
    """Sum of the recent values, 0 when there are none (Kafka: `WindowedSum`)."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(0.0)

    def update(self, sample: Sample, value: float) -> None:
        """Add the value."""
        sample.value += value

    def combine(self, samples: list[Sample]) -> float:
        """Add up the windows in ring order."""
        total = 0.0
        for sample in samples:
            total += sample.value
        return total


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
