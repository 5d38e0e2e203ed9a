"""The slices in which samples are read of a server: of some series, and of some hours of a day."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from .figures import LOOKBACK_MS
from .remote_read import Matchers, RawSeries
from .samples import NAME, Labels

MOST_SAMPLES: Final = 1_000_000
"""Number of samples that one request asks for, about, where scrapes are 5 s apart."""
HOUR_S: Final = 3_600
HOURS: Final = 24
DAY_S: Final = HOURS * HOUR_S
_INTERVAL_S: Final = 5
"""Scrape interval in seconds by which the size of slices is planned."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A series that is recorded."""

    labels: Labels
    """All labels, the name among them."""
    entity: str
    """The user, or else the client-id; empty for series of nodes."""
    has_samples: bool
    """False for one whose labels alone are needed, by which the others are understood."""


@dataclass(frozen=True, slots=True)
class Slice:
    """Samples of some series in a part of the period, which one task reads."""

    queries: Sequence[Matchers]
    begin_ms: int
    """Time in ms since 1970, which is not in the slice."""
    end_ms: int
    """Time in ms since 1970, which is."""
    first_ms: int | None = None
    """Begin of its hours, ms since 1970; earlier samples are of the hours before. None if they begin at `begin_ms`."""


Reader: TypeAlias = Callable[[Slice], Iterable[RawSeries]]
"""Function that reads a slice; it is sent to Spark's workers."""


def slices_of(wanted: Sequence[Wanted], node_label: str, day: int, hours: int, known_hours: int) -> Iterator[Slice]:
    """
    Yield the slices that read some hours of a day.

    Args:
        wanted: series to read.
        node_label: label that tells nodes apart.
        day: days since 1970.
        hours: hours of the day that are read, as bits.
        known_hours: hours of the day that are in the table, as bits.

    """
    by_node: dict[str, list[Labels]] = defaultdict(list)
    for series in wanted:
        by_node[series.labels.get(node_label, "")].append(series.labels)
    common = _common([series.labels for series in wanted])
    most_of_node = max(map(len, by_node.values()), default=1)
    # hours in which the node with the most series has `MOST_SAMPLES`
    length = max(1, MOST_SAMPLES * _INTERVAL_S // (most_of_node * HOUR_S))
    for first, last in _bits(hours):
        for begin in range(first, last, length):
            end = min(last, begin + length)
            first_ms, end_ms = ((day * DAY_S + hour * HOUR_S) * 1_000 for hour in (begin, end))
            is_hour_before_known = begin > 0 and known_hours >> (begin - 1) & 1
            # a value at the first steps may be of a sample before them
            begin_ms = first_ms - LOOKBACK_MS if begin == first and not is_hour_before_known else first_ms
            samples = (end - begin) * HOUR_S // _INTERVAL_S
            for nodes in _packed(by_node, samples):
                names = sorted({labels[NAME] for node in nodes for labels in by_node[node]})
                of_nodes = {node_label: nodes} if all(nodes) else {}
                queries = [Matchers({**common, **of_nodes, NAME: [name]}) for name in names]
                # a single node with too many samples is divided by the name of the metric
                if sum(len(by_node[node]) for node in nodes) * samples > MOST_SAMPLES:
                    for query in queries:
                        yield Slice([query], begin_ms, end_ms, first_ms)
                else:
                    yield Slice(queries, begin_ms, end_ms, first_ms)


def _common(labels: Sequence[Labels]) -> dict[str, list[str]]:
    """Return the labels that all series have with one value, but for the name."""
    if not labels:
        return {}
    pairs = set.intersection(*(set(labels_of_series.items()) for labels_of_series in labels))
    return {name: [value] for name, value in sorted(pairs) if name != NAME and value}


def _bits(hours: int) -> Iterator[tuple[int, int]]:
    """Yield begin and end of each run of hours, which are bits."""
    begin: int | None = None
    for hour in range(HOURS + 1):
        is_set = bool(hours >> hour & 1)
        if is_set and begin is None:
            begin = hour
        elif not is_set and begin is not None:
            yield begin, hour
            begin = None


def _packed(by_node: Mapping[str, Sequence[Labels]], samples: int) -> Iterator[list[str]]:
    """Divide nodes into lists, by as many as one request asks about; each series has `samples` samples."""
    nodes: list[str] = []
    count = 0
    for node, series in by_node.items():
        if nodes and count + len(series) * samples > MOST_SAMPLES:
            yield nodes
            nodes, count = [], 0
        nodes.append(node)
        count += len(series) * samples
    if nodes:
        yield nodes
