"""Kafka's statistics against ours, one at a time."""

from dataclasses import dataclass

from tests.differential import statistics
from tests.differential.budget import Budget, marks
from tests.differential.choice import Choice
from tests.differential.comparison import compare
from tests.differential.drive import Subject, drive_seeded, drive_shrinkable
from tests.differential.kafka import Kafka
from tests.differential.operation import Operation, Twin
from tests.differential.shapes import (
    DAY_MS,
    EPOCH_MS,
    Settings,
    Temper,
    amount,
    settings,
    step_ms,
    temper,
)
from tests.differential.statistics import Kind, MeterKind
from tests.differential.wire import bits, tokens

from quotascope.metrics import Measurable, MetricName, Rate, Stat, TimeUnit

pytestmark = marks()
SHARE = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What stays the same: the statistic, its first config, the clock."""

    origin_ms: int
    kind: Kind | MeterKind
    settings: Settings
    temper: Temper


class StatisticTwin:
    """One of our statistics behind the operations of `java/StatSession.java`."""

    def __init__(self, shape: Shape) -> None:
        self._now_ms = shape.origin_ms
        self._config = statistics.config(shape.settings)
        self._stat, self._measurables = _made(shape.kind)

    def step(self, ms: int) -> None:
        """Move the clock."""
        self._now_ms += ms

    def record(self, value: float) -> None:
        """Record a value."""
        self._stat.record(self._config, value, self._now_ms)

    def config(self, settings: Settings) -> None:
        """Go on with another config."""
        self._config = statistics.config(settings)

    def measure(self) -> str:
        """Read what the statistic offers; a peek before must show the same and leave no trace in what follows."""
        peeked = [
            bits(each.peek(self._config, self._now_ms)) for each in self._measurables
        ]
        measured = [
            bits(each.measure(self._config, self._now_ms)) for each in self._measurables
        ]
        if peeked != measured:
            return f"peeked {peeked}, measured {measured}"
        return f"[{','.join(measured)}]"

    def window(self) -> str:
        """Ask a rate for its divisor."""
        assert isinstance(self._stat, Rate)
        return str(self._stat.window_size(self._config, self._now_ms))


def _made(kind: Kind | MeterKind) -> tuple[Stat, list[Measurable]]:
    if isinstance(kind, Kind):
        stat = kind.make()
        return stat, [stat]
    meter = kind.make(MetricName("rate", ""), MetricName("total", ""))
    return meter, [part.measurable for part in meter.stats()]


def shape(choice: Choice) -> Shape:
    """Draw what stays the same."""
    kinds: list[Kind | MeterKind] = [statistics.kind(choice)] * 7
    return Shape(
        origin_ms=choice.of((EPOCH_MS, EPOCH_MS, EPOCH_MS, 0, 1)),
        kind=choice.of([*kinds, statistics.meter_kind(choice)]),
        settings=settings(choice),
        temper=temper(choice),
    )


def opening(shape: Shape) -> str:
    """The line that creates Kafka's side."""
    metered = isinstance(shape.kind, MeterKind)
    arguments = tokens(shape.origin_ms, metered, shape.kind, shape.settings)
    return " ".join(("new stat", *arguments))


def operation(choice: Choice, shape: Shape) -> Operation:
    """Draw what happens next."""
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


def twin(shape: Shape) -> Twin:
    """Our side."""
    return StatisticTwin(shape)


STATISTICS = Subject(
    name="statistics", shape=shape, opening=opening, twin=twin, operation=operation
)


def test_short_sessions(kafka: Kafka, budget: Budget) -> None:
    """
    Whatever is recorded, read and reconfigured in whatever order, a statistic reads the same to the last bit.

    Left out: NaN as a recorded value, windows of no length, and clocks so far off that 64 bits overflow.
    """
    drive_shrinkable(kafka, budget, STATISTICS, budget.shrinkable(SHARE))


def test_long_sessions(kafka: Kafka, budget: Budget) -> None:
    """A statistic stays equal to the last bit over up to a thousand operations; left out is what short sessions leave out."""
    drive_seeded(kafka, budget, STATISTICS, budget.seeded(SHARE))


def test_windows_beyond_32_bits(kafka: Kafka, budget: Budget) -> None:
    """Counting more than 2^31 windows in the divisor of a rate wraps as in Java; chance hardly ever gets there."""
    long = Settings(samples=2, window_ms=90 * DAY_MS)
    rate = Kind(name="Rate", unit=TimeUnit.SECONDS, inner="WindowedSum", own_window=0)
    calm = Temper(steady=True, tame=True, coarse=False)
    shape = Shape(origin_ms=EPOCH_MS, kind=rate, settings=long, temper=calm)
    operations = (
        Operation("record", 0, (1.0,)),
        Operation("record", 30 * DAY_MS, (1.0,)),
        Operation("config", 0, (Settings(samples=2, window_ms=1),)),
        Operation("window", 0),
        Operation("measure", 0),
    )
    compared = compare(kafka, STATISTICS.replay(shape, operations))
    budget.compared[STATISTICS.name] += compared
