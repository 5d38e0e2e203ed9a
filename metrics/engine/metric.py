"""A metric: a name, something to read, and the config it is read with."""

from .config import MetricConfig
from .errors import NotMeasurable, QuotaViolation, WrongStatistic
from .locks import Lock
from .metric_name import MetricName
from .native import i64
from .rate import Rate
from .stat import Gauge, Measurable


class ConfigHolder:
    """Holder of the current config of a statistic."""

    __slots__ = ("current",)

    def __init__(self, config: MetricConfig) -> None:
        self.current: MetricConfig = config


class KafkaMetric(ConfigHolder):
    """
    A registered metric (Kafka: `KafkaMetric`).

    Reading takes the metric lock only, which a sensor shares among its metrics, and never the sensor's own:
    a reporter that synchronizes itself cannot deadlock.
    """

    __slots__ = ("_lock", "gauge", "name", "stat")

    def __init__(self, lock: Lock, name: MetricName, provider: Measurable | Gauge, config: MetricConfig) -> None:
        super().__init__(config)
        self._lock: Lock = lock
        self.name: MetricName = name
        self.stat: Measurable | None = provider if isinstance(provider, Measurable) else None
        self.gauge: Gauge | None = provider if isinstance(provider, Gauge) else None

    @property
    def config(self) -> MetricConfig:
        """The config; a new one takes effect at the next record or read and keeps the data."""
        return self.current

    @config.setter
    def config(self, config: MetricConfig) -> None:
        with self._lock:
            self.current = config

    @property
    def measurable(self) -> Measurable:
        """The statistic behind the metric; raises `NotMeasurable` for a gauge."""
        if self.stat is None:
            raise NotMeasurable(self.name)
        return self.stat

    def value(self, now_ms: i64) -> float:
        """
        Return the number at `now_ms`; reading may have an effect (`SampledStat.measure`).

        Raises:
            NotMeasurable: the metric is a gauge.

        """
        measurable = self.measurable
        with self._lock:
            return measurable.measure(self.current, now_ms)

    def peek(self, now_ms: i64) -> float:
        """Return the number at `now_ms` without an effect on later ones; raises `NotMeasurable` for a gauge."""
        measurable = self.measurable
        with self._lock:
            return measurable.peek(self.current, now_ms)

    def read(self, now_ms: i64) -> object:
        """Return the number, or the object of a gauge, at `now_ms` (Kafka: `metricValue`)."""
        gauge = self.gauge
        if gauge is None:
            return self.value(now_ms)
        with self._lock:
            return gauge.function(self.current, now_ms)

    def violation(self, now_ms: i64) -> QuotaViolation | None:
        """Measure at `now_ms` if there is a quota, and return how the value breaks it; None if it does not."""
        with self._lock:
            breach = self.breach(now_ms)
        return None if breach is None else breach.violation()

    def breach(self, now_ms: i64) -> "Breach | None":
        """Measure as `violation` does, for a caller with the metric lock; a breach is made faster than an error."""
        stat = self.stat
        quota = self.current.quota
        if quota is None or stat is None:
            return None
        value = stat.measure(self.current, now_ms)
        if stat.acceptable(quota, value):
            return None
        return Breach(self, value, quota.bound)

    def window_size(self, now_ms: i64) -> int:
        """
        Return the ms that a rate is measured over at `now_ms`; has the effect of a read (`Rate.window_size`).

        Raises:
            WrongStatistic: the metric is no rate.

        """
        rate = self.stat
        if not isinstance(rate, Rate):
            raise WrongStatistic(self.name, "a rate")
        with self._lock:
            return rate.window_size(self.current, now_ms)

    def __repr__(self) -> str:
        return f"KafkaMetric({self.name!r})"


class Breach:
    """A metric past its bound, as a check found it."""

    __slots__ = ("bound", "metric", "value")

    def __init__(self, metric: KafkaMetric, value: float, bound: float) -> None:
        self.metric: KafkaMetric = metric
        self.value: float = value
        self.bound: float = bound

    def violation(self) -> QuotaViolation:
        """Return the error to raise."""
        return QuotaViolation(self.metric.name, self.value, self.bound, self.metric)
