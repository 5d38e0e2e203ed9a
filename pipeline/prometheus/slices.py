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
    """Time in ms after which samples are of its hours, and not of those before; None for the begin."""


Reader: TypeAlias = Callable[[Slice], Iterable[RawSeries]]
"""Function that reads a slice; it is sent to Spark's workers."""


def slices_of(wanted: Sequence[Wanted], node_label: str, day: int, hours: int, known: int) -> Iterator[Slice]:
    """Yield the slices of hours of a day, which are bits, as those that are known already."""
    by_node: dict[str, list[Labels]] = defaultdict(list)
    for one in wanted:
        by_node[one.labels.get(node_label, "")].append(one.labels)
    common = _common([one.labels for one in wanted])
    most = max(map(len, by_node.values()), default=1)
    length = max(1, MOST_SAMPLES * _INTERVAL_S // (most * HOUR_S))
    for first, last in _bits(hours):
        for begin in range(first, last, length):
            end = min(last, begin + length)
            first_ms, end_ms = ((day * DAY_S + hour * HOUR_S) * 1_000 for hour in (begin, end))
            begin_ms = first_ms
            if begin == first and not (begin and known >> (begin - 1) & 1):
                begin_ms -= LOOKBACK_MS  # for the first steps of the period
            samples = (end - begin) * HOUR_S // _INTERVAL_S
            for nodes in _packed(by_node, samples):
                names = sorted({labels[NAME] for node in nodes for labels in by_node[node]})
                of_nodes = {node_label: nodes} if all(nodes) else {}
                queries = [Matchers({**common, **of_nodes, NAME: [name]}) for name in names]
                is_large = sum(len(by_node[node]) for node in nodes) * samples > MOST_SAMPLES
                for some in [[one] for one in queries] if is_large else [queries]:
                    yield Slice(some, begin_ms, end_ms, first_ms)


def _common(labels: Sequence[Labels]) -> dict[str, list[str]]:
    """Return the labels that all series have with one value, but for the name."""
    if not labels:
        return {}
    pairs = set.intersection(*(set(one.items()) for one in labels))
    return {name: [value] for name, value in sorted(pairs) if name != NAME and value}


def _bits(hours: int) -> Iterator[tuple[int, int]]:
    """Yield begin and end of each run of hours, which are bits."""
    begin: int | None = None
    for hour in range(HOURS + 1):
        is_there = bool(hours >> hour & 1)
        if is_there and begin is None:
            begin = hour
        elif not is_there and begin is not None:
            yield begin, hour
            begin = None


def _packed(by_node: Mapping[str, Sequence[Labels]], samples: int) -> Iterator[list[str]]:
    """Yield nodes by as many as one request asks about; each series has a number of samples."""
    some: list[str] = []
    count = 0
    for node, series in by_node.items():
        if some and count + len(series) * samples > MOST_SAMPLES:
            yield some
            some, count = [], 0
        some.append(node)
        count += len(series) * samples
    if some:
        yield some
