"""Where in a snapshot some of its entities are."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import count

from ..snapshot import Entity


class Whereabouts:
    """
    Places of entities, in which each is once.

    It is quick when asked for all of them one after the other, in their sequence.
    """

    def __init__(self, entities: Sequence[Entity]) -> None:
        self._entities = entities
        self._next = 0

    def of(self, some: Sequence[Entity]) -> slice | list[int]:
        """The place of each."""
        together = slice(self._next, self._next + len(some))
        self._next = together.stop
        if self._entities[together] == some:
            return together
        return list(map(self._by_identity.__getitem__, map(id, some)))

    @cached_property
    def _by_identity(self) -> dict[int, int]:
        return dict(zip(map(id, self._entities), count(), strict=False))
