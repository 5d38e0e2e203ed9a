"""
Interfaces of the engine: measurables, and statistics that record and measure.

Plain base classes instead of protocols: compiled code calls them through a table, not by name.
"""

from collections.abc import Callable, Sequence

from .config import MetricConfig
from .metric_name import MetricName
from .native import i64, mypyc_attr
from .quota import Quota


@mypyc_attr(allow_interpreted_subclasses=True)
class Measurable:
    """A number that can be read at a time (Kafka: `Measurable`)."""

    __slots__ = ()

    def measure(self, config: MetricConfig, now_ms: i64) -> float:
        """
        Return the value at `now_ms` (epoch ms).

        Reading may change a sampled statistic: see `SampledStat.measure`.
        """
        raise NotImplementedError

    def peek(self, config: MetricConfig, now_ms: i64) -> float:
        """Return what `measure` would, without an effect on later values."""
        return self.measure(config, now_ms)

    def acceptable(self, quota: Quota, value: float) -> bool:
        """Return whether a value of this statistic keeps to the quota."""
        return quota.acceptable(value)


class Measured(Measurable):
    """A measurable by a function (Kafka: a lambda in `Metrics.addMetric`), and one to peek if reading has an effect."""

    __slots__ = ("_function", "_peek")

    def __init__(
        self,
        function: Callable[[MetricConfig, int], float],
        peek: Callable[[MetricConfig, int], float] | None = None,
    ) -> None:
        self._function = function
        self._peek = function if peek is None else peek

    def measure(self, config: MetricConfig, now_ms: i64) -> float:
        """Return the function's value."""
        return self._function(config, now_ms)

    def peek(self, config: MetricConfig, now_ms: i64) -> float:
        """Return the value of the function that has no effect."""
        return self._peek(config, now_ms)


class Gauge:
    """A value of any type made by a function of config and epoch ms (Kafka: `Gauge`)."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[[MetricConfig, int], object]) -> None:
        self.function = function


@mypyc_attr(allow_interpreted_subclasses=True)
class Stat(Measurable):
    """A statistic over recorded values (Kafka: `Stat`, `MeasurableStat`)."""

    __slots__ = ()

    def record(self, config: MetricConfig, value: float, now_ms: i64) -> None:
        """Take in a value at `now_ms` (epoch ms)."""
        raise NotImplementedError


class NamedMeasurable:
    """One of the metrics that a compound statistic offers."""

    __slots__ = ("measurable", "name")

    def __init__(self, name: MetricName, measurable: Measurable) -> None:
        self.name = name
        self.measurable = measurable


@mypyc_attr(allow_interpreted_subclasses=True)
class CompoundStat(Stat):
    """A statistic that offers several metrics (Kafka: `CompoundStat`); it need not be measurable itself."""

    __slots__ = ()

    def stats(self) -> Sequence[NamedMeasurable]:
        """Return its metrics in the order of registration."""
        raise NotImplementedError
