"""
Kafka's statistics against ours, one at a time; and their names in the protocol, as `java/Stats.java` has them.

Whatever is recorded, read and reconfigured in whatever order, a statistic reads the same to the last bit.

Left out: NaN as a recorded value, windows of no length, and clocks so far off that 64 bits overflow.
"""

from dataclasses import dataclass

from tests.conformance.settings import PLAIN, sampled
from tests.differential.choice import Choice
from tests.differential.comparison import Operation, Twin
from tests.differential.drive import Subject
from tests.differential.shapes import EPOCH_MS, Settings, Temper, amount, settings, step_ms, temper
from tests.differential.wire import Argument, Word, bits, tokens

from quotascope.metrics.engine.config import MetricConfig
from quotascope.metrics.engine.extras.meter import Meter
from quotascope.metrics.engine.metric_name import MetricName
from quotascope.metrics.engine.quota import Quota
from quotascope.metrics.engine.rate import Rate, TimeUnit
from quotascope.metrics.engine.stat import Measurable, Stat
from quotascope.metrics.engine.token_bucket import TokenBucket
from quotascope.metrics.kafka.release import NEWEST_RELEASE, KafkaRelease

SAMPLED = ("WindowedSum", "WindowedCount", "Avg", "Max", "Min")
METERED = ("WindowedSum", "WindowedCount")
KINDS = (
    *("Rate", "Rate", "Rate", "TokenBucket", "TokenBucket", "SimpleRate"),
    *SAMPLED,
    *("Avg", "CumulativeSum", "CumulativeCount", "Value"),
)
UNITS = (
    *(TimeUnit.SECONDS, TimeUnit.SECONDS, TimeUnit.SECONDS, TimeUnit.MILLISECONDS),
    *(TimeUnit.MINUTES, TimeUnit.HOURS, TimeUnit.DAYS),
    *(TimeUnit.MICROSECONDS, TimeUnit.NANOSECONDS),
)
_MS = {
    TimeUnit.SECONDS: 1000,
    TimeUnit.MILLISECONDS: 1,
    TimeUnit.MINUTES: 60_000,
    TimeUnit.HOURS: 3_600_000,
    TimeUnit.DAYS: 86_400_000,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A statistic; each class takes what it needs."""

    name: str
    unit: TimeUnit
    inner: str
    """Statistic that a rate divides."""
    own_window: int
    """A rate's own window in its unit, 0 for the config's."""

    def parts(self) -> tuple[Argument, ...]:
        return Word(self.name), Word(self.unit.name), Word(self.inner), self.own_window

    def make(self, release: KafkaRelease = NEWEST_RELEASE) -> Stat:
        if self.name == "Rate":
            has_own = self.own_window and release >= KafkaRelease(4, 0)  # no rate of an older release has
            own_window_ms = self.own_window * _MS[self.unit] if has_own else 0
            return Rate(sampled(self.inner), self.unit, own_window_ms)
        if self.name == "TokenBucket":
            return TokenBucket(self.unit)
        if self.name in PLAIN:
            return PLAIN[self.name]()
        return sampled(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeterKind:
    unit: TimeUnit
    inner: str

    def parts(self) -> tuple[Argument, ...]:
        return Word(self.unit.name), Word(self.inner)

    def make(self, rate: MetricName, total: MetricName) -> Meter:
        return Meter(rate, total, sampled(self.inner), self.unit)


def kind(choice: Choice) -> Kind:
    unit = choice.of(UNITS)
    return Kind(
        name=choice.of(KINDS),
        unit=unit,
        inner=choice.of(("WindowedSum", *SAMPLED)),
        own_window=choice.of((0, 0, 0, 0, 0, 2)) if unit in _MS else 0,
    )


def meter_kind(choice: Choice) -> MeterKind:
    return MeterKind(unit=choice.of(UNITS), inner=choice.of(METERED))


def config(settings: Settings, release: KafkaRelease = NEWEST_RELEASE) -> MetricConfig:
    quota = None if settings.bound is None else Quota(settings.bound, settings.upper)
    return MetricConfig(settings.samples, settings.window_ms, settings.event_window, quota, release=release)


class StatTwin(Twin):
    """A statistic of ours with its readable values and its current config."""

    def __init__(
        self, now_ms: int, settings: Settings, stat: Stat, measurables: list[Measurable], release: KafkaRelease
    ) -> None:
        super().__init__(now_ms)
        self._release = release
        self._config = config(settings, release)
        self._stat, self._measurables = stat, measurables

    def _op_record(self, value: float) -> None:
        self._stat.record(self._config, value, self._now_ms)

    def _op_config(self, settings: Settings) -> None:
        self._config = config(settings, self._release)

    def _op_measure(self) -> str:
        """Read what the statistic offers; a peek before must show the same and leave no trace in what follows."""
        peeked = [bits(measurable.peek(self._config, self._now_ms)) for measurable in self._measurables]
        measured = [bits(measurable.measure(self._config, self._now_ms)) for measurable in self._measurables]
        return f"[{','.join(measured)}]" if peeked == measured else f"peeked {peeked}, measured {measured}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    origin_ms: int
    kind: Kind | MeterKind
    settings: Settings
    temper: Temper


class StatisticTwin(StatTwin):
    """A statistic of ours that takes the operations of `java/StatSession.java`."""

    def __init__(self, shape: Shape, release: KafkaRelease) -> None:
        super().__init__(shape.origin_ms, shape.settings, *_made(shape.kind, release), release)

    def _op_window(self) -> str:
        assert isinstance(self._stat, Rate)
        return str(self._stat.window_size(self._config, self._now_ms))


def _made(kind: Kind | MeterKind, release: KafkaRelease) -> tuple[Stat, list[Measurable]]:
    if isinstance(kind, Kind):
        stat = kind.make(release)
        return stat, [stat]
    meter = kind.make(MetricName("rate", ""), MetricName("total", ""))
    return meter, [part.measurable for part in meter.stats()]


def shape(choice: Choice) -> Shape:
    kinds: list[Kind | MeterKind] = [kind(choice)] * 7
    return Shape(
        origin_ms=choice.of((EPOCH_MS, EPOCH_MS, EPOCH_MS, 0, 1)),
        kind=choice.of([*kinds, meter_kind(choice)]),
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
    twin=StatisticTwin,
    operation=operation,
)
