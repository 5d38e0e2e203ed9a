"""The scrapes of the nodes of a cluster: their intervals, their begin, and gaps between them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from itertools import chain, pairwise
from typing import Final, NamedTuple, Protocol, TypeAlias

from .intervals import WINDOW_S, Hour, intervals_of
from .past import MOST_SAMPLES, Node, NoSamples, Pace, Server
from .promql import HOUR_S, busiest_windows, first_sample, ranges, scrapes, seen_quarters

QUARTER_S: Final = 900
SHORTEST_S: Final = 5.0
"""Scrape interval for which the first queries are planned, since the real one is still unknown."""
_MINUTE_S: Final = 60.0
_LOOKBACK_S: Final = 300.0
"""Seconds for which Prometheus shows a sample (`--query.lookback-delta`)."""
_LATE_S: Final = 120.0
"""Latest time of the first sample, in seconds after a whole hour, for the hour to count as seen whole."""


Scraped: TypeAlias = tuple[str, str]
"""A node, and the server or exporter that scraped the node (`Measured.replica`)."""


class Beats(Protocol):
    """Series whose samples are the scrapes of the nodes (`Beat` of the exporter)."""

    @property
    def selectors(self) -> Sequence[str]:
        """Return a selector for each metric, in braces."""
        ...

    @property
    def by(self) -> tuple[str, ...]:
        """Return the label that tells nodes apart, followed by the labels that tell servers or exporters apart."""
        ...

    @property
    def node_of(self) -> Mapping[tuple[str, ...], str]:
        """Return the node by the values of the labels `by`."""
        ...

    @property
    def count(self) -> int:
        """Return the number of series."""
        ...


def nodes_of(
    server: Server, beat: Beats, begin: float, end: float, most_samples: int = MOST_SAMPLES
) -> dict[str, Node]:
    """
    Return the scrapes of each node in a period of whole hours, Unix times in seconds.

    A query reads at most about `most_samples`. Raises `NoSamples` if there is no scrape.
    """
    fitting = most_samples * SHORTEST_S / max(1, beat.count)  # seconds in which all series together have `most_samples`
    length = max(HOUR_S, min(end - begin, fitting) // HOUR_S * HOUR_S)
    busiest: dict[Scraped, dict[int, float]] = defaultdict(dict)
    counts: dict[Scraped, dict[int, float]] = defaultdict(dict)

    def take_maxima(numbers: dict[Scraped, dict[int, float]], query: str, at: float) -> None:
        """Ask for numbers of scrapes by hour, and keep the larger ones of several metrics."""
        for answer in server.ask(query, at):
            scraped = scraped_by(beat, answer.labels)
            if scraped is not None:
                by_hour = numbers[scraped]
                for hour, value in answer.samples:
                    by_hour[round(hour)] = max(by_hour.get(round(hour), 0.0), value)

    for since, until in ranges(begin, end, length):
        for selector in beat.selectors:
            take_maxima(busiest, busiest_windows(selector, beat.by, WINDOW_S, until - since), until)
            take_maxima(counts, scrapes(selector, beat.by, until - since), until)
    hours = {
        scraped: {hour: Hour(count, counts[scraped].get(hour, count)) for hour, count in by_hour.items()}
        for scraped, by_hour in busiest.items()
    }
    return nodes_by_hours(hours, end - begin)


def scraped_by(beat: Beats, labels: Mapping[str, str]) -> Scraped | None:
    """Return the node and the server of a series that shows scrapes; None if the series belongs to no node."""
    values = tuple(labels.get(label, "") for label in beat.by)
    node = beat.node_of.get(values)
    return None if node is None else (node, ",".join(filter(None, values[1:])))


def nodes_by_hours(hours_of: Mapping[Scraped, Mapping[int, Hour]], seconds: float) -> dict[str, Node]:
    """
    Return the scrapes of each node in a period. Raises `NoSamples` if there is none.

    Args:
        hours_of: scrapes by node and server, and then by clock hour; an hour is named by its end, a Unix time.
        seconds: length of the period.

    """
    if not hours_of:
        raise NoSamples("there is no sample of a node in whole hours of this period: take more --days")
    by_node: dict[str, dict[str, list[_PacedHour]]] = defaultdict(dict)
    for (node, replica), by_hour in hours_of.items():
        hours = dict(sorted(by_hour.items()))
        intervals = intervals_of([*hours.values()])
        by_node[node][replica] = [
            _PacedHour(end, interval_s, hour.scrapes * interval_s)
            for (end, hour), interval_s in zip(hours.items(), intervals, strict=True)
        ]
    return {node: _node(by_replica, seconds) for node, by_replica in by_node.items()}


class _PacedHour(NamedTuple):
    """An hour of the scrapes of a node by one server."""

    end: int
    """End of the hour, Unix time in seconds."""
    interval_s: float
    seen_s: float
    """Time that the scrapes stand for."""


def _node(by_replica: Mapping[str, Sequence[_PacedHour]], seconds: float) -> Node:
    """Return a node from its hours by the server that scraped it."""
    shortest_by_hour: dict[int, float] = {}
    for hours in by_replica.values():
        for hour in hours:
            shortest_by_hour[hour.end] = min(shortest_by_hour.get(hour.end, math.inf), hour.interval_s)
    # of two servers that scrape one node, the one that saw more counts
    seen_s = max(sum(hour.seen_s for hour in hours) for hours in by_replica.values())
    return Node(
        shortest_s=min(shortest_by_hour.values()),
        longest_s=max(shortest_by_hour.values()),
        seen_s=min(seconds, seen_s),
        paces={replica: _paces(hours) for replica, hours in by_replica.items()},
    )


def _paces(hours: Sequence[_PacedHour]) -> list[Pace]:
    """Return the intervals of hours, with a single pace for neighboring hours of the same interval."""
    paces: list[Pace] = []
    for hour in hours:
        if paces and paces[-1].interval_s == hour.interval_s:
            paces.pop()
        paces.append(Pace(float(hour.end), hour.interval_s))
    return paces


def begin_of(server: Server, beat: Beats, begin: float, end: float) -> float:
    """
    Return the begin of the first hour of a period that is seen whole, for any node, as a Unix time in seconds.

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
    """Return the begin of the hour that a sample belongs to. A sample at a whole hour belongs to the hour before it."""
    return float(math.ceil(at / HOUR_S) - 1) * HOUR_S


def whole_hour(first: float, end: float) -> float:
    """Return the begin of the first hour that is seen whole, given the times of the first sample and of the end."""
    hour = _hour_of(first)
    is_late = first - hour > _LATE_S
    # a period that ends within its first hour has no other
    return hour + HOUR_S if is_late and hour + HOUR_S < end else hour


def _first(server: Server, beat: Beats, begin: float, end: float, step_s: float) -> float | None:
    """Return the time of the earliest sample that instant queries at steps of a period would show; None without one."""
    queries = [first_sample(selector, end - begin, step_s) for selector in beat.selectors]
    return min((answer.samples[-1][1] for query in queries for answer in server.ask(query, end)), default=None)


def gaps_of(server: Server, beat: Beats, begin: float, end: float, step_s: float) -> list[tuple[str, float, float]]:
    """Return the node, begin and end of all times without a sample, in quarters of an hour."""
    seen: dict[str, set[int]] = {node: set() for node in beat.node_of.values()}
    queries = [seen_quarters(selector, beat.by, end - begin, step_s) for selector in beat.selectors]
    for answer in chain.from_iterable(server.ask(query, end) for query in queries):
        node = beat.node_of.get(tuple(answer.labels.get(label, "") for label in beat.by))
        if node is not None:
            # a sample counts for the quarter that ends with it
            seen[node].update(round(at) // QUARTER_S - 1 for at, _ in answer.samples)
    return gaps_between(seen, begin, end)


def gaps_between(seen: Mapping[str, Collection[int]], begin: float, end: float) -> list[tuple[str, float, float]]:
    """
    Return the node, begin and end of all times without a sample.

    `seen` has the numbers of the quarters of an hour, since 1970, in which a node has a sample.
    """
    gaps: list[tuple[str, float, float]] = []
    quarters = range(int(begin // QUARTER_S), int(end // QUARTER_S))
    for node, numbers in seen.items():
        seen_in_order = sorted(number for number in numbers if number in quarters)
        for earlier, later in pairwise([quarters.start - 1, *seen_in_order, quarters.stop]):
            if later > earlier + 1:
                gaps.append((node, float((earlier + 1) * QUARTER_S), float(later * QUARTER_S)))
    return sorted(gaps, key=lambda gap: (gap[1], gap[0]))
