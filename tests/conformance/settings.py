"""Metric configs and statistics as vectors describe them."""

from enum import Enum
from typing import TypeVar

from tests.conformance.fields import Fields, Malformed, as_number

from quotascope.metrics import (
    LONG_MAX,
    Avg,
    BucketSizing,
    CumulativeCount,
    CumulativeSum,
    Frequencies,
    Frequency,
    Max,
    Meter,
    MetricConfig,
    MetricName,
    Min,
    Percentile,
    Percentiles,
    Quota,
    Rate,
    Sample,
    SampledStat,
    SimpleRate,
    Stat,
    TimeUnit,
    TokenBucket,
    Value,
    WindowedCount,
    WindowedSum,
)

RATE, TOTAL = MetricName("rate", ""), MetricName("total", "")
"""What the two metrics of a meter are called."""

E = TypeVar("E", bound=Enum)


class SampleCount(SampledStat):
    """The vectors' own test double: the number of windows that hold at least one event."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(0.0)

    def update(self, sample: Sample, value: float) -> None:
        """Only the event counts."""

    def combine(self, samples: list[Sample]) -> float:
        """Count."""
        return float(sum(sample.event_count > 0 for sample in samples))


_SAMPLED: dict[str, type[WindowedSum | Avg | Max | Min | SampleCount]] = {
    "WindowedSum": WindowedSum,
    "WindowedCount": WindowedCount,
    "Avg": Avg,
    "Max": Max,
    "Min": Min,
    "SampleCount": SampleCount,
}
PLAIN: dict[str, type[SimpleRate | CumulativeSum | CumulativeCount | Value]] = {
    "SimpleRate": SimpleRate,
    "CumulativeSum": CumulativeSum,
    "CumulativeCount": CumulativeCount,
    "Value": Value,
}


def config(fields: Fields, key: str = "metric") -> MetricConfig:
    """The metric config under a key, with Kafka's defaults for what it leaves out."""
    metric = fields.fields(key, {})
    made = MetricConfig(
        samples=metric.integer("samples", 2),
        time_window_ms=metric.integer("time_window_ms", 30_000),
        event_window=metric.integer("event_window", LONG_MAX),
        quota=_quota(metric),
    )
    metric.done()
    return made


def _quota(metric: Fields) -> Quota | None:
    if metric.raw("quota", None) is None:
        return None
    quota = metric.fields("quota")
    made = Quota(float(quota.number("bound")), quota.flag("upper", default=True))
    quota.done()
    return made


def statistic(fields: Fields) -> Stat:
    """The statistic that `stat`, `inner` and `unit` describe."""
    name = fields.text("stat")
    if name == "TokenBucket":
        return TokenBucket(_unit(fields))
    if name == "Rate":
        return Rate(_inner(fields), _unit(fields))
    if name == "Meter":
        return Meter(RATE, TOTAL, _inner(fields), _unit(fields))
    if name == "Percentiles":
        return _percentiles(fields)
    if name == "Frequencies":
        return _frequencies(fields)
    return PLAIN[name]() if name in PLAIN else sampled(name)


def part_name(of: object) -> str:
    """What the part of a compound statistic is called that a vector names by a text or a number."""
    return of if isinstance(of, str) else f"{as_number(of):g}"


def _percentiles(fields: Fields) -> Percentiles:
    percentiles = [Percentile(MetricName(part_name(percent), ""), percent) for percent in range(101)]
    return Percentiles(
        fields.integer("size_bytes"),
        float(fields.number("max")),
        member(BucketSizing, fields.text("bucketing")),
        percentiles,
        float(fields.number("min")),
    )


def _frequencies(fields: Fields) -> Frequencies:
    centers = fields.several("centers", as_number)
    return Frequencies(
        fields.integer("buckets"),
        float(fields.number("min")),
        float(fields.number("max")),
        [Frequency(MetricName(part_name(center), ""), center) for center in centers],
    )


def _unit(fields: Fields) -> TimeUnit:
    return member(TimeUnit, fields.text("unit", "SECONDS"))


def _inner(fields: Fields) -> SampledStat:
    return sampled(fields.text("inner", "WindowedSum"))


def sampled(name: str) -> SampledStat:
    """The statistic over windows of this name. Raises `Malformed`."""
    if name not in _SAMPLED:
        raise Malformed(f"unknown statistic {name!r:.60}")
    return _SAMPLED[name]()


def member(kind: type[E], name: str) -> E:
    """The member of an enumeration that has this name."""
    if name not in kind.__members__:
        raise Malformed(f"{name!r:.60} is none of {', '.join(kind.__members__)}")
    return kind[name]
