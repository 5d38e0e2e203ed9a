"""The entities of one quota type in their order, and what changed in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from operator import eq, itemgetter

from ..snapshot import Entity, EntityUsage
from .series import encodable, entity_order
from .slots import Key, Slots

_by_key = itemgetter(0)


class Section:
    """The entities of one quota type from snapshot to snapshot."""

    def __init__(self) -> None:
        self.usages: list[EntityUsage] = []
        """Of the last snapshot, sorted."""
        self.slots = Slots()
        """Where columns keep what they made for each of them."""
        self.changed = False
        """Whether the last snapshot had other entities than the one before."""
        self.anew = False
        """Whether all slots are others, too."""
        self.fresh: Sequence[int] = range(0)
        """Where the entities are that came with a change."""
        self.detailed = True
        """Whether all are detailed, as they were before."""
        self._all_detailed = True
        self._places: Sequence[int] = range(0)
        """In the snapshot."""
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
        self.changed = self.anew = False
        self._pick(usages)

    def sort(self, usages: Sequence[EntityUsage], mine: Iterable[int]) -> bool:
        """
        Take over any snapshot.

        Args:
            usages: All of the snapshot.
            mine: The places of those that belong here.

        Returns:
            Whether it can be updated, because no two are equal.

        """
        self._nodes = set()
        self._spelled_out = False
        keyed = sorted((self._key(usages[at].entity), at) for at in mine)
        keys = [key for key, _ in keyed]
        self._places = [at for _, at in keyed]
        self._equals = any(map(eq, keys, islice(keys, 1, None)))
        self.slots.renew([(key, usages[at].entity) for key, at in keyed])
        self.fresh = range(len(keyed))
        self.changed = self.anew = True
        self._pick(usages)
        return not self._equals

    def update(self, gone: Iterable[Entity], came: Iterable[Entity]) -> bool:
        """Let these leave, and those come. Returns whether that could be done: not so when two are equal."""
        keyed = sorted(((self._key(each), each) for each in came), key=_by_key)
        left = [entity_order(each) for each in gone]
        self.changed, self.anew = bool(left or keyed), False
        if not self.changed:
            return True
        fits = self.slots.change(left, keyed)
        self.fresh = [self.slots.place(key) for key, _ in keyed]
        return fits

    def find(
        self,
        usages: Sequence[EntityUsage],
        entities: list[Entity],
        start: int,
        places: Callable[[], dict[int, int]],
    ) -> int:
        """
        Take over the snapshot of an update.

        Args:
            usages: All of the snapshot.
            entities: Theirs.
            start: Where those of this section begin, if they stand together in their order.
            places: Gives the place of each entity by its identity.

        Returns:
            Where the next section begins.

        """
        mine = list(filter(None, self.slots.entities))
        stop = start + len(mine)
        if entities[start:stop] == mine:
            self._places = range(start, stop)
        else:
            at = places()
            self._places = [at[id(each)] for each in mine]
        self._pick(usages)
        return stop

    def _pick(self, usages: Sequence[EntityUsage]) -> None:
        places = self._places
        if isinstance(places, range):
            self.usages = list(usages[places.start : places.stop])
        else:
            self.usages = list(map(usages.__getitem__, places))
        flags = [usage.detailed for usage in self.usages]
        detailed = all(flags)
        self.detailed = detailed and self._all_detailed
        self._all_detailed = detailed

    def _key(self, entity: Entity) -> Key:
        """The place of an entity that comes."""
        self._nodes.add(entity.broker)
        user, client_id = entity.user, entity.client_id
        if encodable(user) != user or encodable(client_id) != client_id:
            self._spelled_out = True
        return entity_order(entity)
