"""Where in a snapshot the entities of one quota type are, in their order."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress, count
from typing import TypeAlias

from ..snapshot import EntityUsage


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

    def moved(self, places: Sequence[int]) -> Sequence[int]:
        """Where each row is when each place became another one."""
        return places[self.start : self.stop]


@dataclass(frozen=True, slots=True)
class Scattered:
    """Anywhere, as those of several nodes are."""

    places: Sequence[int]

    def __len__(self) -> int:
        return len(self.places)

    def pick(self, usages: Sequence[EntityUsage]) -> list[EntityUsage]:
        """What is there."""
        return list(map(usages.__getitem__, self.places))

    def rows(self, places: Sequence[int]) -> list[int]:
        """The rows of those of the places that are here; all are ascending."""
        chosen = set(places)
        return list(compress(count(), map(chosen.__contains__, self.places)))

    def moved(self, places: Sequence[int]) -> Sequence[int]:
        """Where each row is when each place became another one."""
        return list(map(places.__getitem__, self.places))


Places: TypeAlias = Run | Scattered


def places_of(places: Sequence[int]) -> Places:
    """The places of rows that are at these."""
    start = places[0] if places else 0
    run = range(start, start + len(places))
    if all(map(int.__eq__, places, run)):
        return Run(run.start, run.stop)
    return Scattered(places)
