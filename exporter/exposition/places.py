"""Where in a snapshot the entities of one quota type are, in their order."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import TypeAlias

from ..snapshot import EntityUsage
from .usage_changes import OtherUsages


@dataclass(frozen=True, slots=True)
class Run:
    """One after the other, as those of a single node are."""

    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start

    def pick(self, usages: Sequence[EntityUsage]) -> list[EntityUsage]:
        """What is there."""
        return list(usages[self.start : self.stop])

    def rows(self, places: Sequence[int]) -> list[int]:
        """The rows of those of the places that are here; all are ascending."""
        first = bisect_left(places, self.start)
        last = bisect_left(places, self.stop)
        return [place - self.start for place in places[first:last]]

    def others(self, others: OtherUsages) -> OtherUsages:
        """Those that are here, by row."""
        return others.inside(slice(self.start, self.stop))

    def moved(self, places: Sequence[int]) -> Sequence[int]:
        """Where each row is when each place became another one."""
        return places[self.start : self.stop]


class Scattered:
    """Anywhere."""

    def __init__(self, places: Sequence[int]) -> None:
        self._places = places

    def __len__(self) -> int:
        return len(self._places)

    @cached_property
    def _rows(self) -> dict[int, int]:
        return dict(zip(self._places, count(), strict=False))

    def pick(self, usages: Sequence[EntityUsage]) -> list[EntityUsage]:
        """What is there."""
        return list(map(usages.__getitem__, self._places))

    def rows(self, places: Iterable[int]) -> list[int]:
        """The rows of those of the places that are here, ascending."""
        rows = self._rows
        return sorted(rows[place] for place in places if place in rows)

    def others(self, others: OtherUsages) -> OtherUsages:
        """Those that are here, by row."""
        return others.among(self._rows)

    def moved(self, places: Sequence[int]) -> Sequence[int]:
        """Where each row is when each place became another one."""
        return list(map(places.__getitem__, self._places))


Places: TypeAlias = Run | Scattered


def places_of(places: Sequence[int]) -> Places:
    """The places of rows that are at these."""
    start = places[0] if places else 0
    run = range(start, start + len(places))
    if all(map(int.__eq__, places, run)):
        return Run(run.start, run.stop)
    return Scattered(places)
