"""Sensors, which record values and check bounds."""

from collections.abc import Callable, Sequence

from ..kafka.numbers import LONG_MAX, LONG_MIN
from .config import MetricConfig, RecordingLevel
from .errors import DuplicateMetric, InvalidHierarchy
from .locks import Lock
from .metric import Breach, ConfigHolder, KafkaMetric
from .metric_name import MetricName
from .native import i64
from .stat import CompoundStat, Measurable, Stat


class _Recorded:
    """A statistic and where its config of the moment is."""

    __slots__ = ("holder", "stat")

    def __init__(self, stat: Stat, holder: ConfigHolder) -> None:
        self.stat: Stat = stat
        self.holder: ConfigHolder = holder


class Sensor:
    """
    A set of metrics over the same recorded values, made by `Registry.sensor` (Kafka: `Sensor`).

    A value is recorded **before** it is checked, in all metrics: a violation counts too, and it keeps the value from
    the parents. One lock makes record and check one step, another, shared with the metrics, guards their state, so
    that reading never waits for a metric to be added.

    Args:
        register: takes in a metric, or returns the one that has its name already.
        name: unique in the registry.
        config: for metrics without one of their own; its recording level decides whether this sensor records.
        now_ms: creation counts as a record for `has_expired` (epoch ms).
        inactive_seconds: time without a record after which the sensor may be removed; None for never.
        recording_level: detail that this sensor stands for.
        parents: sensors that receive every value too.

    Raises:
        InvalidHierarchy: a sensor is met twice among the parents and theirs, even in a diamond without a cycle.

    """

    __slots__ = (
        "_config",
        "_expiration_ms",
        "_in_order",
        "_last_record_ms",
        "_metric_lock",
        "_recorded",
        "_register",
        "_should_record",
        "lock",
        "name",
        "parents",
    )

    def __init__(  # noqa: PLR0913 - as many settings as Kafka's
        self,
        register: Callable[[KafkaMetric], KafkaMetric | None],
        name: str,
        config: MetricConfig,
        now_ms: i64,
        *,
        inactive_seconds: int | None = None,
        recording_level: RecordingLevel = RecordingLevel.INFO,
        parents: Sequence["Sensor"] = (),
    ) -> None:
        self.name: str = name
        self.parents: tuple[Sensor, ...] = tuple(parents)
        self._register = register
        self._config: MetricConfig = config
        self._last_record_ms: i64 = now_ms
        self._expiration_ms: i64 = _expiration_ms(inactive_seconds)
        self._should_record: bool = recording_level.should_record(config.recording_level)
        self.lock = Lock()
        self._metric_lock = Lock()
        self._recorded: tuple[_Recorded, ...] = ()
        # Replaced, never changed: a check may be going on.
        self._in_order: tuple[KafkaMetric, ...] = ()
        _check_forest(self, set())

    def should_record(self) -> bool:
        """Return whether values are recorded at the configured level of detail."""
        return self._should_record

    def record(self, value: float, now_ms: i64, check_quotas: bool = True) -> None:  # noqa: FBT001, FBT002 - as Kafka's
        """
        Record a value at `now_ms` (epoch ms) in all metrics, then check their quotas, then record to the parents.

        Raises:
            QuotaViolation: a metric is past its bound; the value is recorded here, but not in the parents.

        """
        breach = self.try_record(value, now_ms, check_quotas)
        if breach is not None:
            raise breach.violation()

    def try_record(
        self,
        value: float,
        now_ms: i64,
        check_quotas: bool = True,  # noqa: FBT001, FBT002 - as `record`
    ) -> Breach | None:
        """Do as `record` does, but return what it would raise: an error costs more than all the rest."""
        if not self._should_record:
            return None
        self._last_record_ms = now_ms
        with self.lock, self._metric_lock:
            self._record(value, now_ms)
            breach = self._breach(now_ms) if check_quotas else None
        if breach is not None:
            return breach
        for parent in self.parents:
            breach = parent.try_record(value, now_ms, check_quotas)
            if breach is not None:
                return breach
        return None

    def try_record_run(
        self,
        values: list[float],
        times_ms: list[int],
        start: i64,
        stop: i64,
        breaches: list[tuple[int, Breach]],
        *,
        check_quotas: bool,
    ) -> None:
        """
        Do as `try_record` does for a part of two columns, under one lock.

        Args:
            values: all values.
            times_ms: their epoch ms.
            start: number of the first recorded value.
            stop: number after the last one.
            breaches: a list to which breaches are added, with the number of their value.
            check_quotas: as in `record`.

        Parents are not recorded: call it for a sensor without parents only.

        """
        if not self._should_record or start == stop:
            return
        self._last_record_ms = times_ms[stop - 1]
        with self.lock, self._metric_lock:
            for number in range(start, stop):
                now_ms: i64 = times_ms[number]
                self._record(values[number], now_ms)
                breach = self._breach(now_ms) if check_quotas else None
                if breach is not None:
                    breaches.append((number, breach))

    def record_if_within_quota(self, value: float, now_ms: i64) -> None:
        """
        Check first, then record without a check, as one step: a refused value leaves no trace.

        What Kafka's strict controller mutation quota does around a sensor. The value that goes past the bound is
        accepted, the next one is not.

        Raises:
            QuotaViolation: a metric was past its bound before.

        """
        with self.lock, self._metric_lock:
            breach = self._breach(now_ms)
            if breach is not None:
                raise breach.violation()
            if not self._should_record:
                return
            self._last_record_ms = now_ms
            self._record(value, now_ms)
        for parent in self.parents:
            parent.record(value, now_ms, check_quotas=False)

    def check_quotas(self, now_ms: i64) -> None:
        """
        Measure at `now_ms` every metric that has a quota, in order of registration.

        Raises:
            QuotaViolation: for the first one past its bound.

        """
        with self._metric_lock:
            breach = self._breach(now_ms)
        if breach is not None:
            raise breach.violation()

    def add(self, name: MetricName, stat: Stat, config: MetricConfig | None = None, now_ms: int | None = None) -> bool:
        """
        Register a metric over this sensor's values.

        Args:
            name: unique in the registry.
            stat: records and measures the values.
            config: of this metric; the sensor's if None.
            now_ms: epoch ms, to refuse metrics of an expired sensor; None to add regardless.

        Returns:
            False if the sensor has expired; True also if it has a metric of this name already, which stays as it is.

        Raises:
            DuplicateMetric: another sensor has a metric of this name.

        """
        with self.lock:
            if now_ms is not None and self.has_expired(now_ms):
                return False
            if self._has(name):
                return True
            metric = self._add(name, stat, self._config if config is None else config)
            self._recorded = (*self._recorded, _Recorded(stat, metric))
            return True

    def add_compound(self, stat: CompoundStat, config: MetricConfig | None = None, now_ms: int | None = None) -> bool:
        """
        Register all metrics of a compound statistic; those with names that this sensor has already are left out.

        The statistic always records with this config. Its metrics are read with a config of their own, which is the
        same at first.

        Args:
            stat: records the values.
            config: of the statistic and its metrics; the sensor's if None.
            now_ms: epoch ms, to refuse metrics of an expired sensor; None to add regardless.

        Returns:
            False if the sensor has expired.

        Raises:
            DuplicateMetric: another sensor has a metric of such a name.

        """
        with self.lock:
            if now_ms is not None and self.has_expired(now_ms):
                return False
            chosen = self._config if config is None else config
            self._recorded = (*self._recorded, _Recorded(stat, ConfigHolder(chosen)))
            for part in stat.stats():
                if not self._has(part.name):
                    self._add(part.name, part.measurable, chosen)
            return True

    def has_metrics(self) -> bool:
        """Return whether anything is registered."""
        return bool(self._in_order)

    def metrics(self) -> tuple[KafkaMetric, ...]:
        """Return the metrics in order of registration."""
        return self._in_order

    def has_expired(self, now_ms: i64) -> bool:
        """Return whether nothing was recorded for longer than the limit; reading does not count."""
        return now_ms - self._last_record_ms > self._expiration_ms

    def __repr__(self) -> str:
        return f"Sensor({self.name!r})"

    def _record(self, value: float, now_ms: i64) -> None:
        for recorded in self._recorded:
            recorded.stat.record(recorded.holder.current, value, now_ms)

    def _breach(self, now_ms: i64) -> Breach | None:
        for metric in self._in_order:
            breach = metric.breach(now_ms)
            if breach is not None:
                return breach
        return None

    def _has(self, name: MetricName) -> bool:
        return any(metric.name == name for metric in self._in_order)

    def _add(self, name: MetricName, measurable: Measurable, config: MetricConfig) -> KafkaMetric:
        metric = KafkaMetric(self._metric_lock, name, measurable, config)
        if self._register(metric) is not None:
            raise DuplicateMetric(name)
        self._in_order = (*self._in_order, metric)
        return metric


def _check_forest(sensor: Sensor, met: set[Sensor]) -> None:
    if sensor in met:
        raise InvalidHierarchy(sensor.name)
    met.add(sensor)
    for parent in sensor.parents:
        _check_forest(parent, met)


def _expiration_ms(inactive_seconds: int | None) -> int:
    if inactive_seconds is None:
        return LONG_MAX
    return max(LONG_MIN, min(LONG_MAX, inactive_seconds * 1000))
