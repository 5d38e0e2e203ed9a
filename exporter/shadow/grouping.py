"""Which entities the brokers' numbers make under other rules than those in force: sums of what is measured, or unknown."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from math import inf
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quotascope.metrics import INT_MAX, QuotaType, RuleTable, WindowConfig
from quotascope.quotas import unnamed

from ..join.limiting import NO_RULES, limited
from ..limits import Limits
from ..snapshot import TYPES, Entity, Floats, Layout
from ..snapshot.layout import Rows, fixed

Mask: TypeAlias = NDArray[np.bool_]
Names: TypeAlias = tuple[str, str]
"""User and client-id: of a request, or of the tags of a metric, where "" is an absent one."""
Pool: TypeAlias = tuple[QuotaType, str]
"""What is counted together: a quota type on a broker."""

_UNLIMITED: Final = -1
"""A row that no rule of the shadow limits, whichever requests are in it."""
_DIVIDED: Final = -2
"""A row with requests that the shadow would count under several entities."""
_NEW: Final = -3
_MOST_ASKED: Final = 1000
"""Divided rows that are asked for one entity; with more of them it counts as unknown."""


class Completions:
    """
    Requests that stand for all that may be measured under some tags, as far as two tables of rules distinguish them.

    An absent tag is completed by each name that a rule pairs with the other one, by a name of each kind of those that rules
    have alone, and by one that no rule has.
    """

    def __init__(self, *tables: RuleTable) -> None:
        self._other = unnamed(*tables)
        self._paired = defaultdict[tuple[int, str], set[str]](set)
        """By place (0 for a user, 1 for a client-id) and name: the names of the other place in rules for both."""
        # By place and name: the rules for the name alone. Names with the same rules, but for the bounds, are of one kind.
        alone = defaultdict[tuple[int, str], set[object]](set)
        for number, table in enumerate(tables):
            for entity in table:
                for place, name, other in (0, entity.user, entity.client_id), (1, entity.client_id, entity.user):
                    if isinstance(name, str) and isinstance(other, str):
                        self._paired[place, name].add(other)
                    elif isinstance(name, str):
                        alone[place, name].add((number, other))
        kinds = defaultdict[tuple[int, frozenset[object]], list[str]](list)
        for (place, name), rules in alone.items():
            kinds[place, frozenset(rules)].append(name)
        self._kinds = [[names for (at, _), names in kinds.items() if at == place] for place in (0, 1)]

    def of(self, tags: Names) -> Iterator[Names]:
        """The requests that may be measured under tags of which one is absent."""
        user, client_id = tags
        if user:
            yield from ((user, name) for name in (*self._names(0, user), ""))
        else:
            yield from ((name, client_id) for name in self._names(1, client_id))

    def _names(self, place: int, name: str) -> Iterator[str]:
        """What completes the name of a place."""
        paired = self._paired.get((place, name), set())
        yield from paired
        for names in self._kinds[1 - place]:
            yield from islice((each for each in names if each not in paired), 1)
        yield self._other


class Grouping:
    """
    The entities that a shadow makes of the rows of one layout after the other, while no rule changes.

    Each row is resolved once, by the engine's tables; of another layout only the rows that are new.

    Args:
        rules: The shadow's, by quota type.
        limits: The rules in force, and the settings of the brokers.
        windows: The windows of brokers whose settings are not known.
        shows: Whether an entity of a user and a client-id may be shown.

    """

    def __init__(
        self,
        rules: Mapping[QuotaType, RuleTable],
        limits: Limits,
        windows: WindowConfig,
        shows: Callable[[str, str], bool],
    ) -> None:
        self.enforced = {kind: limits.rules.get(kind, NO_RULES) for kind in QuotaType}
        self.rules = rules
        self._shadow_limits = Limits(rules=rules, nodes=limits.nodes, read_at=0.0)
        self._windows, self._shows = windows, shows
        self._completions = {kind: Completions(self.enforced[kind], table) for kind, table in rules.items()}
        # By quota type, which is expensive to hash, and tags: those under the shadow, or what else a row is.
        self._placed = {kind: dict[Names, Names | int]() for kind in QuotaType}
        self._numbers = {kind: dict[tuple[str, Names], int]() for kind in QuotaType}
        self._group = np.empty(0, np.intp)
        self._constants: Floats = np.empty((4, 0))
        self.layout = Layout(())
        self.entities: list[Entity] = []
        """By number: as the shadow's rules make them, with its limits."""
        self.limits: Floats = self._constants[0]
        """By number, in the unit of ``Entity.limit``."""
        self.windows: Floats = self._constants[1]
        """By number, in ms: all samples of the broker together."""
        self.longest: Floats = self._constants[2]
        """By number: the longest throttle in ms."""
        self.hidden: Mask = np.empty(0, np.bool_)
        """By number: whether it may not be shown one by one."""
        self.pools: list[Pool] = []
        self.pool_of: Rows = self._group
        """By number: the place in ``pools``, -1 where it has no row in this layout."""
        self.members: Rows = self._group
        """The rows that entities are made of."""
        self.of_members: Rows = self._group
        """The number of the entity of each."""
        self.stricter: Rows = self._group
        """Places in ``members`` of rows under a limit in force that is lower than the entity's."""
        self.kept: Mask = self.hidden
        """By number: whether it is what is measured, under the limit in force: what a broker does now is what it would do."""
        self.divided: Rows = self._group
        """The pool of each row that cannot be divided."""
        self.unclear: Mask = self.hidden
        """By number: whether requests of the entity may be in such a row."""

    @property
    def crowded(self) -> bool:
        """Whether most of its entities have no row any more."""
        return len(self.entities) > 2 * len(self.members) + 1000

    def follow(self, layout: Layout) -> None:
        """Take the rows of another layout under the same rules."""
        if layout is self.layout:
            return
        group = layout.carry(self._group, self.layout, _NEW).copy()
        rows = np.flatnonzero(group == _NEW)
        group[rows] = [self._number(entity) for entity in layout.entities[rows]]
        self.layout, self._group = layout, fixed(group)
        fresh = [self._constants_of(entity) for entity in self.entities[len(self.limits) :]]
        self._constants = np.hstack([self._constants, np.array(fresh, np.float64).reshape(-1, 4).T])
        self.limits, self.windows, self.longest, hidden = self._constants
        self.hidden = hidden > 0
        self.pools = [(kind, node) for kind in TYPES for node in layout.nodes]
        self.members = np.flatnonzero(group >= 0)
        self.of_members = group[self.members]
        pools = layout.types.astype(np.intp) * len(layout.nodes) + layout.node_numbers
        self.pool_of = np.full(len(self.entities), -1)
        self.pool_of[self.of_members] = pools[self.members]
        self.stricter = np.flatnonzero(layout.limits[self.members] < self.limits[self.of_members])
        self.kept = np.zeros(len(self.entities), np.bool_)
        mutations = TYPES.index(QuotaType.CONTROLLER_MUTATION)
        for place in np.flatnonzero(layout.types[self.members] == mutations):
            number = self.of_members[place]
            ours, theirs = self.entities[number], layout.entities[self.members[place]]
            self.kept[number] = _names(ours) == _names(theirs) and ours.limit == theirs.limit
        self.divided = pools[group == _DIVIDED]
        self.unclear = np.zeros(len(self.entities), np.bool_)
        rest = defaultdict[int, list[Names]](list)
        for pool, entity in zip(self.divided.tolist(), layout.entities[group == _DIVIDED], strict=True):
            rest[pool].append(_names(entity))
        for number in np.flatnonzero(np.isin(self.pool_of, list(rest))).tolist():
            self.unclear[number] = self._may_have_more(self.entities[number], rest[self.pool_of[number]])

    def _constants_of(self, entity: Entity) -> tuple[float, float, float, bool]:
        """The limit of an entity, its windows, its longest throttle, and whether it is hidden. Each has a rule: without a limit, an infinite one."""
        samples, window_ms = self._windows.samples, float(self._windows.window_ms)
        if (settings := self._shadow_limits.nodes.get(entity.broker)) is not None:
            samples, window_ms = settings.quota_samples, settings.quota_window_seconds * 1000
        longest_ms = window_ms if entity.quota_type is QuotaType.REQUEST else INT_MAX
        limit = inf if entity.limit is None else entity.limit
        return limit, samples * window_ms, longest_ms, not self._shows(entity.user, entity.client_id)

    def _number(self, entity: Entity) -> int:
        """The number of the entity that a row belongs to, or what else it is."""
        kind, names = entity.quota_type, _names(entity)
        if entity.tags is not None or not self.rules[kind].enabled:
            return _UNLIMITED
        placed, numbers = self._placed[kind], self._numbers[kind]
        tags = placed.get(names, _NEW)
        if tags == _NEW:
            tags = placed[names] = self._tags(kind, names)
        if isinstance(tags, int):
            return tags
        number = numbers.get((entity.broker, tags))
        if number is None:
            number = numbers[entity.broker, tags] = len(self.entities)
            user, client_id = tags
            made = Entity(broker=entity.broker, quota_type=kind, user=user, client_id=client_id)
            self.entities.append(limited(made, self._shadow_limits))
        return number

    def _tags(self, kind: QuotaType, names: Names) -> Names | int:
        """The tags of all requests of a row under the shadow, or that none of them has a limit, or that they are divided."""
        rules, enforced = self.rules[kind], self.enforced[kind]
        if all(names):
            only = rules.metric_tags(*names)
            return _UNLIMITED if rules.bound_of(*only) is None else only
        requests = self._completions[kind].of(names)
        tags = {rules.metric_tags(*each) for each in requests if enforced.metric_tags(*each) == names}
        if tags and all(rules.bound_of(*each) is None for each in tags):
            return _UNLIMITED
        return names if tags == {names} else _DIVIDED

    def _may_have_more(self, entity: Entity, divided: Sequence[Names]) -> bool:
        """Whether requests of an entity may be in one of these divided rows of its pool."""
        kind, tags = entity.quota_type, _names(entity)
        if all(tags):
            return False  # its requests are all measured under one set of tags
        if len(divided) > _MOST_ASKED:
            return True
        rules, enforced = self.rules[kind], self.enforced[kind]
        for names in divided:
            # of a row of all users it can be this user's part, of a row of a user this client-id's part
            requests: Iterable[Names] = ()
            if names == tags:
                requests = self._completions[kind].of(names)
            elif bool(names[0]) != bool(tags[0]):
                requests = [(names[0] or tags[0], names[1] or tags[1])]
            if any(enforced.metric_tags(*each) == names and rules.metric_tags(*each) == tags for each in requests):
                return True
        return False


def _names(entity: Entity) -> Names:
    return entity.user, entity.client_id
