"""Rates: a sampled sum per unit of time."""

from enum import Enum

from ..kafka.numbers import INT_MAX, jdiv, tdiv, to_i32
from .config import MetricConfig
from .native import i64, mypyc_attr
from .sampled import SampledStat
from .stat import Stat
from .windowed import WindowedSum


class TimeUnit(Enum):
    """A unit and its name (Kafka: `java.util.concurrent.TimeUnit` with `MetricsUtils.convert`)."""

    NANOSECONDS = "nanosecond"
    MICROSECONDS = "microsecond"
    MILLISECONDS = "millisecond"
    SECONDS = "second"
    MINUTES = "minute"
    HOURS = "hour"
    DAYS = "day"


_MS_PER_UNIT = {
    TimeUnit.MILLISECONDS: 1.0,
    TimeUnit.SECONDS: 1000.0,
    TimeUnit.MINUTES: 60_000.0,
    TimeUnit.HOURS: 3_600_000.0,
    TimeUnit.DAYS: 86_400_000.0,
}


def convert(ms: int, unit: TimeUnit) -> float:
    """Return milliseconds in the unit, as a double in Kafka's order of operations."""
    if unit is TimeUnit.NANOSECONDS:
        return float(ms) * 1000.0 * 1000.0
    if unit is TimeUnit.MICROSECONDS:
        return float(ms) * 1000.0
    return float(ms) / _MS_PER_UNIT[unit]


@mypyc_attr(allow_interpreted_subclasses=True)
class Rate(Stat):
    """
    The recent sum divided by the time it was recorded in (Kafka: `Rate`).

    The divisor is never below `samples - 1` whole windows plus the elapsed part of the current one: with a broker's 11
    x 1 s, a first value of V reads V/10. It can also exceed `samples` windows, since an older window which overlaps the
    monitored time counts whole. With one sample and no time elapsed it is 1 ms; up to Kafka 3.2 it is 0, and the rate
    infinite (`KafkaRelease.shortest_span_ms`).

    Args:
        stat: what is divided, a `WindowedSum` unless given.
        unit: what it is per.
        time_window_ms: a window of its own instead of the config's; 0 for the config's (Kafka 4.x: the third
            argument of `Rate`).

    """

    __slots__ = ("_in_seconds", "_window_ms", "stat", "unit")

    def __init__(
        self, stat: SampledStat | None = None, unit: TimeUnit = TimeUnit.SECONDS, time_window_ms: i64 = 0
    ) -> None:
        self.stat: SampledStat = WindowedSum() if stat is None else stat
        self.unit: TimeUnit = unit
        self._in_seconds: bool = unit is TimeUnit.SECONDS
        self._window_ms: i64 = time_window_ms
        if time_window_ms:
            self.stat.set_time_window(time_window_ms)

    def record(self, config: MetricConfig, value: float, now_ms: i64) -> None:
        """Add a value."""
        self.stat.record(config, value, now_ms)

    def measure(self, config: MetricConfig, now_ms: i64) -> float:
        """
        Return the rate, 0 if nothing was ever recorded.

        Reading has an effect, as in Kafka: obsolete windows start again at the time of the read, and a rate that was
        never recorded starts its first window. `peek` has none.
        """
        value = self.stat.measure(config, now_ms)
        elapsed_ms = now_ms - self.stat.oldest_start_ms(now_ms)
        return self._per_unit(value, self._divisor_ms(config, elapsed_ms))

    def peek(self, config: MetricConfig, now_ms: i64) -> float:
        """Return what `measure` would, without an effect on later values."""
        samples = self.stat.view(config, now_ms)
        oldest = min(sample.start_ms for sample in samples)
        return self._per_unit(self.stat.combine(samples), self._divisor_ms(config, now_ms - oldest))

    def window_size(self, config: MetricConfig, now_ms: i64) -> int:
        """Return the divisor at `now_ms` in ms, at least `KafkaRelease.shortest_span_ms`, after a purge."""
        self.stat.purge(config, now_ms)
        return self._divisor_ms(config, now_ms - self.stat.oldest_start_ms(now_ms))

    def _divisor_ms(self, config: MetricConfig, elapsed_ms: i64) -> i64:
        window_ms = self._window_ms
        if window_ms == 0:
            window_ms = config.time_window_ms
        whole: i64 = config.samples - 1
        full = elapsed_ms // window_ms
        if elapsed_ms < 0:
            full = tdiv(elapsed_ms, window_ms)
        if not -INT_MAX <= full <= INT_MAX:
            full = to_i32(full)
        if full < whole:
            elapsed_ms += to_i32(whole - full) * window_ms
        shortest: i64 = config.shortest_span_ms
        return elapsed_ms if shortest == 0 else max(shortest, elapsed_ms)

    def _per_unit(self, value: float, ms: i64) -> float:
        if ms == 0:
            return jdiv(value, 0.0)
        return value / self._to_unit(ms)

    def _to_unit(self, ms: i64) -> float:
        if self._in_seconds:
            return float(ms) / 1000.0
        return convert(ms, self.unit)


class SimpleRate(Rate):
    """
    A per-second rate that does not spread early values over windows to come (Kafka: `SimpleRate`).

    The divisor is the time since the oldest window began, at least one window: a single early value V reads V per
    window during the whole first window. Kafka uses it for replication and tiered storage quotas.
    """

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__()

    def _divisor_ms(self, config: MetricConfig, elapsed_ms: i64) -> i64:
        return max(elapsed_ms, config.time_window_ms)
