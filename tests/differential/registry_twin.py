"""Our registry behind the operations of `java/RegistrySession.java`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Concatenate, ParamSpec

from tests.differential import figures, statistics
from tests.differential.shapes import Settings
from tests.differential.statistics import Kind, MeterKind
from tests.differential.wire import Argument, bits, flag, quote

from quotascope.metrics import (
    DuplicateMetric,
    InvalidHierarchy,
    KafkaMetric,
    MetricConfig,
    MetricName,
    MetricsReporter,
    QuotaViolation,
    RecordingLevel,
    Registry,
    Sensor,
)

P = ParamSpec("P")
NEVER = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Metric:
    """A name and the value of its tag, empty for no tag."""

    name: str
    tag: str

    def parts(self) -> tuple[Argument, ...]:
        """The name as the protocol has it."""
        return self.name, self.tag


@dataclass(frozen=True, slots=True)
class Chosen:
    """A config, or none: a sensor then takes the registry's, a metric its sensor's."""

    settings: Settings | None

    def parts(self) -> tuple[Argument, ...]:
        """The config behind a 1, or a 0."""
        return (False,) if self.settings is None else (True, self.settings)

    def config(self) -> MetricConfig | None:
        """Our config."""
        return None if self.settings is None else statistics.config(self.settings)


class Events(MetricsReporter):
    """Remembers what was reported to it since it was last asked."""

    def __init__(self) -> None:
        self._heard: list[str] = []

    def drain(self) -> str:
        """What was heard, sorted."""
        text = f"[{','.join(sorted(self._heard))}]"
        self._heard.clear()
        return text

    def init(self, metrics: Sequence[KafkaMetric]) -> None:
        """Hear of the metrics that exist."""
        self._heard.extend(f"init/{figures.name(metric.name)}" for metric in metrics)

    def metric_change(self, metric: KafkaMetric) -> None:
        """Hear of a new metric."""
        self._heard.append(f"change/{figures.name(metric.name)}")

    def metric_removal(self, metric: KafkaMetric) -> None:
        """Hear of a removed metric."""
        self._heard.append(f"removal/{figures.name(metric.name)}")


def _on_sensor(
    operation: Callable[Concatenate["RegistryTwin", Sensor, P], str | None],
) -> Callable[Concatenate["RegistryTwin", str, P], str | None]:
    """Look the sensor up; answer violations and refusals in Kafka's words."""

    def named(twin: "RegistryTwin", name: str, /, *args: P.args, **kwargs: P.kwargs) -> str | None:
        sensor = twin.handles.get(name)
        if sensor is None:
            return "never created"
        try:
            return operation(twin, sensor, *args, **kwargs)
        except QuotaViolation as error:
            return figures.violation(error)
        except DuplicateMetric:
            return "refused"

    return named


class RegistryTwin:
    """A registry, every sensor ever made of it, and a clock."""

    def __init__(self, origin_ms: int, level: RecordingLevel, tags: Sequence[tuple[str, str]]) -> None:
        self._now_ms = origin_ms
        self._events = Events()
        self._registry = Registry(MetricConfig(tags=tags), reporters=[self._events], recording_level=level)
        self.handles: dict[str, Sensor] = {}

    def step(self, ms: int) -> None:
        """Move the clock."""
        self._now_ms += ms

    def sensor(self, name: str, level: str, inactive_seconds: int, chosen: Chosen, parents: tuple[str, ...]) -> str:
        """Get or create a sensor; a parent that was never created is left out."""
        known = self._registry.get_sensor(name) is not None
        try:
            self.handles[name] = self._registry.sensor(
                name,
                self._now_ms,
                chosen.config(),
                None if inactive_seconds == NEVER else inactive_seconds,
                RecordingLevel[level],
                [self.handles[parent] for parent in parents if parent in self.handles],
            )
        except InvalidHierarchy:
            return "refused"
        return "known" if known else "created"

    @_on_sensor
    def add(self, sensor: Sensor, metric: Metric, kind: Kind, chosen: Chosen) -> str:
        """Add a statistic."""
        name = self._metric(metric)
        return flag(sensor.add(name, kind.make(), chosen.config(), self._now_ms))

    @_on_sensor
    def add_meter(self, sensor: Sensor, rate: Metric, total: Metric, kind: MeterKind, chosen: Chosen) -> str:
        """Add a meter."""
        meter = kind.make(self._metric(rate), self._metric(total))
        return flag(sensor.add_compound(meter, chosen.config(), self._now_ms))

    @_on_sensor
    def record(self, sensor: Sensor, value: float, check: bool) -> None:  # noqa: FBT001 - as Kafka's
        """Record, then check or not."""
        sensor.record(value, self._now_ms, check)

    @_on_sensor
    def record_strictly(self, sensor: Sensor, value: float) -> None:
        """Check, then record."""
        sensor.record_if_within_quota(value, self._now_ms)

    @_on_sensor
    def check(self, sensor: Sensor) -> None:
        """Check without recording."""
        sensor.check_quotas(self._now_ms)

    @_on_sensor
    def remove(self, sensor: Sensor) -> None:
        """Remove the sensor that has this one's name now."""
        self._registry.remove_sensor(sensor.name)

    @_on_sensor
    def state(self, sensor: Sensor) -> str:
        """What the sensor says about itself."""
        expired = sensor.has_expired(self._now_ms)
        return flag(expired) + flag(sensor.has_metrics()) + flag(sensor.should_record())

    def remove_metric(self, metric: Metric) -> str:
        """Remove a metric behind its sensor's back."""
        return flag(self._registry.remove_metric(self._metric(metric)) is not None)

    def value(self, metric: Metric) -> str:
        """Read a metric; a peek before must show the same and leave no trace in what follows."""
        found = self._registry.metric(self._metric(metric))
        if found is None:
            return "absent"
        peeked, value = bits(found.peek(self._now_ms)), bits(found.value(self._now_ms))
        return value if peeked == value else f"peeked {peeked}, value {value}"

    def reconfigure(self, metric: Metric, settings: Settings) -> str:
        """Give a metric another config."""
        found = self._registry.metric(self._metric(metric))
        if found is not None:
            found.config = statistics.config(settings)
        return flag(found is not None)

    def expire(self) -> None:
        """Remove what has expired."""
        self._registry.expire_sensors(self._now_ms)

    def dump(self) -> str:
        """Write all sensors, all metrics, and what the reporter heard."""
        sensors = ",".join(quote(name) for name in sorted(self._registry.sensors()))
        metrics = figures.everything(self._registry.metrics().values(), self._now_ms)
        return f"[{sensors}] {metrics} {self._events.drain()}"

    def _metric(self, metric: Metric) -> MetricName:
        tags = {"tag": metric.tag} if metric.tag else {}
        return self._registry.metric_name(metric.name, "group", tags)
