"""How a list became another one: which runs of it stayed, and where new items came in."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Splice:
    """A change that can be made to any list that runs beside the one that changed."""

    runs: tuple[tuple[int, int, int], ...]
    """Keep the old items from here to there, then take so many fresh ones."""
    fresh: int
    """How many fresh items there are."""

    @classmethod
    def of(cls, length: int, gone: Sequence[int], inserted: Sequence[int]) -> Splice:
        """
        Change a list of ``length``.

        Args:
            length: Of the old list.
            gone: Places of the items that left, ascending.
            inserted: For each fresh item the old place before which it comes, ascending.

        """
        runs = []
        start = 0
        for place, leaves in sorted(
            [(place, False) for place in inserted] + [(place, True) for place in gone]
        ):
            runs.append((start, place, 0 if leaves else 1))
            start = place + leaves
        runs.append((start, length, 0))
        return cls(tuple(runs), len(inserted))

    @classmethod
    def between(cls, length: int, gone: Sequence[int], fresh: Sequence[int]) -> Splice:
        """
        Change a list of ``length`` whose remaining items stay in their sequence.

        Args:
            length: Of the old list.
            gone: Places of the items that left, ascending.
            fresh: Places of the fresh items in the new list, ascending.

        """
        before_gone = [place - number for number, place in enumerate(gone)]
        before_fresh = [place - number for number, place in enumerate(fresh)]
        return cls.of(
            length,
            gone,
            [stay + bisect_right(before_gone, stay) for stay in before_fresh],
        )

    @classmethod
    def anew(cls, fresh: int) -> Splice:
        """Keep nothing of any old list."""
        return cls(((0, 0, fresh),), fresh)

    def apply(self, old: Sequence[Item], fresh: Sequence[Item]) -> list[Item]:
        """The list after the change."""
        result: list[Item] = []
        taken = 0
        for start, stop, count in self.runs:
            result += old[start:stop]
            if count:
                result += fresh[taken : taken + count]
                taken += count
        return result

    def fresh_places(self) -> list[int]:
        """Where the fresh items are in the new list."""
        places: list[int] = []
        length = 0
        for start, stop, count in self.runs:
            length += stop - start
            places += range(length, length + count)
            length += count
        return places
