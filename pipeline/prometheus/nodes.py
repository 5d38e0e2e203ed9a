"""The scrapes of the nodes of a cluster: how often, since when, and where there are none."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from typing import Final, Protocol, TypeAlias

from .intervals import WINDOW_S, Hour, intervals_of
from .past import MOST_SAMPLES, Node, NoSamples, Pace, Server
from .promql import HOUR_S, busiest_windows, first_sample, ranges, scrapes, seen_quarters

QUARTER_S: Final = 900
SHORTEST_S: Final = 5.0
"""Scrape interval that the first queries are planned for, as it is not known yet."""
_MINUTE_S: Final = 60.0
_LOOKBACK_S: Final = 300.0
"""Seconds for which Prometheus shows a sample (`--query.lookback-delta`)."""
_LATE_S: Final = 120.0
"""Seconds after a whole hour at which the first sample may be for the hour to count as whole."""


Scraped: TypeAlias = tuple[str, str]
"""A node, and the server or exporter that scraped it (`Measured.replica`)."""


class Beats(Protocol):
    """Series whose samples are the scrapes of the nodes (`Beat` of the exporter)."""

    @property
    def selectors(self) -> Sequence[str]:
        """Return the selectors of these series, in braces; one for each metric."""
        ...

    @property
    def by(self) -> tuple[str, ...]:
        """Return the labels that tell nodes apart, then those of servers or exporters."""
        ...

    @property
    def node_of(self) -> Mapping[tuple[str, ...], str]:
        """Return the nodes by the values of these labels."""
        ...

    @property
    def count(self) -> int:
        """Return the number of these series."""
        ...


def nodes_of(
    server: Server, beat: Beats, begin: float, end: float, most_samples: int = MOST_SAMPLES
) -> dict[str, Node]:
    """Return the scrapes of each node in a period of whole hours. Raises `NoSamples` if there is none."""
    fitting = most_samples * SHORTEST_S / max(1, beat.count)
    length = max(HOUR_S, min(end - begin, fitting) // HOUR_S * HOUR_S)
    busiest: dict[Scraped, dict[int, float]] = defaultdict(dict)
    counts: dict[Scraped, dict[int, float]] = defaultdict(dict)

    def note(numbers: dict[Scraped, dict[int, float]], query: str, at: float) -> None:
        for answer in server.ask(query, at):
            scraped = scraped_by(beat, answer.labels)
            if scraped is not None:
                by_hour = numbers[scraped]
                for hour, value in answer.samples:
                    by_hour[round(hour)] = max(by_hour.get(round(hour), 0.0), value)

    for since, until in ranges(begin, end, length):
        for selector in beat.selectors:
            note(busiest, busiest_windows(selector, beat.by, WINDOW_S, until - since), until)
            note(counts, scrapes(selector, beat.by, until - since), until)
    hours = {
        scraped: {hour: Hour(count, counts[scraped].get(hour, count)) for hour, count in by_hour.items()}
        for scraped, by_hour in busiest.items()
    }
    return nodes_by_hours(hours, end - begin)


def scraped_by(beat: Beats, labels: Mapping[str, str]) -> Scraped | None:
    """Return node and server of a series that shows scrapes; None if it is of no node."""
    values = tuple(labels.get(label, "") for label in beat.by)
    node = beat.node_of.get(values)
    return None if node is None else (node, ",".join(filter(None, values[1:])))


def nodes_by_hours(hours_of: Mapping[Scraped, Mapping[int, Hour]], seconds: float) -> dict[str, Node]:
    """
    Return the scrapes of each node in a period, by its hours. Raises `NoSamples` if there is none.

    Args:
        hours_of: scrapes of each clock hour, by its end, by node and server.
        seconds: length of the period.

    """
    if not hours_of:
        raise NoSamples("there is no sample of a node in whole hours of this period: take more --days")
    by_node: dict[str, dict[str, dict[int, tuple[float, float]]]] = defaultdict(dict)
    for (node, replica), by_hour in hours_of.items():
        hours = dict(sorted(by_hour.items()))
        intervals = intervals_of([*hours.values()])
        by_node[node][replica] = {
            hour: (interval_s, scraped.scrapes * interval_s)
            for (hour, scraped), interval_s in zip(hours.items(), intervals, strict=True)
        }
    return {node: _node(by_replica, seconds) for node, by_replica in by_node.items()}


def _node(by_replica: Mapping[str, Mapping[int, tuple[float, float]]], seconds: float) -> Node:
    """Return a node by the servers that scraped it: interval and seen time of each hour, by the hour's end."""
    best: dict[int, float] = {}
    for by_hour in by_replica.values():
        for hour, (interval_s, _) in by_hour.items():
            best[hour] = min(best.get(hour, math.inf), interval_s)
    return Node(
        shortest_s=min(best.values()),
        longest_s=max(best.values()),
        # of two servers that scrape one node, the one that saw more counts
        seen_s=min(seconds, max(sum(seen_s for _, seen_s in by_hour.values()) for by_hour in by_replica.values())),
        paces={replica: _paces(by_hour) for replica, by_hour in by_replica.items()},
    )


def _paces(by_hour: Mapping[int, tuple[float, float]]) -> list[Pace]:
    """Return the intervals of hours; neighboring hours with the same interval are one."""
    paces: list[Pace] = []
    for hour, (interval_s, _) in by_hour.items():
        if paces and paces[-1].interval_s == interval_s:
            paces.pop()
        paces.append(Pace(float(hour), interval_s))
    return paces


def begin_of(server: Server, beat: Beats, begin: float, end: float) -> float:
    """
    Return the first whole hour of a period with samples of a node.

    Raises `NoSamples` if there is none.
    """
    first = _first(server, beat, begin, end, HOUR_S)
    if first is None:  # samples that end before a whole hour are in none of these steps
        first = _first(server, beat, begin, end, _LOOKBACK_S)
    if first is None:
        raise NoSamples(
            "the server has no sample of a node in this period: how long does it keep samples (--days, --end)?"
        )
    hour = _hour_of(first)
    exact = _first(server, beat, hour, min(end, hour + HOUR_S), _MINUTE_S)
    return max(begin, hour if exact is None else whole_hour(exact, end))


def _hour_of(at: float) -> float:
    """Return the begin of the hour that a sample is in: one at a whole hour is in the hour that ends with it."""
    return float(math.ceil(at / HOUR_S) - 1) * HOUR_S


def whole_hour(first: float, end: float) -> float:
    """Return the begin of the first hour that is seen whole, by the first sample of a period up to `end`."""
    hour = _hour_of(first)
    return hour + HOUR_S if first - hour > _LATE_S and hour + HOUR_S < end else hour


def _first(server: Server, beat: Beats, begin: float, end: float, step_s: float) -> float | None:
    queries = [first_sample(selector, end - begin, step_s) for selector in beat.selectors]
    return min((answer.samples[-1][1] for query in queries for answer in server.ask(query, end)), default=None)


def gaps_of(server: Server, beat: Beats, begin: float, end: float, step_s: float) -> list[tuple[str, float, float]]:
    """Return the times without a sample of a node: its name, begin and end; a quarter of an hour is the shortest."""
    seen: dict[str, set[int]] = {node: set() for node in beat.node_of.values()}
    queries = [seen_quarters(selector, beat.by, end - begin, step_s) for selector in beat.selectors]
    for answer in chain.from_iterable(server.ask(query, end) for query in queries):
        node = beat.node_of.get(tuple(answer.labels.get(label, "") for label in beat.by))
        if node is not None:
            # a sample counts for the quarter that ends with it
            seen[node].update(round(at) // QUARTER_S - 1 for at, _ in answer.samples)
    return gaps_between(seen, begin, end)


def gaps_between(seen: Mapping[str, Collection[int]], begin: float, end: float) -> list[tuple[str, float, float]]:
    """Return the times without a sample, by the quarters of an hour since 1970 in which each node has one."""
    gaps: list[tuple[str, float, float]] = []
    quarters = range(int(begin // QUARTER_S), int(end // QUARTER_S))
    for node, of_node in seen.items():
        since: int | None = None
        for quarter in (*quarters, None):
            missing = quarter is not None and quarter not in of_node
            if missing and since is None:
                since = quarter
            elif not missing and since is not None:
                gaps.append(
                    (node, float(since * QUARTER_S), float((quarters.stop if quarter is None else quarter) * QUARTER_S))
                )
                since = None
    return sorted(gaps, key=lambda gap: (gap[1], gap[0]))
