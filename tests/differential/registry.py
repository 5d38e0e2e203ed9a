"""
Kafka's registry and sensors against ours.

Whatever happens to sensors, the same violations are raised, the same metrics exist, and they read the same.

That covers hierarchies, duplicate names, expiry, recording levels, new configs, sensors used after their removal and
what a reporter hears. A reporter's events are compared sorted, because Kafka's order is partly that of hash maps.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Concatenate, ParamSpec

from tests.differential import figures, statistics
from tests.differential.choice import HOSTILE, Choice
from tests.differential.comparison import Operation, Twin
from tests.differential.drive import Subject
from tests.differential.shapes import EPOCH_MS, Settings, Temper, amount, settings, step_ms, temper
from tests.differential.statistics import Kind, MeterKind
from tests.differential.wire import Argument, Word, bits, flag, quote, tokens

from quotascope.metrics.engine.config import MetricConfig, RecordingLevel
from quotascope.metrics.engine.errors import DuplicateMetric, InvalidHierarchy, QuotaViolation
from quotascope.metrics.engine.metric import KafkaMetric
from quotascope.metrics.engine.metric_name import MetricName
from quotascope.metrics.engine.registry import Registry
from quotascope.metrics.engine.reporter import MetricsReporter
from quotascope.metrics.engine.sensor import Sensor

P = ParamSpec("P")
NEVER = 2**63 - 1
LEVELS = ("INFO", "INFO", "INFO", "DEBUG", "TRACE")
SENSORS = ("a", "a", "b", "b", "c", "c", "d", "d", "never made", HOSTILE[-1])
METRICS = ("m", "n", "o", "p", "q")


@dataclass(frozen=True, slots=True)
class Metric:
    """A name and the value of its tag, empty for no tag."""

    name: str
    tag: str

    def parts(self) -> tuple[Argument, ...]:
        return self.name, self.tag


@dataclass(frozen=True, slots=True)
class Chosen:
    """A config, or none: a sensor then takes the registry's, a metric its sensor's."""

    settings: Settings | None

    def parts(self) -> tuple[Argument, ...]:
        return (False,) if self.settings is None else (True, self.settings)

    def config(self) -> MetricConfig | None:
        return None if self.settings is None else statistics.config(self.settings)


class Events(MetricsReporter):
    """The events that were reported since they were last asked for."""

    def __init__(self) -> None:
        self._heard: list[str] = []

    def drain(self) -> str:
        text = f"[{','.join(sorted(self._heard))}]"
        self._heard.clear()
        return text

    def init(self, metrics: Sequence[KafkaMetric]) -> None:
        self._heard.extend(f"init/{figures.name(metric.name)}" for metric in metrics)

    def metric_change(self, metric: KafkaMetric) -> None:
        self._heard.append(f"change/{figures.name(metric.name)}")

    def metric_removal(self, metric: KafkaMetric) -> None:
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


class RegistryTwin(Twin):
    """A registry, every sensor ever made of it, and a clock."""

    def __init__(self, origin_ms: int, level: RecordingLevel, tags: Sequence[tuple[str, str]]) -> None:
        super().__init__(origin_ms)
        self._events = Events()
        self._registry = Registry(MetricConfig(tags=tags), reporters=[self._events], recording_level=level)
        self.handles: dict[str, Sensor] = {}

    def _op_sensor(self, name: str, level: str, inactive_seconds: int, chosen: Chosen, parents: tuple[str, ...]) -> str:
        """Get or create a sensor; a parent that was never created is left out."""
        is_known = self._registry.get_sensor(name) is not None
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
        return "known" if is_known else "created"

    @_on_sensor
    def _op_add(self, sensor: Sensor, metric: Metric, kind: Kind, chosen: Chosen) -> str:
        name = self._metric(metric)
        return flag(sensor.add(name, kind.make(), chosen.config(), self._now_ms))

    @_on_sensor
    def _op_add_meter(self, sensor: Sensor, rate: Metric, total: Metric, kind: MeterKind, chosen: Chosen) -> str:
        meter = kind.make(self._metric(rate), self._metric(total))
        return flag(sensor.add_compound(meter, chosen.config(), self._now_ms))

    @_on_sensor
    def _op_record(self, sensor: Sensor, value: float, check: bool) -> None:  # noqa: FBT001 - as Kafka's
        sensor.record(value, self._now_ms, check)

    @_on_sensor
    def _op_record_strictly(self, sensor: Sensor, value: float) -> None:
        sensor.record_if_within_quota(value, self._now_ms)

    @_on_sensor
    def _op_check(self, sensor: Sensor) -> None:
        sensor.check_quotas(self._now_ms)

    @_on_sensor
    def _op_remove(self, sensor: Sensor) -> None:
        """Remove the sensor that now has this one's name."""
        self._registry.remove_sensor(sensor.name)

    @_on_sensor
    def _op_state(self, sensor: Sensor) -> str:
        expired = sensor.has_expired(self._now_ms)
        return flag(expired) + flag(sensor.has_metrics()) + flag(sensor.should_record())

    def _op_remove_metric(self, metric: Metric) -> str:
        """Remove a metric behind its sensor's back."""
        return flag(self._registry.remove_metric(self._metric(metric)) is not None)

    def _op_value(self, metric: Metric) -> str:
        """Read a metric; a peek before must show the same and leave no trace in what follows."""
        kafka_metric = self._registry.metric(self._metric(metric))
        if kafka_metric is None:
            return "absent"
        peeked, value = bits(kafka_metric.peek(self._now_ms)), bits(kafka_metric.value(self._now_ms))
        return value if peeked == value else f"peeked {peeked}, value {value}"

    def _op_reconfigure(self, metric: Metric, settings: Settings) -> str:
        kafka_metric = self._registry.metric(self._metric(metric))
        if kafka_metric is not None:
            kafka_metric.config = statistics.config(settings)
        return flag(kafka_metric is not None)

    def _op_expire(self) -> None:
        self._registry.expire_sensors(self._now_ms)

    def _op_dump(self) -> str:
        sensors = ",".join(quote(name) for name in sorted(self._registry.sensors()))
        metrics = figures.everything(self._registry.metrics().values(), self._now_ms)
        return f"[{sensors}] {metrics} {self._events.drain()}"

    def _metric(self, metric: Metric) -> MetricName:
        tags = {"tag": metric.tag} if metric.tag else {}
        return self._registry.metric_name(metric.name, "group", tags)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    level: str
    tags: tuple[tuple[str, str], ...]
    settings: Settings
    temper: Temper


def shape(choice: Choice) -> Shape:
    return Shape(
        level=choice.of(LEVELS),
        tags=choice.of(((), (("broker", "1"),), (("z", "1"), ("tag", "x"), ("a", "")))),
        settings=settings(choice),
        temper=temper(choice),
    )


def opening(shape: Shape) -> str:
    return " ".join(("new registry", *tokens(EPOCH_MS, Word(shape.level), shape.tags)))


def beginning(choice: Choice, shape: Shape) -> tuple[Operation, ...]:
    """Draw a few sensors, two of them children, with metrics."""
    families = (
        ("a", ()),
        ("b", ()),
        ("c", ("a",)),
        ("d", choice.of((("a", "b"), ("c",), ("c", "b")))),
    )
    return tuple(operation for sensor, parents in families for operation in _family(choice, shape, sensor, parents))


def _family(choice: Choice, shape: Shape, sensor: str, parents: tuple[str, ...]) -> tuple[Operation, ...]:
    level, chosen = Word(choice.of(LEVELS)), _chosen(choice, shape)
    tags = ("", choice.of(("x", "y")))
    metrics = [Metric(choice.of(METRICS), tag) for tag in tags]
    return (
        Operation("sensor", 0, (sensor, level, NEVER, chosen, parents)),
        *(_add(choice, shape, 0, sensor, metric) for metric in metrics),
    )


def operation(choice: Choice, shape: Shape) -> Operation:
    step = step_ms(choice, shape.settings, shape.temper)
    happening = choice.integer(0, 99)
    if happening < 60:
        return _recording(choice, shape, step)
    if happening < 82:
        return _reading(choice, shape, step)
    if happening < 97:
        return _building(choice, shape, step)
    expiring = choice.of((step, 0, 999, 1000, 1001, 60_000, 60_001))
    return Operation("expire", expiring)


def _recording(choice: Choice, shape: Shape, step: int) -> Operation:
    sensor = choice.of(SENSORS)
    value = amount(choice, shape.settings, shape.temper)
    match choice.of((*["record"] * 4, "record_strictly", "check")):
        case "record":
            return Operation("record", step, (sensor, value, choice.integer(0, 2) < 2))
        case "record_strictly":
            return Operation("record_strictly", step, (sensor, value))
        case verb:
            return Operation(verb, step, (sensor,))


def _reading(choice: Choice, shape: Shape, step: int) -> Operation:
    match choice.of(("value", "value", "dump", "dump", "state", "reconfigure")):
        case "state":
            return Operation("state", step, (choice.of(SENSORS),))
        case "dump":
            return Operation("dump", step)
        case "value":
            return Operation("value", step, (_metric(choice),))
        case verb:
            changed = choice.of((shape.settings, settings(choice)))
            return Operation(verb, step, (_metric(choice), changed))


def _building(choice: Choice, shape: Shape, step: int) -> Operation:
    sensor, chosen = choice.of(SENSORS), _chosen(choice, shape)
    match choice.of((*["sensor"] * 3, *["add"] * 4, "meter", "remove", "forget")):
        case "sensor":
            parents = tuple(choice.of(SENSORS) for _ in range(choice.of((0, 0, 0, 1, 2))))
            level, inactive = (
                Word(choice.of(LEVELS)),
                choice.of((NEVER, NEVER, 1, 60, 0)),
            )
            return Operation("sensor", step, (sensor, level, inactive, chosen, parents))
        case "add":
            return _add(choice, shape, step, sensor, _metric(choice))
        case "meter":
            kind = statistics.meter_kind(choice)
            metrics = _metric(choice), _metric(choice)
            return Operation("add_meter", step, (sensor, *metrics, kind, chosen))
        case "remove":
            return Operation("remove", step, (sensor,))
        case _:
            return Operation("remove_metric", step, (_metric(choice),))


def _add(choice: Choice, shape: Shape, step: int, sensor: str, metric: Metric) -> Operation:
    kind, chosen = statistics.kind(choice), _chosen(choice, shape)
    return Operation("add", step, (sensor, metric, kind, chosen))


def _metric(choice: Choice) -> Metric:
    return Metric(choice.of(METRICS), choice.of(("", "", "x", "y")))


def _chosen(choice: Choice, shape: Shape) -> Chosen:
    return Chosen(choice.of((*[shape.settings] * 7, settings(choice), None, None)))


SUBJECT = Subject(
    name="registry",
    share=0.15,
    shape=shape,
    opening=opening,
    twin=lambda shape, _: RegistryTwin(EPOCH_MS, RecordingLevel[shape.level], shape.tags),
    operation=operation,
    beginning=beginning,
)
