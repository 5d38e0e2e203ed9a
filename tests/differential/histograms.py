"""
Kafka's percentiles and frequencies against ours.

Percentiles, shares, bins and their edges are the same to the last bit, whatever is recorded.

Left out: NaN as a recorded value, and linear bins up to a negative or an extreme maximum, which we refuse at once.
"""

from dataclasses import dataclass

from tests.differential.choice import Choice
from tests.differential.comparison import Operation
from tests.differential.drive import Subject
from tests.differential.shapes import EPOCH_MS, Settings, Temper, amount, settings, step_ms, temper
from tests.differential.statistics import StatTwin
from tests.differential.wire import Word, bits, tokens

from quotascope.metrics.engine.extras.frequencies import Frequencies, Frequency
from quotascope.metrics.engine.extras.histogram import BinScheme, ConstantBins, LinearBins
from quotascope.metrics.engine.extras.percentiles import BucketSizing, Percentile, Percentiles
from quotascope.metrics.engine.metric_name import MetricName
from quotascope.metrics.kafka.errors import InvalidConfig
from quotascope.metrics.kafka.release import KafkaRelease

FREQUENCIES = "FREQUENCIES"
PERCENTS = (
    *(50.0, 0.0, 25.0, 75.0, 90.0, 99.0, 99.9, 100.0, 1e-9, -1.0, 101.0),
    *(100 / 3 * (1 + 1e-12), 200 / 3 * (1 - 1e-12), 100 / 7 * (1 + 1e-12)),
)
"""The last ones are shares of few events in 32 bits and not in 64."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    kind: str
    bins: int
    low: float
    high: float
    settings: Settings
    of: tuple[float, ...]
    """The percentiles, or the centers."""
    temper: Temper


class HistogramTwin(StatTwin):
    """A statistic of ours that takes the operations of `java/HistogramSession.java`."""

    def __init__(self, shape: Shape, release: KafkaRelease) -> None:
        stat = _stat(shape)
        measurables = [stat, *(part.measurable for part in stat.stats())]
        super().__init__(EPOCH_MS, shape.settings, stat, measurables, release)
        self._bins = _bins(shape)

    def _op_bin(self, value: float) -> str:
        try:
            return str(self._bins.bin_of(value))
        except InvalidConfig:
            return "refused"

    def _op_edge(self, number: int) -> str:
        return bits(self._bins.edge(number))


def _stat(shape: Shape) -> Percentiles | Frequencies:
    if shape.kind == FREQUENCIES:
        parts = [Frequency(MetricName(str(share), ""), share) for share in shape.of]
        return Frequencies(shape.bins, shape.low, shape.high, parts)
    percentiles = [Percentile(MetricName(str(share), ""), share) for share in shape.of]
    sizing = BucketSizing[shape.kind]
    size = 4 * shape.bins + 3
    return Percentiles(size, shape.high, sizing, percentiles, shape.low)


def _bins(shape: Shape) -> BinScheme:
    if shape.kind == BucketSizing.LINEAR.name:
        return LinearBins(shape.bins, shape.high)
    return ConstantBins(shape.bins, shape.low, shape.high)


def shape(choice: Choice) -> Shape:
    """Draw what stays the same; a range may be empty, and of constant bins upside down."""
    kind = choice.of((*BucketSizing.__members__, FREQUENCIES))
    low = choice.of((0.0, 0.0, 1.0, -5.0, 0.1))
    width = choice.of((100.0, 1.0, 3.0, 1e6, 0.7, 0.0))
    bins = choice.of((2, 3, 4, 10, 100, choice.integer(2, 50)))
    if kind == BucketSizing.LINEAR.name:
        low = 0.0
    high = low + width
    upside_down = kind == BucketSizing.CONSTANT.name and choice.integer(0, 9) == 9
    return Shape(
        kind=kind,
        bins=bins,
        low=high if upside_down else low,
        high=low if upside_down else high,
        settings=settings(choice),
        of=_centers(choice, bins, low, high) if kind == FREQUENCIES else PERCENTS,
        temper=temper(choice),
    )


def _centers(choice: Choice, bins: int, low: float, high: float) -> tuple[float, ...]:
    count = choice.integer(0, min(bins, 5))
    shares = (choice.integer(0, bins) / bins for _ in range(count))
    return tuple(min(high, low + share * (high - low)) for share in shares)


def opening(shape: Shape) -> str:
    arguments = tokens(EPOCH_MS, Word(shape.kind), shape.bins, shape.low, shape.high, shape.settings, shape.of)
    return " ".join(("new histogram", *arguments))


def operation(choice: Choice, shape: Shape) -> Operation:
    step = step_ms(choice, shape.settings, shape.temper)
    happening = choice.integer(0, 99)
    if happening < 60:
        return Operation("record", step, (_value(choice, shape),))
    if happening < 63:
        return Operation("config", step, (settings(choice),))
    if happening < 75:
        return Operation("bin", step, (_value(choice, shape),))
    if happening < 80:
        return Operation("edge", step, (choice.integer(-1, shape.bins + 1),))
    return Operation("measure", step)


def _value(choice: Choice, shape: Shape) -> float:
    """Return a value within the range, on a boundary, beside it, or any."""
    parts = choice.of((shape.bins, 7, 1000))
    inside = shape.low + (shape.high - shape.low) * choice.integer(0, parts) / parts
    return choice.of((inside, inside, inside, amount(choice, shape.settings, shape.temper)))


SUBJECT = Subject(
    name="histograms",
    share=0.05,
    shape=shape,
    opening=opening,
    twin=HistogramTwin,
    operation=operation,
)
