"""
Queries about the past: a server answers each with one number per series, and sends no samples.

Ranges are a millisecond shorter at their older end: Prometheus before 3.0 includes the sample there, and later releases
do not. So no sample is counted in two ranges.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

HOUR_S: Final = 3_600
_OF_ENTITIES: Final = ("user", "client_id", "team", "broker", "quota_type", "shadow")
"""Labels by which one exporter has several series of a family; a label `cluster` is of its target or its cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """Description of series of one metric, or of sums over them."""

    name: str
    selector: str = ""
    """Matchers of the cluster."""
    node: tuple[str, str] | None = None
    """Label and value that choose one node, if a query about all nodes would be too large."""
    by: tuple[str, ...] = ()
    """Labels of the sums that are queried; empty to query the series themselves."""
    factor: float = 1.0
    """Factor that converts a sample to Kafka's unit."""
    of_rates: bool = True
    """True for usages, which are added up; False for throttle times, of which the longest is taken."""

    @property
    def expression(self) -> str:
        """
        Return the series as PromQL.

        >>> Samples(name="kafka_x", selector='job="kafka"', by=("instance", "user")).expression
        'sum by (instance,user) (kafka_x{job="kafka"})'
        """
        matchers = [self.selector] if self.selector else []
        if self.node is not None:
            matchers.append(f"{self.node[0]}={quoted(self.node[1])}")
        series = f"{self.name}{{{','.join(matchers)}}}" if matchers else self.name
        if not self.by:
            return series
        return f"{'sum' if self.of_rates else 'max'} by ({','.join(self.by)}) ({series})"


Query: TypeAlias = Callable[[Samples, float, float], str]
"""
Function that returns a query from a description of series, the length of a range, and the step, both in seconds.

It must be a function of this module, or a `functools.partial` of one: samples in a table answer only these.
"""


def quoted(text: str) -> str:
    """Return a text as a string literal of PromQL; every string of JSON is one."""
    return json.dumps(text, ensure_ascii=False)


def duration(seconds: float) -> str:
    """
    Return a duration as PromQL writes it.

    >>> duration(86_400), duration(7.5)
    ('86400s', '7500ms')
    """
    return f"{seconds:.0f}s" if float(seconds).is_integer() else f"{seconds * 1_000:.0f}ms"


def targets(series: str, seconds: float) -> str:
    """
    Return the query for the targets that had series of an exporter of ours, by labels that are not of entities.

    >>> targets("kafka_quota_x{}", 3_600)
    'count without (user,client_id,team,broker,quota_type,shadow) (count_over_time(kafka_quota_x{}[3600s]))'
    """
    return f"count without ({','.join(_OF_ENTITIES)}) (count_over_time({series}[{duration(seconds)}]))"


def within(seconds: float) -> str:
    """
    Return the duration of a range that excludes its older end.

    >>> within(3_600)
    '3599999ms'
    """
    return f"{seconds * 1_000 - 1:.0f}ms"


def quantile(samples: Samples, seconds: float, step_s: float, share: float) -> str:
    """Return the query for the rate that the part `share` of the samples above 0 does not exceed."""
    return f"quantile_over_time({share:.12g},({samples.expression} > 0)[{within(seconds)}:{duration(step_s)}])"


def highest_hour(samples: Samples, seconds: float, step_s: float, share: float) -> str:
    """Return the query for the highest quantile of any clock hour; the range must end at a whole hour."""
    hourly = quantile(samples, HOUR_S, step_s, share)
    return f"max_over_time({hourly}[{within(seconds)}:{duration(HOUR_S)}])"


def highest(samples: Samples, seconds: float, step_s: float) -> str:
    """Return the query for the highest sample."""
    return f"max_over_time({_range(samples, seconds, step_s)})"


def active(samples: Samples, seconds: float, step_s: float, above: float = 0.0) -> str:
    """Return the query for the number of steps at which a value is above a number in Kafka's unit."""
    return f"count_over_time(({samples.expression} > {above / samples.factor!r})[{within(seconds)}:{duration(step_s)}])"


def changes(samples: Samples, seconds: float, step_s: float) -> str:
    """Return the query for the number of times that a load began or ended."""
    return f"changes(({samples.expression} > bool 0)[{within(seconds)}:{duration(step_s)}])"


def seen(samples: Samples, seconds: float, step_s: float) -> str:
    """Return the query for the number of samples as they were scraped, or of steps at which a sum has a value."""
    return f"count_over_time({_range(samples, seconds, step_s)})"


def total(samples: Samples, seconds: float, step_s: float) -> str:
    """Return the query for the sum of all samples."""
    return f"sum_over_time({_range(samples, seconds, step_s)})"


def _range(samples: Samples, seconds: float, step_s: float) -> str:
    """Return a range of samples as they were scraped; for sums, a range of their values at each step."""
    if samples.by:
        return f"({samples.expression})[{within(seconds)}:{duration(step_s)}]"
    return f"{samples.expression}[{within(seconds)}]"


def busiest_windows(selector: str, by: Collection[str], window_s: float, seconds: float) -> str:
    """Return the query for the number of scrapes in the busiest window of each clock hour, by node, as a range."""
    by_window = f"count_over_time({selector}[{within(window_s)}])"
    busiest = f"max_over_time({by_window}[{within(HOUR_S)}:{duration(window_s)}])"
    return f"(max by ({','.join(by)}) ({busiest}))[{within(seconds)}:{duration(HOUR_S)}]"


def scrapes(selector: str, by: Collection[str], seconds: float) -> str:
    """Return the query for the number of scrapes in each clock hour, by node, as a range."""
    by_hour = f"count_over_time({selector}[{within(HOUR_S)}])"
    return f"(max by ({','.join(by)}) ({by_hour}))[{within(seconds)}:{duration(HOUR_S)}]"


def seen_quarters(selector: str, by: Collection[str], seconds: float, step_s: float) -> str:
    """Return the query for the quarters of an hour with samples, by node, as a range."""
    counts = f"count_over_time((group by ({','.join(by)}) ({selector}))[{within(900)}:{duration(step_s)}])"
    return f"{counts}[{within(seconds)}:{duration(900)}]"


def throttles(samples: Samples, seconds: float, step_s: float) -> str:
    """Return the query for the values above 0 at each step, as a range, so that the server sends no zeros."""
    return f"({samples.expression} > 0)[{within(seconds)}:{duration(step_s)}]"


def first_sample(selector: str, seconds: float, step_s: float) -> str:
    """Return the query for the time of the earliest sample that instant queries at the steps would show."""
    return f"min(min_over_time(timestamp({selector})[{within(seconds)}:{duration(step_s)}]))"


def ranges(begin: float, end: float, seconds: float) -> Sequence[tuple[float, float]]:
    """
    Divide a period into ranges of `seconds`; only the first range may be shorter.

    >>> ranges(0, 10, 4)
    [(0, 2), (2, 6), (6, 10)]
    """
    divided: list[tuple[float, float]] = []
    while end > begin:
        divided.append((max(begin, end - seconds), end))
        end -= seconds
    return divided[::-1]
