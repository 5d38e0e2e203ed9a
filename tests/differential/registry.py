"""
Kafka's registry and sensors against ours.

Whatever happens to sensors, the same violations are raised, the same metrics exist, and they read the same.

That covers hierarchies, duplicate names, expiry, recording levels, new configs, sensors used after their removal and
what a reporter hears. A reporter's events are compared sorted, because Kafka's order is partly that of hash maps.
"""

from dataclasses import dataclass

from tests.differential import statistics
from tests.differential.choice import HOSTILE, Choice
from tests.differential.drive import Subject
from tests.differential.operation import Operation
from tests.differential.registry_twin import NEVER, Chosen, Metric, RegistryTwin
from tests.differential.shapes import EPOCH_MS, Settings, Temper, amount, settings, step_ms, temper
from tests.differential.wire import Word, tokens

from quotascope.metrics import RecordingLevel

LEVELS = ("INFO", "INFO", "INFO", "DEBUG", "TRACE")
SENSORS = ("a", "a", "b", "b", "c", "c", "d", "d", "never made", HOSTILE[-1])
METRICS = ("m", "n", "o", "p", "q")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What stays the same: the registry, and the config that most metrics have."""

    level: str
    tags: tuple[tuple[str, str], ...]
    settings: Settings
    temper: Temper


def shape(choice: Choice) -> Shape:
    """Draw what stays the same."""
    return Shape(
        level=choice.of(LEVELS),
        tags=choice.of(((), (("broker", "1"),), (("z", "1"), ("tag", "x"), ("a", "")))),
        settings=settings(choice),
        temper=temper(choice),
    )


def opening(shape: Shape) -> str:
    """The line that creates Kafka's side."""
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
    """Draw what happens next."""
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
