"""The scrapes of the nodes of a cluster: how often, since when, and where there are none."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final, Protocol

from .past import MOST_SAMPLES, Node, NoSamples, Server
from .promql import HOUR_S, busiest_window, first_sample, present, ranges, seen_quarters

QUARTER_S: Final = 900
_WINDOW_S: Final = 600
_SHORTEST_S: Final = 5.0
"""Scrape interval that the first queries are planned for, as it is not known yet."""
_MINUTE_S: Final = 60.0
_LATE_S: Final = 120.0
"""Seconds after a whole hour at which the first sample may be for the hour to count as whole."""


class Beats(Protocol):
    """Series whose samples are the scrapes of the nodes (`Beat` of the exporter)."""

    @property
    def selector(self) -> str:
        """Return the selector of these series, in braces."""
        ...

    @property
    def by(self) -> tuple[str, ...]:
        """Return the labels that tell nodes apart."""
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
    """Return the scrapes of each node in a period. Raises `NoSamples` if there is none."""
    counts: dict[tuple[str, str], float] = defaultdict(float)
    fitting = most_samples * _SHORTEST_S / max(1, beat.count)
    length = max(HOUR_S, min(end - begin, fitting) // HOUR_S * HOUR_S)

    def answers(query: str, at: float) -> Iterator[tuple[tuple[str, str], float]]:
        for answer in server.ask(query, at):
            values = tuple(answer.labels.get(label, "") for label in beat.by)
            node = beat.node_of.get(values)
            if node is not None:
                yield (node, ",".join(values)), answer.samples[-1][1]

    for since, until in ranges(begin, end, length):
        for key, value in answers(busiest_window(beat.selector, beat.by, _WINDOW_S, until - since), until):
            counts[key] = max(counts[key], value)
    if not counts:
        raise NoSamples("the server has no sample of a node in whole hours of this period: take more --days")
    intervals = {key: _WINDOW_S / count for key, count in counts.items()}
    step_s = max(1.0, round(min(intervals.values())))
    seen: dict[tuple[str, str], float] = defaultdict(float)
    for since, until in ranges(begin, end, length):
        for key, value in answers(present(beat.selector, beat.by, until - since, step_s), until):
            seen[key] += value * step_s
    nodes: dict[str, Node] = {}
    for key, interval_s in intervals.items():
        # of two servers that scrape one node, the one that saw more counts
        earlier = nodes.get(key[0], Node(interval_s=math.inf, seen_s=0.0))
        nodes[key[0]] = Node(
            interval_s=min(earlier.interval_s, interval_s), seen_s=max(earlier.seen_s, min(seen[key], end - begin))
        )
    return nodes


def begin_of(server: Server, beat: Beats, begin: float, end: float) -> float:
    """
    Return the first whole hour of a period with samples of a node.

    Raises `NoSamples` if there is none.
    """
    first = _first(server, beat, begin, end, HOUR_S)
    if first is None:
        raise NoSamples(
            "the server has no sample of a node in this period: how long does it keep samples (--days, --end)?"
        )
    # a sample at a whole hour was seen by the step that ends the hour before
    hour = float(math.ceil(first / HOUR_S) - 1) * HOUR_S
    exact = _first(server, beat, hour, min(end, hour + HOUR_S), _MINUTE_S)
    starts_within = exact is not None and exact - hour > _LATE_S and hour + HOUR_S < end
    return max(begin, hour + HOUR_S if starts_within else hour)


def _first(server: Server, beat: Beats, begin: float, end: float, step_s: float) -> float | None:
    answers = server.ask(first_sample(beat.selector, end - begin, step_s), end)
    return min((answer.samples[-1][1] for answer in answers), default=None)


def gaps_of(server: Server, beat: Beats, begin: float, end: float, step_s: float) -> list[tuple[str, float, float]]:
    """Return the times without a sample of a node: its name, begin and end; a quarter of an hour is the shortest."""
    seen: dict[str, set[int]] = {node: set() for node in beat.node_of.values()}
    for answer in server.ask(seen_quarters(beat.selector, beat.by, end - begin, step_s), end):
        node = beat.node_of.get(tuple(answer.labels.get(label, "") for label in beat.by))
        if node is not None:
            # a sample counts for the quarter that ends with it
            seen[node].update(round(at) // QUARTER_S - 1 for at, _ in answer.samples)
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
