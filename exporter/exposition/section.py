"""The entities of one quota type in their order, and what changed in it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import islice
from operator import eq, lt

from ..snapshot import EntityUsage
from .news import News
from .places import Places, Run, places_of
from .series import encodable, entity_order
from .splice import Splice
from .usage_changes import OtherUsages, UsageChanges

_Key = tuple[str, str, tuple[int, str]]


class Section:
    """
    The entities of one quota type from snapshot to snapshot.

    Places are those of a snapshot's usages, rows those of its own.
    """

    def __init__(self) -> None:
        self.usages: list[EntityUsage] = []
        """Of the last snapshot, sorted."""
        self.places: Places = Run(0, 0)
        """Where these were in it."""
        self.change: Splice | None = None
        """How the entities changed with the last snapshot, None when they are the same."""
        self.news = self.turns = News([], [], [])
        """Which of them are new or others than before, and which in more than their numbers."""
        self._keys: list[_Key] | None = None
        """What the rows are sorted by; none where they stand together in the snapshot."""
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

    def sort(self, usages: Sequence[EntityUsage], mine: Iterable[int]) -> bool:
        """Take over any snapshot. Returns whether it can be updated, because no two are equal."""
        self._nodes = set()
        self._spelled_out = False
        keyed = self._keyed(usages, mine)
        keys = [key for key, _ in keyed]
        self._equals = any(map(eq, keys, islice(keys, 1, None)))
        self._stand([place for _, place in keyed], keys)
        self.change = Splice.anew(len(keyed))
        self._take(self.places.pick(usages), OtherUsages())
        return not self._equals

    def follow(self, usages: Sequence[EntityUsage], changes: UsageChanges) -> None:
        """Take over a snapshot that has the same entities at the same places."""
        self.change = None
        now = self.places.pick(usages)
        self._take(now, self._others(now, changes))

    def update_run(
        self, usages: Sequence[EntityUsage], changes: UsageChanges, run: Run
    ) -> bool:
        """
        Take over a snapshot in which the entities stand together, as they did in the last one.

        Returns:
            Whether that could be done: only when they are in their order.

        """
        gone, fresh = self.places.rows(changes.gone), run.rows(changes.fresh)
        now = run.pick(usages)
        if not _ascend(now, fresh):
            return False
        for row in fresh:
            self._note(now[row])
        self._keys = None
        self.places = run
        self.change = Splice.between(len(self.usages), gone, fresh)
        self._take(now, self._others(now, changes))
        return True

    def update(
        self,
        usages: Sequence[EntityUsage],
        changes: UsageChanges,
        fresh: Iterable[int],
    ) -> bool:
        """
        Take over a snapshot in which not much is new.

        Args:
            usages: All of the snapshot.
            changes: What is new in it.
            fresh: Where the new entities of this type are.

        Returns:
            Whether that could be done: not so when two are equal.

        """
        before = self._keys or list(map(_key, self.usages))
        keyed = self._keyed(usages, fresh)
        came = [bisect_left(before, key) for key, _ in keyed]
        change = Splice.of(len(before), self.places.rows(changes.gone), came)
        keys = change.apply(before, [key for key, _ in keyed])
        if any(_has_equal(keys, row) for row in change.fresh_places()):
            return False
        stayed = self.places.moved(changes.moved)
        self._stand(change.apply(stayed, [place for _, place in keyed]), keys)
        self.change = change
        now = self.places.pick(usages)
        self._take(now, self._others(now, changes))
        return True

    def _stand(self, places: Sequence[int], keys: list[_Key]) -> None:
        self.places = places_of(places)
        self._keys = None if isinstance(self.places, Run) else keys

    def _others(self, now: list[EntityUsage], changes: UsageChanges) -> OtherUsages:
        """Which usages are others than before, of entities that stayed."""
        if isinstance(self.places, Run):
            return changes.others.inside(self.places.start, self.places.stop)
        before = self.usages
        if self.change is not None:
            fresh = [now[row] for row in self.change.fresh_places()]
            before = self.change.apply(before, fresh)
        return OtherUsages.between(before, now)

    def _take(self, usages: list[EntityUsage], others: OtherUsages) -> None:
        self.usages = usages
        fresh = [] if self.change is None else self.change.fresh_places()
        self.news, self.turns = News.of(usages, fresh, others)

    def _keyed(
        self, usages: Sequence[EntityUsage], places: Iterable[int]
    ) -> list[tuple[_Key, int]]:
        keyed = []
        for place in places:
            self._note(usages[place])
            keyed.append((_key(usages[place]), place))
        return sorted(keyed)

    def _note(self, usage: EntityUsage) -> None:
        entity = usage.entity
        self._nodes.add(entity.broker)
        user, client_id = entity.user, entity.client_id
        if encodable(user) != user or encodable(client_id) != client_id:
            self._spelled_out = True


def _key(usage: EntityUsage) -> _Key:
    return entity_order(usage.entity)


def _has_equal(keys: Sequence[_Key], row: int) -> bool:
    around = keys[max(row - 1, 0) : row + 2]
    return len(set(around)) < len(around)


def _ascend(usages: Sequence[EntityUsage], rows: Iterable[int]) -> bool:
    """Whether these rows are between their neighbours, and equal to none."""
    for row in rows:
        around = list(map(_key, usages[max(row - 1, 0) : row + 2]))
        if not all(map(lt, around, around[1:])):
            return False
    return True
