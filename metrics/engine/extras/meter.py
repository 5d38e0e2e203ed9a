"""A rate and its running total from one record."""

from collections.abc import Sequence

from ...kafka.errors import InvalidConfig
from ..config import MetricConfig
from ..cumulative import CumulativeSum
from ..metric_name import MetricName
from ..native import i64
from ..rate import Rate, TimeUnit
from ..sampled import SampledStat
from ..stat import CompoundStat, NamedMeasurable
from ..windowed import WindowedCount, WindowedSum


class Meter(CompoundStat):
    """
    Two metrics, the total before the rate (Kafka: `Meter`).

    Args:
        rate_name: name of the rate.
        total_name: name of the total.
        stat: what the rate divides, a `WindowedSum` unless given; with a `WindowedCount` the total counts too.
        unit: what the rate is per.

    Raises:
        InvalidConfig: the statistic is neither a windowed sum nor a count.

    """

    __slots__ = ("_counts", "_rate", "_rate_name", "_total", "_total_name")

    def __init__(
        self,
        rate_name: MetricName,
        total_name: MetricName,
        stat: SampledStat | None = None,
        unit: TimeUnit = TimeUnit.SECONDS,
    ) -> None:
        if stat is not None and not isinstance(stat, WindowedSum):
            raise InvalidConfig("a meter is made of a WindowedSum or a WindowedCount")
        self._rate = Rate(stat, unit)
        self._total = CumulativeSum()
        self._rate_name = rate_name
        self._total_name = total_name
        self._counts: bool = isinstance(stat, WindowedCount)

    def record(self, config: MetricConfig, value: float, now_ms: i64) -> None:
        """Add to both."""
        self._rate.record(config, value, now_ms)
        self._total.record(config, 1.0 if self._counts else value, now_ms)

    def stats(self) -> Sequence[NamedMeasurable]:
        """Return the total, then the rate."""
        return (
            NamedMeasurable(self._total_name, self._total),
            NamedMeasurable(self._rate_name, self._rate),
        )
