"""
The entities that the brokers' numbers make under other rules than those in force.

Sums of what is measured, or unknown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice
from math import inf
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quotascope.metrics.kafka.entities import QuotaType
from quotascope.metrics.kafka.release import NEWEST_RELEASE
from quotascope.metrics.kafka.rules import RuleTable
from quotascope.metrics.kafka.windows import WindowConfig
from quotascope.quotas import unnamed

from ..join.limiting import NO_RULES, limited
from ..limits import Limits
from ..snapshot import TYPES, Entity, Floats, Layout
from ..snapshot.layout import Rows, fixed

Mask: TypeAlias = NDArray[np.bool_]
Names: TypeAlias = tuple[str, str]
"""User and client-id: of a request, or of the tags of a metric, where "" is an absent one."""
Pool: TypeAlias = tuple[QuotaType, str]
"""Key of entities that are counted together: a quota type on a broker."""

_UNLIMITED: Final = -1
"""Mark of a row that no rule of the shadow limits, whichever requests are in it."""
_DIVIDED: Final = -2
"""Mark of a row with requests that the shadow would count under several entities."""
_NEW: Final = -3
_LEFT_OUT: Final = -4
"""Mark of a row of a custom quota callback, or of a broker on which the rules in force do not decide."""
_MOST_ASKED: Final = 1000
"""Most divided rows that are examined for one entity; if there are more, the entity counts as unknown."""


class Completions:
    """
    Requests that stand for all that may be measured under some tags, as far as two tables of rules distinguish them.

    An absent tag is completed by each name that a rule pairs with the other one, by a name of each kind of those that
    rules have alone, and by one that no rule has.
    """

    def __init__(self, *tables: RuleTable) -> None:
        self._other = unnamed(*tables)
        self._paired = defaultdict[tuple[int, str], set[str]](set)
        """
        Names that rules for a pair have beside a name, by its place (0 for a user, 1 for a client-id) and the name.
        """
        # By place and name: the rules for the name alone. Names with the same rules, but for the bounds, are of one
        # kind.
        alone = defaultdict[tuple[int, str], set[object]](set)
        for number, table in enumerate(tables):
            for entity in table:
                for place, name, other_name in (0, entity.user, entity.client_id), (1, entity.client_id, entity.user):
                    if isinstance(name, str) and isinstance(other_name, str):
                        self._paired[place, name].add(other_name)
                    elif isinstance(name, str):
                        alone[place, name].add((number, other_name))
        kinds = defaultdict[tuple[int, frozenset[object]], list[str]](list)
        for (place, name), rules in alone.items():
            kinds[place, frozenset(rules)].append(name)
        self._kinds = [
            [names for (place_of_kind, _), names in kinds.items() if place_of_kind == place] for place in (0, 1)
        ]

    def of(self, tags: Names) -> Iterator[Names]:
        """Yield the requests that may be measured under tags of which one is absent."""
        user, client_id = tags
        if user:
            yield from ((user, name) for name in (*self._names(0, user), ""))
        else:
            yield from ((name, client_id) for name in self._names(1, client_id))

    def _names(self, place: int, name: str) -> Iterator[str]:
        """Yield the names that may fill the absent place beside a name."""
        paired = self._paired.get((place, name), set())
        yield from paired
        for names in self._kinds[1 - place]:
            yield from islice((candidate for candidate in names if candidate not in paired), 1)
        yield self._other


class Grouping:
    """
    The entities that a shadow makes of the rows of one layout after the other, while no rule changes.

    The engine's tables resolve each row once; of another layout, only the new rows.

    Args:
        rules: The shadow's, by quota type.
        limits: The rules in force, and the settings of the brokers.
        windows: The windows of brokers whose settings are not known.
        overruled: Brokers on which the rules in force do not decide: what these measure is left out.
        shows: Function that decides whether an entity of a user and a client-id may be shown.

    """

    def __init__(
        self,
        rules: Mapping[QuotaType, RuleTable],
        limits: Limits,
        windows: WindowConfig,
        shows: Callable[[str, str], bool | None],
        overruled: AbstractSet[str] = frozenset(),
    ) -> None:
        self._overruled = overruled
        self.enforced = {kind: limits.rules.get(kind, NO_RULES) for kind in QuotaType}
        self.rules = rules
        self._shadow_limits = Limits(rules=rules, nodes=limits.nodes, read_at=0.0)
        self._windows, self._shows, self._releases = windows, shows, limits.releases
        self._completions = {kind: Completions(self.enforced[kind], table) for kind, table in rules.items()}
        # By quota type, which is expensive to hash, and by tags: the tags under the shadow, or the mark of a row.
        self._placed = {kind: dict[Names, Names | int]() for kind in QuotaType}
        self._numbers = {kind: dict[tuple[str, Names], int]() for kind in QuotaType}
        self._group = np.empty(0, np.intp)
        self._constants: Floats = np.empty((4, 0))
        self.layout = Layout(())
        self.entities: list[Entity] = []
        """Entities by number, as the shadow's rules make them, with its limits."""
        self.limits: Floats = self._constants[0]
        """Limits by number, in the unit of ``Entity.limit``."""
        self.windows: Floats = self._constants[1]
        """Windows by number, in ms: all samples of the broker together."""
        self.longest: Floats = self._constants[2]
        """Longest possible throttles by number, in ms."""
        self.hidden: Mask = np.empty(0, np.bool_)
        """For each number whether the entity must not be shown one by one."""
        self.pools: list[Pool] = []
        self.pool_of: Rows = self._group
        """For each number the place in ``pools``, -1 where the entity has no row in this layout."""
        self.members: Rows = self._group
        """The rows that entities are made of."""
        self.of_members: Rows = self._group
        """The number of the entity of each of ``members``."""
        self.in_force: Floats = self._constants[0]
        """The limit in force of each of ``members``, infinite where there is none."""
        self.sums: Floats = self._constants[0]
        """For each number the sum of the limits in force of the rows that make up the entity."""
        self.kept: Mask = self.hidden
        """
        For each number whether the entity is a measured one under the limit in force, so that the broker already does
        what it would do.
        """
        self.raised: Mask = self.hidden
        """For each number whether the entity is a measured one under a higher limit than the one in force."""
        self.freed: Rows = self._group
        """Rows that no rule of the shadow limits, and that the rules in force may limit."""
        self.freed_pools: Rows = self._group
        """The pool of each of ``freed``."""
        self._same: Mask = self.hidden
        """For each row whether its entity has the names of the row."""
        self.divided: Rows = self._group
        """The pool of each row that cannot be divided among entities."""
        self.unclear: Mask = self.hidden
        """For each number whether requests of the entity may be in a divided row."""

    @property
    def crowded(self) -> bool:
        """Return whether most of the entities have no row any more."""
        return len(self.entities) > 2 * len(self.members) + 1000

    def follow(self, layout: Layout) -> None:
        """Take the rows of another layout under the same rules."""
        if layout is self.layout:
            return
        group = layout.carry(self._group, self.layout, _NEW).copy()
        rows = np.flatnonzero(group == _NEW)
        group[rows] = [self._number(entity) for entity in layout.entities[rows]]
        same_names = layout.carry(self._same, self.layout, fill=False).copy()
        same_names[rows] = [
            number >= 0 and _names(self.entities[number]) == _names(entity)
            for number, entity in zip(group[rows].tolist(), layout.entities[rows], strict=True)
        ]
        self.layout, self._group, self._same = layout, fixed(group), fixed(same_names)
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
        self.in_force = np.nan_to_num(layout.limits[self.members], nan=inf, posinf=inf)
        count = len(self.entities)
        # entities that are measured as they are, alone and under the same names
        alone = np.bincount(self.of_members[same_names[self.members]], minlength=count) == 1
        alone &= np.bincount(self.of_members, minlength=count) == 1
        self.kept = np.zeros(count, np.bool_)
        self.kept[self.of_members] = self.in_force == self.limits[self.of_members]
        self.kept &= alone
        self.sums = np.bincount(self.of_members, self.in_force, count).astype(np.float64)
        self.raised = alone & (self.sums < self.limits)
        self.freed = np.flatnonzero((group == _UNLIMITED) & ~np.isnan(layout.limits))
        self.freed_pools = pools[self.freed]
        self.divided = pools[group == _DIVIDED]
        self.unclear = np.zeros(len(self.entities), np.bool_)
        divided_names = defaultdict[int, list[Names]](list)
        for pool, entity in zip(self.divided.tolist(), layout.entities[group == _DIVIDED], strict=True):
            divided_names[pool].append(_names(entity))
        for number in np.flatnonzero(np.isin(self.pool_of, list(divided_names))).tolist():
            self.unclear[number] = self._may_have_more(self.entities[number], divided_names[self.pool_of[number]])

    def _constants_of(self, entity: Entity) -> tuple[float, float, float, bool]:
        """
        Return the limit of an entity, its windows, its longest throttle, and whether it is hidden.

        The limit is infinite where the entity has none.
        """
        samples, window_ms = self._windows.samples, float(self._windows.window_ms)
        if (settings := self._shadow_limits.nodes.get(entity.broker)) is not None:
            samples, window_ms = settings.quota_samples, settings.quota_window_seconds * 1000
        release = self._releases.get(entity.broker)
        newest = NEWEST_RELEASE if release is None or release.newest is None else release.newest
        longest_ms: float = newest.longest_rate_ms
        if entity.quota_type is QuotaType.REQUEST:
            longest_ms = min(window_ms, longest_ms)
        limit = inf if entity.limit is None else entity.limit
        return limit, samples * window_ms, longest_ms, not self._shows(entity.user, entity.client_id)

    def _number(self, entity: Entity) -> int:
        """Return the number of the entity that a row belongs to, or the reason why it belongs to none."""
        kind, names = entity.quota_type, _names(entity)
        if entity.tags is not None or entity.broker in self._overruled:
            return _LEFT_OUT
        if not self.rules[kind].enabled:
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
            entity_of_shadow = Entity(broker=entity.broker, quota_type=kind, user=user, client_id=client_id)
            self.entities.append(limited(entity_of_shadow, self._shadow_limits))
        return number

    def _tags(self, kind: QuotaType, names: Names) -> Names | int:
        """
        Return the tags of all requests of a row under the shadow.

        Return a mark instead if none of them has a limit, or if they are divided.
        """
        rules, enforced = self.rules[kind], self.enforced[kind]
        if all(names):
            only = rules.metric_tags(*names)
            return _UNLIMITED if rules.bound_of(*only) is None else only
        requests = self._completions[kind].of(names)
        tags = {rules.metric_tags(*request) for request in requests if enforced.metric_tags(*request) == names}
        if tags and all(rules.bound_of(*tag) is None for tag in tags):
            return _UNLIMITED
        return names if tags == {names} else _DIVIDED

    def _may_have_more(self, entity: Entity, divided: Sequence[Names]) -> bool:
        """Return whether requests of an entity may be in one of these divided rows of its pool."""
        kind, tags = entity.quota_type, _names(entity)
        if all(tags):
            return False  # its requests are all measured under one set of tags
        if len(divided) > _MOST_ASKED:
            return True
        rules, enforced = self.rules[kind], self.enforced[kind]
        for names in divided:
            # a row of all users can have a part of this user, and a row of a user a part of this client-id
            requests: Iterable[Names] = ()
            if names == tags:
                requests = self._completions[kind].of(names)
            elif bool(names[0]) != bool(tags[0]):
                requests = [(names[0] or tags[0], names[1] or tags[1])]
            if any(
                enforced.metric_tags(*request) == names and rules.metric_tags(*request) == tags for request in requests
            ):
                return True
        return False


def _names(entity: Entity) -> Names:
    return entity.user, entity.client_id
