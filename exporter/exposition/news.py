"""Which usages of a list are others than in the list that it came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress, count
from operator import is_not

from ..snapshot import EntityUsage
from .splice import Splice


@dataclass(frozen=True, slots=True)
class News:
    """What has to be looked at; all else is as it was."""

    places: list[int]
    """Where: first those of new entities, then those whose usage is another object."""
    now: list[EntityUsage]
    """What is there."""
    before: list[EntityUsage]
    """What was there, for the last of these places: of the first ones nothing was known."""

    @classmethod
    def of(
        cls,
        before: Sequence[EntityUsage],
        now: Sequence[EntityUsage],
        change: Splice | None,
    ) -> tuple[News, News]:
        """
        Compare two lists.

        Args:
            before: A list.
            now: What became of it.
            change: Which entities came and left, None when they are the same.

        Returns:
            All of it, and the part that is more than other numbers: where entities are new, or shown in other detail.

        """
        fresh: list[int] = []
        if change is not None:
            fresh = change.fresh_places()
            before = change.apply(before, [now[at] for at in fresh])
        others = list(compress(count(), map(is_not, before, now)))
        turned = [at for at in others if before[at].detailed is not now[at].detailed]
        return (
            cls._told(fresh, others, before, now),
            cls._told(fresh, turned, before, now),
        )

    @classmethod
    def _told(
        cls,
        fresh: list[int],
        others: list[int],
        before: Sequence[EntityUsage],
        now: Sequence[EntityUsage],
    ) -> News:
        places = fresh + others
        return cls(places, [now[at] for at in places], [before[at] for at in others])
