"""The entities of one quota type in their order, and what changed in it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import islice
from operator import eq

from ..snapshot import Entity, EntityUsage
from .news import News
from .series import encodable, entity_order
from .splice import Splice
from .whereabouts import Whereabouts

_Key = tuple[str, str, tuple[int, str]]


class Section:
    """
    The entities of one quota type from snapshot to snapshot.

    Places are those of a snapshot's usages, of which it picks its own.
    """

    def __init__(self) -> None:
        self.usages: list[EntityUsage] = []
        """Of the last snapshot, sorted."""
        self.change: Splice | None = None
        """How the entities changed with the last snapshot, None when they are the same."""
        self.news = self.turns = News([], [], [])
        """Which of them are new or others than before, and which in more than their numbers."""
        self._entities: list[Entity] = []
        self._keys: list[_Key] = []
        self._places: slice | list[int] = []
        self._nodes: set[str] = set()
        self._spelled_out = False
        self._equals = False

    @property
    def may_repeat(self) -> bool:
        """Whether two entities may have the same labels: the same names twice, or such as UTF-8 cannot tell apart."""
        return self._equals or self._spelled_out

    @property
    def many_nodes(self) -> bool:
        """Whether the same user and client id may be there of several nodes."""
        return len(self._nodes) > 1

    def follow(self, usages: Sequence[EntityUsage]) -> None:
        """Take over a snapshot that has the same entities at the same places."""
        self.change = None
        self._pick(usages)

    def sort(self, usages: Sequence[EntityUsage], mine: Sequence[int]) -> bool:
        """Take over any snapshot. Returns whether it can be updated, because no two are equal."""
        self._nodes = set()
        self._spelled_out = False
        keyed = self._keyed(usages, mine)
        self._keys = [key for key, _ in keyed]
        self._places = [place for _, place in keyed]
        self._entities = [usages[place].entity for place in self._places]
        self._equals = any(map(eq, self._keys, islice(self._keys, 1, None)))
        self.change = Splice.anew(len(keyed))
        self._pick(usages)
        return not self._equals

    def update(
        self,
        usages: Sequence[EntityUsage],
        gone: Iterable[Entity],
        fresh: Iterable[int],
        whereabouts: Whereabouts,
    ) -> bool:
        """
        Take over a snapshot in which not much is new.

        Args:
            usages: All of the snapshot.
            gone: The entities that left.
            fresh: Where the new ones are.
            whereabouts: Where all are.

        Returns:
            Whether that could be done: not so when two are equal.

        """
        keyed = self._keyed(usages, fresh)
        keys = [key for key, _ in keyed]
        change = Splice.of(
            len(self._keys),
            sorted(bisect_left(self._keys, entity_order(entity)) for entity in gone),
            [bisect_left(self._keys, key) for key in keys],
        )
        self._keys = change.apply(self._keys, keys)
        if any(map(self._has_equal, change.fresh_places())):
            return False
        came = [usages[place].entity for _, place in keyed]
        self._entities = change.apply(self._entities, came)
        self._places = whereabouts.of(self._entities)
        self.change = change
        self._pick(usages)
        return True

    def _has_equal(self, row: int) -> bool:
        around = self._keys[max(row - 1, 0) : row + 2]
        return len(set(around)) < len(around)

    def _pick(self, usages: Sequence[EntityUsage]) -> None:
        before, places = self.usages, self._places
        if isinstance(places, slice):
            self.usages = list(usages[places])
        else:
            self.usages = list(map(usages.__getitem__, places))
        self.news, self.turns = News.of(before, self.usages, self.change)

    def _keyed(
        self, usages: Sequence[EntityUsage], places: Iterable[int]
    ) -> list[tuple[_Key, int]]:
        keyed = []
        for place in places:
            entity = usages[place].entity
            keyed.append((entity_order(entity), place))
            self._nodes.add(entity.broker)
            user, client_id = entity.user, entity.client_id
            if encodable(user) != user or encodable(client_id) != client_id:
                self._spelled_out = True
        return sorted(keyed)
