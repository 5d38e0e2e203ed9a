"""
Kafka's statistics against ours, one at a time.

Whatever is recorded, read and reconfigured in whatever order, a statistic reads the same to the last bit.

Left out: NaN as a recorded value, windows of no length, and clocks so far off that 64 bits overflow.
"""

from dataclasses import dataclass

from tests.differential import statistics
from tests.differential.choice import Choice
from tests.differential.drive import Subject
from tests.differential.operation import Operation
from tests.differential.shapes import EPOCH_MS, Settings, Temper, amount, settings, step_ms, temper
from tests.differential.statistics import Kind, MeterKind, StatTwin
from tests.differential.wire import tokens

from quotascope.metrics import Measurable, MetricName, Rate, Stat


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    origin_ms: int
    kind: Kind | MeterKind
    settings: Settings
    temper: Temper


class StatisticTwin(StatTwin):
    """One of our statistics behind the operations of `java/StatSession.java`."""

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape.origin_ms, shape.settings, *_made(shape.kind))

    def _op_window(self) -> str:
        assert isinstance(self._stat, Rate)
        return str(self._stat.window_size(self._config, self._now_ms))


def _made(kind: Kind | MeterKind) -> tuple[Stat, list[Measurable]]:
    if isinstance(kind, Kind):
        stat = kind.make()
        return stat, [stat]
    meter = kind.make(MetricName("rate", ""), MetricName("total", ""))
    return meter, [part.measurable for part in meter.stats()]


def shape(choice: Choice) -> Shape:
    kinds: list[Kind | MeterKind] = [statistics.kind(choice)] * 7
    return Shape(
        origin_ms=choice.of((EPOCH_MS, EPOCH_MS, EPOCH_MS, 0, 1)),
        kind=choice.of([*kinds, statistics.meter_kind(choice)]),
        settings=settings(choice),
        temper=temper(choice),
    )


def opening(shape: Shape) -> str:
    metered = isinstance(shape.kind, MeterKind)
    arguments = tokens(shape.origin_ms, metered, shape.kind, shape.settings)
    return " ".join(("new stat", *arguments))


def operation(choice: Choice, shape: Shape) -> Operation:
    step = step_ms(choice, shape.settings, shape.temper)
    happening = choice.integer(0, 99)
    if happening < 60:
        value = amount(choice, shape.settings, shape.temper)
        return Operation("record", step, (value,))
    if happening < 63:
        return Operation("config", step, (settings(choice),))
    if happening < 75 and _is_rate(shape.kind):
        return Operation("window", step)
    return Operation("measure", step)


def _is_rate(kind: Kind | MeterKind) -> bool:
    return isinstance(kind, Kind) and kind.name in ("Rate", "SimpleRate")


SUBJECT = Subject(
    name="statistics",
    share=0.2,
    shape=shape,
    opening=opening,
    twin=lambda shape, _: StatisticTwin(shape),
    operation=operation,
)
