"""
The queries about the past: each leaves one number a series in the server, and no sample leaves it.

Ranges end a millisecond early at their older end, which Prometheus before 3.0 includes and later ones do not, so that
no sample counts in two of them.
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
    """The series of one metric."""

    name: str
    selector: str = ""
    """Matchers of the cluster."""
    node: tuple[str, str] | None = None
    """A label and its value that choose one node, where a query for all would be too large."""
    by: tuple[str, ...] = ()
    """Labels of the sums that are queried; the series themselves if empty."""
    factor: float = 1.0
    """A sample times this is in Kafka's unit."""
    of_rates: bool = True
    """False for throttle times, of which a sum is the longest."""

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
Function of samples, the length of a range and the step in seconds.

It is one of this module, or a `functools.partial` of it, so that samples in a table answer it as well.
"""


def quoted(text: str) -> str:
    """Return a text as a string of PromQL, which is written as in Go: a string of JSON is one."""
    return json.dumps(text, ensure_ascii=False)


def duration(seconds: float) -> str:
    """
    Return a duration.

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
    Return a range without its older end.

    >>> within(3_600)
    '3599999ms'
    """
    return f"{seconds * 1_000 - 1:.0f}ms"


def quantile(samples: Samples, seconds: float, step_s: float, share: float) -> str:
    """Return the query for the rate that the part `share` of the samples above 0 does not exceed."""
    return f"quantile_over_time({share:.12g},({samples.expression} > 0)[{within(seconds)}:{duration(step_s)}])"


def highest_hour(samples: Samples, seconds: float, step_s: float, share: float) -> str:
    """Return the query for the highest of the quantiles of each clock hour; the range ends at a whole hour."""
    of_hour = quantile(samples, HOUR_S, step_s, share)
    return f"max_over_time({of_hour}[{within(seconds)}:{duration(HOUR_S)}])"


def highest(samples: Samples, seconds: float, step_s: float) -> str:
    """Return the query for the highest sample."""
    return f"max_over_time({_range(samples, seconds, step_s)})"


def active(samples: Samples, seconds: float, step_s: float, above: float = 0.0) -> str:
    """Return the query for the number of samples above a number in Kafka's unit; a step is a sample."""
    return f"count_over_time(({samples.expression} > {above / samples.factor!r})[{within(seconds)}:{duration(step_s)}])"


def changes(samples: Samples, seconds: float, step_s: float) -> str:
    """Return the query for the number of times that a load began or ended."""
    return f"changes(({samples.expression} > bool 0)[{within(seconds)}:{duration(step_s)}])"


def seen(samples: Samples, seconds: float, step_s: float) -> str:
    """Return the query for the number of samples; without sums they are counted as they were scraped."""
    return f"count_over_time({_range(samples, seconds, step_s)})"


def total(samples: Samples, seconds: float, step_s: float) -> str:
    """Return the query for the sum of all samples."""
    return f"sum_over_time({_range(samples, seconds, step_s)})"


def _range(samples: Samples, seconds: float, step_s: float) -> str:
    """Return a range of samples as they were scraped, of sums one each step."""
    if samples.by:
        return f"({samples.expression})[{within(seconds)}:{duration(step_s)}]"
    return f"{samples.expression}[{within(seconds)}]"


def busiest_windows(selector: str, by: Collection[str], window_s: float, seconds: float) -> str:
    """Return the query for the greatest number of scrapes of each node in a window of each clock hour, as a range."""
    of_windows = f"count_over_time({selector}[{within(window_s)}])"
    greatest = f"max_over_time({of_windows}[{within(HOUR_S)}:{duration(window_s)}])"
    return f"(max by ({','.join(by)}) ({greatest}))[{within(seconds)}:{duration(HOUR_S)}]"


def scrapes(selector: str, by: Collection[str], seconds: float) -> str:
    """Return the query for the number of scrapes of each node in each clock hour, as a range."""
    of_hours = f"count_over_time({selector}[{within(HOUR_S)}])"
    return f"(max by ({','.join(by)}) ({of_hours}))[{within(seconds)}:{duration(HOUR_S)}]"


def seen_quarters(selector: str, by: Collection[str], seconds: float, step_s: float) -> str:
    """Return the query for the quarters of an hour in which each node has samples, as a range."""
    counts = f"count_over_time((group by ({','.join(by)}) ({selector}))[{within(900)}:{duration(step_s)}])"
    return f"{counts}[{within(seconds)}:{duration(900)}]"


def throttles(samples: Samples, seconds: float, step_s: float) -> str:
    """Return the query for the samples above 0, as a range: none leaves the server of a time without throttles."""
    return f"({samples.expression} > 0)[{within(seconds)}:{duration(step_s)}]"


def first_sample(selector: str, seconds: float, step_s: float) -> str:
    """Return the query for the time of the earliest sample, looked for each step."""
    return f"min(min_over_time(timestamp({selector})[{within(seconds)}:{duration(step_s)}]))"


def ranges(begin: float, end: float, seconds: float) -> Sequence[tuple[float, float]]:
    """
    Divide a period from its end into ranges of at most so many seconds.

    >>> ranges(0, 10, 4)
    [(0, 2), (2, 6), (6, 10)]
    """
    divided: list[tuple[float, float]] = []
    while end > begin:
        divided.append((max(begin, end - seconds), end))
        end -= seconds
    return divided[::-1]
