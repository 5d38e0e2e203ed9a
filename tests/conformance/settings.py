"""Metric configs and statistics as vectors describe them."""

from collections.abc import Callable
from typing import Annotated

from tests.conformance.fields import Malformed, called, number, refuse_unknown

from quotascope.metrics.engine.config import MetricConfig
from quotascope.metrics.engine.cumulative import CumulativeSum
from quotascope.metrics.engine.extras.all_time import CumulativeCount, Value
from quotascope.metrics.engine.extras.frequencies import Frequencies, Frequency
from quotascope.metrics.engine.extras.meter import Meter
from quotascope.metrics.engine.extras.percentiles import BucketSizing, Percentile, Percentiles
from quotascope.metrics.engine.metric_name import MetricName
from quotascope.metrics.engine.quota import Quota
from quotascope.metrics.engine.rate import Rate, SimpleRate, TimeUnit
from quotascope.metrics.engine.sampled import Sample, SampledStat
from quotascope.metrics.engine.stat import Stat
from quotascope.metrics.engine.token_bucket import TokenBucket
from quotascope.metrics.engine.windowed import Avg, Max, Min, WindowedCount, WindowedSum
from quotascope.metrics.kafka.numbers import LONG_MAX

RATE, TOTAL = MetricName("rate", ""), MetricName("total", "")
"""What the two metrics of a meter are called."""


class SampleCount(SampledStat):
    """A test double of the vectors: the number of windows that hold one event or more."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(0.0)

    def update(self, sample: Sample, value: float) -> None:
        """Leave the total alone, so that only the number of events changes."""

    def combine(self, samples: list[Sample]) -> float:
        return float(sum(sample.event_count > 0 for sample in samples))


_SAMPLED: dict[str, type[WindowedSum | Avg | Max | Min | SampleCount]] = {
    each.__name__: each for each in (WindowedSum, WindowedCount, Avg, Max, Min, SampleCount)
}
PLAIN: dict[str, type[SimpleRate | CumulativeSum | CumulativeCount | Value]] = {
    each.__name__: each for each in (SimpleRate, CumulativeSum, CumulativeCount, Value)
}


def _quota(bound: float, upper: bool = True) -> Quota:  # noqa: FBT001, FBT002 - keys of an object
    return Quota(bound, upper)


def _config(
    samples: int = 2,
    time_window_ms: int = 30_000,
    event_window: int = LONG_MAX,
    quota: Annotated[Quota, lambda value: called(_quota, value)] | None = None,
) -> MetricConfig:
    return MetricConfig(samples, time_window_ms, event_window, quota)


Config = Annotated[MetricConfig, lambda value: called(_config, value)]
"""A metric config, with Kafka's defaults for what it leaves out."""
DEFAULTS = MetricConfig()


def _rate(inner: str = "WindowedSum", unit: TimeUnit = TimeUnit.SECONDS) -> Rate:
    return Rate(sampled(inner), unit)


def _meter(inner: str = "WindowedSum", unit: TimeUnit = TimeUnit.SECONDS) -> Meter:
    return Meter(RATE, TOTAL, sampled(inner), unit)


def _bucket(unit: TimeUnit = TimeUnit.SECONDS) -> TokenBucket:
    return TokenBucket(unit)


def _percentiles(size_bytes: int, max: float, bucketing: BucketSizing, min: float) -> Percentiles:  # noqa: A002 - keys
    percentiles = [Percentile(MetricName(part_name(percent), ""), percent) for percent in range(101)]
    return Percentiles(size_bytes, max, bucketing, percentiles, min)


def _frequencies(buckets: int, min: float, max: float, centers: list[float]) -> Frequencies:  # noqa: A002 - keys
    return Frequencies(buckets, min, max, [Frequency(MetricName(part_name(center), ""), center) for center in centers])


_WITH_KEYS: dict[str, Callable[..., Stat]] = {
    "TokenBucket": _bucket,
    "Rate": _rate,
    "Meter": _meter,
    "Percentiles": _percentiles,
    "Frequencies": _frequencies,
}


def statistic(name: str, keys: dict[str, object]) -> Stat:
    if name in _WITH_KEYS:
        return called(_WITH_KEYS[name], keys)
    refuse_unknown(keys)
    return PLAIN[name]() if name in PLAIN else sampled(name)


def sampled(name: str) -> SampledStat:
    if name not in _SAMPLED:
        raise Malformed(f"unknown statistic {name!r:.60}")
    return _SAMPLED[name]()


def part_name(of: object) -> str:
    """Return the name of a part of a compound statistic, which a vector refers to by a text or a number."""
    return of if isinstance(of, str) else f"{number(of):g}"
