"""All sensors and metrics of a process."""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from ..kafka.errors import InvalidConfig
from ..kafka.jmx import Tags
from .clock import Clock, wall_clock_ms
from .config import MetricConfig, RecordingLevel
from .errors import DuplicateMetric
from .expiry import ExpiryThread
from .locks import Lock
from .metric import KafkaMetric
from .metric_name import MetricName, MetricNameTemplate
from .reporter import NAMESPACE, MetricsReporter
from .sensor import Sensor
from .stat import Gauge, Measurable, Measured

_log = logging.getLogger(__name__)


class Registry:
    """
    Sensors by name and metrics by `MetricName` (Kafka: `Metrics`).

    It counts its metrics in one of its own: `count` of the group `kafka-metrics-count`.

    Args:
        config: for sensors and metrics without one of their own.
        reporters: called for all metrics from the start.
        recording_level: detail to record, instead of the config's.
        expiration: remove inactive sensors every 30 s in a thread, as brokers and controllers do.
        clock: the time for that thread (epoch ms); nothing else reads it.
        tags: tags of every metric name, added to the config's.
        namespace: prefix of MBean names, passed to the reporters (`kafka.server` for brokers and controllers).

    """

    def __init__(  # noqa: PLR0913 - as many settings as Kafka's
        self,
        config: MetricConfig | None = None,
        *,
        reporters: Sequence[MetricsReporter] = (),
        recording_level: RecordingLevel | None = None,
        expiration: bool = False,
        clock: Clock = wall_clock_ms,
        tags: Tags = (),
        namespace: str = "",
    ) -> None:
        base = MetricConfig() if config is None else config
        level = base.recording_level if recording_level is None else recording_level
        self.config: MetricConfig = base.with_defaults(tags, level)
        # Taken again by a reporter that calls back, as a Java monitor can be.
        self._lock = threading.RLock()
        self._metrics: dict[MetricName, KafkaMetric] = {}
        # One for all sensors: each look at a method makes an object.
        self._registrar: Callable[[KafkaMetric], KafkaMetric | None] = self.register
        self._sensors: dict[str, Sensor] = {}
        self._children: dict[Sensor, list[Sensor]] = {}
        self.removals: int = 0
        """Number of removed sensors; while it is constant, all sensors that were found before still exist."""
        self._reporters: list[MetricsReporter] = list(reporters)
        for reporter in self._reporters:
            reporter.context_change({NAMESPACE: namespace})
            reporter.init(())
        self._add_count()
        self._expiry = ExpiryThread(self.expire_sensors, clock) if expiration else None

    def metric_name(self, name: str, group: str, tags: Tags = (), description: str = "") -> MetricName:
        """Return a name with the registry's tags first, then these, which may override."""
        return MetricName(name, group, {**dict(self.config.tags), **dict(tags)}, description)

    def metric_instance(self, template: MetricNameTemplate, tags: Tags = ()) -> MetricName:
        """
        Return the template's name with tag values.

        Raises:
            InvalidConfig: the tag keys, with the registry's, are not exactly the template's.

        """
        keys = {key for key, _ in self.config.tags} | set(dict(tags))
        if keys != set(template.tag_names):
            raise InvalidConfig(f"the tags of {template.name!r} are {sorted(template.tag_names)}, not {sorted(keys)}")
        return self.metric_name(template.name, template.group, tags, template.description)

    def sensor(
        self,
        name: str,
        now_ms: int,
        config: MetricConfig | None = None,
        inactive_seconds: int | None = None,
        recording_level: RecordingLevel = RecordingLevel.INFO,
        parents: Sequence[Sensor] = (),
    ) -> Sensor:
        """
        Return the sensor of this name, made now if there is none; for an existing one all else is ignored.

        Raises `InvalidHierarchy` when a sensor is met twice among the parents and theirs.

        Args:
            name: unique in the registry.
            now_ms: epoch ms.
            config: for its metrics without one of their own; the registry's if None.
            inactive_seconds: time without a record after which it may be removed; None for never.
            recording_level: detail that it stands for.
            parents: sensors that receive its values too.

        """
        with self._lock:
            existing = self._sensors.get(name)
            if existing is not None:
                return existing
            sensor = Sensor(
                self._registrar,
                name,
                self.config if config is None else config,
                now_ms,
                inactive_seconds=inactive_seconds,
                recording_level=recording_level,
                parents=parents,
            )
            self._sensors[name] = sensor
            for parent in parents:
                self._children.setdefault(parent, []).append(sensor)
            return sensor

    def get_sensor(self, name: str) -> Sensor | None:
        """Return the sensor of this name."""
        return self._sensors.get(name)

    def sensors(self) -> Mapping[str, Sensor]:
        """Return all sensors by name, as they are now."""
        return self._sensors.copy()

    def remove_sensor(self, name: str) -> None:
        """Remove a sensor, its metrics and its children; an unknown name is fine."""
        self._remove(name, None)

    def expire_sensors(self, now_ms: int) -> tuple[str, ...]:
        """
        Remove the sensors that have expired at `now_ms` (epoch ms), and return their names.

        The children of a removed sensor go with it, expired or not.
        """
        sensors = self.sensors().items()
        expired = [name for name, sensor in sensors if sensor.has_expired(now_ms)]
        return tuple(name for name in expired if self._remove(name, now_ms))

    def add_metric(
        self, name: MetricName, provider: Measurable | Gauge, config: MetricConfig | None = None
    ) -> KafkaMetric:
        """
        Register a metric that no sensor feeds.

        Raises:
            DuplicateMetric: the name is taken.

        """
        metric = self._own(name, provider, config)
        if self.register(metric) is not None:
            raise DuplicateMetric(name)
        return metric

    def add_metric_if_absent(
        self, name: MetricName, provider: Measurable | Gauge, config: MetricConfig | None = None
    ) -> KafkaMetric:
        """Register a metric that no sensor feeds, or return the one that has the name already."""
        metric = self._own(name, provider, config)
        existing = self.register(metric)
        return metric if existing is None else existing

    def remove_metric(self, name: MetricName) -> KafkaMetric | None:
        """Remove and return a metric; None if there is none of this name. Its sensor still records to it."""
        with self._lock:
            metric = self._metrics.pop(name, None)
            if metric is not None:
                self._tell(_removal, metric)
            return metric

    def metric(self, name: MetricName) -> KafkaMetric | None:
        """Return the metric of this name."""
        return self._metrics.get(name)

    def metrics(self) -> Mapping[MetricName, KafkaMetric]:
        """
        Return all metrics, as they are now.

        Without the registry's lock, which a registration holds while it waits for a reporter: a reporter
        that holds its own lock may call this.
        """
        return self._metrics.copy()

    def register(self, metric: KafkaMetric) -> KafkaMetric | None:
        """Add a metric and call the reporters, or return the one that has its name already."""
        with self._lock:
            existing = self._metrics.get(metric.name)
            if existing is None:
                self._metrics[metric.name] = metric
                self._tell(_change, metric)
            return existing

    def add_reporter(self, reporter: MetricsReporter) -> None:
        """Start a reporter with the metrics that exist, and call it for all later ones."""
        with self._lock:
            reporter.init(tuple(self._metrics.values()))
            self._reporters.append(reporter)

    def remove_reporter(self, reporter: MetricsReporter) -> None:
        """Close a reporter and forget it; one that is not registered is left alone."""
        with self._lock:
            if reporter in self._reporters:
                self._reporters.remove(reporter)
                reporter.close()

    def close(self) -> None:
        """Stop the expiry thread and close the reporters; metrics stay readable."""
        if self._expiry is not None:
            self._expiry.close()
        for reporter in tuple(self._reporters):
            _guarded(reporter, reporter.close)

    def _remove(self, name: str, expired_at_ms: int | None) -> bool:
        sensor = self._sensors.get(name)
        if sensor is None:
            return False
        with sensor.lock, self._lock:
            if self._sensors.get(name) is not sensor:
                return False
            if expired_at_ms is not None and not sensor.has_expired(expired_at_ms):
                return False
            children = self._detach(sensor)
        for child in children:
            self._remove(child.name, None)
        return True

    def _own(self, name: MetricName, provider: Measurable | Gauge, config: MetricConfig | None) -> KafkaMetric:
        return KafkaMetric(Lock(), name, provider, self.config if config is None else config)

    def _add_count(self) -> None:
        name = self.metric_name("count", "kafka-metrics-count", (), "total number of registered metrics")
        self.add_metric(name, Measured(lambda _config, _now_ms: float(len(self._metrics))))

    def _detach(self, sensor: Sensor) -> list[Sensor]:
        """Take out a sensor and its metrics; return its children. Both locks are held."""
        del self._sensors[sensor.name]
        self.removals += 1
        for metric in sensor.metrics():
            self.remove_metric(metric.name)
        for parent in sensor.parents:
            siblings = self._children.get(parent, [])
            if sensor in siblings:
                siblings.remove(sensor)
        return self._children.pop(sensor, [])

    def _tell(self, event: Callable[[MetricsReporter, KafkaMetric], None], metric: KafkaMetric) -> None:
        for reporter in tuple(self._reporters):
            _guarded(reporter, partial(event, reporter, metric))


def _change(reporter: MetricsReporter, metric: KafkaMetric) -> None:
    reporter.metric_change(metric)


def _removal(reporter: MetricsReporter, metric: KafkaMetric) -> None:
    reporter.metric_removal(metric)


def _guarded(reporter: MetricsReporter, call: Callable[[], None]) -> None:
    """Call a reporter, which is foreign code: its errors must not prevent a record."""
    try:
        call()
    except Exception:  # noqa: BLE001 - logged in full
        _log.exception("a metrics reporter failed: %s", type(reporter).__name__)
