"""Which usages of a list are others than in the list that it came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..snapshot import EntityUsage
from .usage_changes import OtherUsages


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
        cls, usages: Sequence[EntityUsage], fresh: list[int], others: OtherUsages
    ) -> tuple[News, News]:
        """
        What is new in a list.

        Args:
            usages: The list.
            fresh: Where entities are new.
            others: The other usages.

        Returns:
            All of it, and the part that is more than other numbers: where entities are new, or shown in other detail.

        """
        return cls._told(usages, fresh, others), cls._told(
            usages, fresh, others.turned()
        )

    @classmethod
    def _told(
        cls, usages: Sequence[EntityUsage], fresh: list[int], others: OtherUsages
    ) -> News:
        if not fresh:
            return cls(others.places, others.now, others.before)
        new = [usages[at] for at in fresh]
        return cls(fresh + others.places, new + others.now, others.before)
