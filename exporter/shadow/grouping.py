"""Which entities the brokers' numbers make under other rules than those in force: sums of what is measured, or unknown."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quotascope.metrics import DEFAULT, INT_MAX, QuotaType, RuleTable, WindowConfig
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
_Placed: TypeAlias = dict[Names, Names | int]
"""The tags under the shadow by those measured, or what else a row is."""
_Numbers: TypeAlias = dict[tuple[str, Names], int]
"""The numbers of entities by broker and tags."""

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

    def __init__(self, enforced: RuleTable, shadow: RuleTable) -> None:
        self.other = unnamed(enforced, shadow)
        self._clients_of = defaultdict[str, set[str]](set)
        self._users_of = defaultdict[str, set[str]](set)
        users, clients = defaultdict[str, int](int), defaultdict[str, int](int)
        for place, table in enumerate((enforced, shadow)):
            for entity in table:
                user, client_id = entity.user, entity.client_id
                if isinstance(user, str) and isinstance(client_id, str):
                    self._clients_of[user].add(client_id)
                    self._users_of[client_id].add(user)
                elif isinstance(user, str):
                    users[user] |= 1 << (2 * place + (client_id is DEFAULT))
                elif isinstance(client_id, str):
                    clients[client_id] |= 1 << (2 * place + (user is DEFAULT))
        self._kinds_of_users = _by_kind(users)
        self._kinds_of_clients = _by_kind(clients)

    def of(self, tags: Names) -> Iterator[Names]:
        """The requests that may be measured under these tags."""
        user, client_id = tags
        if user and client_id:
            yield tags
        elif user:
            paired = self._clients_of.get(user, set())
            for name in self._names(paired, self._kinds_of_clients):
                yield user, name
            yield user, ""
        else:
            paired = self._users_of.get(client_id, set())
            for name in self._names(paired, self._kinds_of_users):
                yield name, client_id

    def _names(self, paired: set[str], kinds: Iterable[list[str]]) -> Iterator[str]:
        yield from paired
        for names in kinds:
            yield from islice((name for name in names if name not in paired), 1)
        yield self.other


def _by_kind(names: Mapping[str, int]) -> tuple[list[str], ...]:
    kinds = defaultdict[int, list[str]](list)
    for name, kind in names.items():
        kinds[kind].append(name)
    return tuple(kinds.values())


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
        self._limits = limits
        self._shadow_limits = Limits(rules=rules, nodes=limits.nodes, read_at=0.0)
        self._windows, self._shows = windows, shows
        self._completions = {kind: Completions(self.enforced[kind], table) for kind, table in rules.items()}
        self._known: dict[QuotaType, tuple[_Placed, _Numbers]] = {kind: ({}, {}) for kind in QuotaType}
        self._pool_numbers: dict[Pool, int] = {}
        self._group = np.empty(0, np.intp)
        self.layout = Layout(())
        self.entities: list[Entity] = []
        """By number: as the shadow's rules make them, with its limits."""
        self.pools: list[Pool] = []
        """By number."""
        self._described = np.empty((0, 5))
        self.limits: Floats = np.empty(0)
        """By number, in the unit of ``Entity.limit``; as the next three."""
        self.windows: Floats = self.limits
        """Of the broker, in ms: all samples together."""
        self.longest: Floats = self.limits
        """The longest throttle in ms."""
        self.pool_of: Rows = np.empty(0, np.intp)
        """The place in ``pools``."""
        self.hidden: Mask = np.empty(0, np.bool_)
        """By number: whether it may not be shown one by one."""
        self.gone: Mask = self.hidden
        """By number: whether it has no row in this layout."""
        self.members: Rows = np.empty(0, np.intp)
        """The rows that entities are made of."""
        self.of_members: Rows = self.members
        """The number of the entity of each."""
        self.stricter: Rows = self.members
        """Places in ``members`` of rows under a limit in force that is lower than the entity's."""
        self.unclear: Mask = self.hidden
        """By number: whether requests of the entity may be in a row that cannot be divided."""
        self.kept: Mask = self.hidden
        """By number: whether it is what is measured, under the limit in force: what a broker does now is what it would do."""
        self.divided: Rows = self.members
        """The pool of each of those rows."""

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
        self._describe(self.entities[len(self._described) :])
        self.layout, self._group = layout, fixed(group)
        self.members = np.flatnonzero(group >= 0)
        self.of_members = group[self.members]
        self.gone = np.bincount(self.of_members, minlength=len(self.entities)) == 0
        in_force = layout.limits[self.members]
        self.stricter = np.flatnonzero(in_force < self.limits[self.of_members])
        self.kept = np.zeros(len(self.entities), np.bool_)
        mutations = TYPES.index(QuotaType.CONTROLLER_MUTATION)
        for place in np.flatnonzero(layout.types[self.members] == mutations):
            number = self.of_members[place]
            ours, theirs = self.entities[number], layout.entities[self.members[place]]
            same = _names(ours) == _names(theirs) and ours.limit == theirs.limit
            self.kept[number] = same
        apart = layout.entities[group == _DIVIDED]
        self.divided = np.array([self._pool(entity) for entity in apart], np.intp)
        self.unclear = np.zeros(len(self.entities), np.bool_)
        if len(apart):
            by_pool = defaultdict[Pool, list[Names]](list)
            for entity in apart:
                by_pool[entity.quota_type, entity.broker].append(_names(entity))
            for number in np.unique(self.of_members).tolist():
                entity = self.entities[number]
                rest = by_pool.get((entity.quota_type, entity.broker), [])
                self.unclear[number] = self._may_have_more(entity, rest)

    def _number(self, entity: Entity) -> int:
        """The number of the entity that a row belongs to, or what else it is."""
        kind, names = entity.quota_type, _names(entity)
        if entity.tags is not None or not self.rules[kind].enabled:
            return _UNLIMITED
        known, numbers = self._known[kind]  # a quota type is expensive to hash
        tags = known.get(names, _NEW)
        if tags == _NEW:
            tags = known[names] = self._placed(kind, names)
        if isinstance(tags, int):
            return tags
        number = numbers.get((entity.broker, tags))
        if number is None:
            number = numbers[entity.broker, tags] = len(self.entities)
            user, client_id = tags
            made = Entity(broker=entity.broker, quota_type=kind, user=user, client_id=client_id)
            self.entities.append(limited(made, self._shadow_limits))
        return number

    def _placed(self, kind: QuotaType, names: Names) -> Names | int:
        """The tags of all requests of a row under the shadow, or that none of them has a limit, or that they are divided."""
        rules, enforced = self.rules[kind], self.enforced[kind]
        if all(names):
            only = rules.metric_tags(*names)
            return _UNLIMITED if rules.bound_of(*only) is None else only
        tags = {
            rules.metric_tags(*request)
            for request in self._completions[kind].of(names)
            if enforced.metric_tags(*request) == names
        }
        if tags and all(rules.bound_of(*each) is None for each in tags):
            return _UNLIMITED
        return names if tags == {names} else _DIVIDED

    def _may_have_more(self, entity: Entity, divided: Iterable[Names]) -> bool:
        """Whether requests of an entity may be in one of these divided rows of its pool."""
        kind, tags = entity.quota_type, _names(entity)
        if all(tags):
            return False  # its requests are all measured under one set of tags
        rules, enforced = self.rules[kind], self.enforced[kind]
        for asked, names in enumerate(divided):
            if asked == _MOST_ASKED:
                return True
            # of a row of all users it can be this user's part, of a row of a user this client-id's part
            if names == tags:
                requests = self._completions[kind].of(names)
            elif tags[0] and not names[0]:
                requests = iter([(tags[0], names[1])])
            elif tags[1] and not names[1]:
                requests = iter([(names[0], tags[1])])
            else:
                continue
            for request in requests:
                measured, made = (
                    enforced.metric_tags(*request),
                    rules.metric_tags(*request),
                )
                if measured == names and made == tags:
                    return True
        return False

    def _describe(self, entities: Iterable[Entity]) -> None:
        """Add the numbers of entities that are new."""
        made = []
        for entity in entities:
            samples, seconds = (
                self._windows.samples,
                float(self._windows.window_seconds),
            )
            if (node := self._limits.nodes.get(entity.broker)) is not None:
                samples, seconds = node.quota_samples, node.quota_window_seconds
            request = entity.quota_type is QuotaType.REQUEST
            limit = np.nan if entity.limit is None else entity.limit
            longest_ms = seconds * 1000 if request else INT_MAX
            hidden = not self._shows(entity.user, entity.client_id)
            window_ms = samples * seconds * 1000
            made.append((limit, window_ms, longest_ms, self._pool(entity), hidden))
        if made:
            self._described = np.concatenate([self._described, made])
            columns = np.ascontiguousarray(self._described.T)
            self.limits, self.windows, self.longest = columns[:3]
            self.pool_of, self.hidden = columns[3].astype(np.intp), columns[4] > 0

    def _pool(self, entity: Entity) -> int:
        pool = entity.quota_type, entity.broker
        if pool not in self._pool_numbers:
            self._pool_numbers[pool] = len(self.pools)
            self.pools.append(pool)
        return self._pool_numbers[pool]


def _names(entity: Entity) -> Names:
    return entity.user, entity.client_id
