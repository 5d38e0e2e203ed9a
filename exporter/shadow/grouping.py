"""
Groups the entities that brokers measure into the entities of other rules than those in force.

The usage of such an entity is a sum of measured usages, or it is unknown.
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
"""User and client-id of a request or of a metric's tags; an absent tag is empty."""
Pool: TypeAlias = tuple[QuotaType, str]
"""Key of entities that are counted together: a quota type on a broker."""

_UNLIMITED: Final = -1
"""Mark of a row that no rule of the shadow limits, whichever requests are in it."""
_DIVIDED: Final = -2
"""Mark of a row with requests that the shadow would count under several entities."""
_NEW: Final = -3
"""Mark of a row that came with the present layout."""
_LEFT_OUT: Final = -4
"""Mark of a row of a custom quota callback, or of a broker on which the rules in force do not decide."""
_MOST_EXAMINED: Final = 1000
"""Most divided rows that are examined for one entity; if there are more, the entity counts as unknown."""
_USER, _CLIENT_ID = 0, 1


class Completions:
    """
    Sample requests that may be measured under tags of which one is absent.

    They stand for all such requests as far as the rules of ``tables`` distinguish them. The names for the absent tag
    are:

    - each name that a rule pairs with the present tag;
    - one name of each set of names with the same rules of their own;
    - a name that no rule has.
    """

    def __init__(self, *tables: RuleTable) -> None:
        self._name_without_rule = unnamed(*tables)
        self._paired = defaultdict[tuple[int, str], set[str]](set)
        """Names in the other place of rules for a pair, by place (user or client-id) and name."""
        # rules that have a name, and no name or a default in the other place
        rules_by_name = defaultdict[tuple[int, str], set[object]](set)
        for table_number, table in enumerate(tables):
            for entity in table:
                user, client_id = entity.user, entity.client_id
                for place, name, other_name in (_USER, user, client_id), (_CLIENT_ID, client_id, user):
                    if isinstance(name, str) and isinstance(other_name, str):
                        self._paired[place, name].add(other_name)
                    elif isinstance(name, str):
                        rules_by_name[place, name].add((table_number, other_name))
        self._alike: tuple[list[list[str]], list[list[str]]] = [], []
        """Users, then client-ids, in lists of names whose rules differ in nothing but the bounds."""
        for place in (_USER, _CLIENT_ID):
            names_by_rules = defaultdict[frozenset[object], list[str]](list)
            for (place_of_name, name), rules in rules_by_name.items():
                if place_of_name == place:
                    names_by_rules[frozenset(rules)].append(name)
            self._alike[place].extend(names_by_rules.values())

    def requests(self, tags: Names) -> Iterator[Names]:
        """Yield the sample requests for tags of which one is absent."""
        user, client_id = tags
        if user:
            for name in self._names_beside(_USER, user):
                yield user, name
            yield user, ""
        else:
            for name in self._names_beside(_CLIENT_ID, client_id):
                yield name, client_id

    def _names_beside(self, place: int, name: str) -> Iterator[str]:
        """Yield the names for the other place beside a name."""
        paired = self._paired.get((place, name), set())
        yield from paired
        other_place = 1 - place
        for names in self._alike[other_place]:
            # the first of them that was not yielded above stands for all
            yield from islice((candidate for candidate in names if candidate not in paired), 1)
        yield self._name_without_rule


class Grouping:
    """
    Groups the rows of successive layouts by the entities of a shadow, while no rule changes.

    Each row is resolved once; `move_to` resolves the new rows of a layout. Entities have lasting numbers, and the
    attributes "by number" are in that order.

    Args:
        rules: The shadow's rules, by quota type.
        limits: The rules in force, and the settings of the brokers.
        windows: The windows of brokers with unknown settings.
        shows: Function that returns whether an entity of a user and a client-id may be shown; None if that is unknown.
        overruled: Brokers on which the rules in force do not decide. Their rows are left out.

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
        # the rules in force
        self.enforced = {kind: limits.rules.get(kind, NO_RULES) for kind in QuotaType}
        self.rules = rules
        self._shadow_limits = Limits(rules=rules, nodes=limits.nodes, read_at=0.0)
        self._windows, self._shows, self._releases = windows, shows, limits.releases
        self._completions = {kind: Completions(self.enforced[kind], table) for kind, table in rules.items()}
        # Tags under the shadow, or the mark of the row, by quota type and measured tags. A quota type is expensive to
        # hash, so it is no part of the inner keys.
        self._tags_or_mark = {kind: dict[Names, Names | int]() for kind in QuotaType}
        self._numbers = {kind: dict[tuple[str, Names], int]() for kind in QuotaType}
        """Numbers of entities by quota type, and by broker and tags."""
        self._number_of_row = np.empty(0, np.intp)
        """The number of the entity of each row of the layout, or the mark of the row."""
        self._constants: Floats = np.empty((4, 0))
        """Values of each entity that do not change, in rows: limit, window, longest throttle, and whether hidden."""
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
        """Mask by number of the entities that must not be shown one by one."""
        self.pools: list[Pool] = []
        """The pools of the layout: each quota type on each node."""
        self.pool_of: Rows = self._number_of_row
        """Places in ``pools`` by number, -1 for an entity without a row in this layout."""
        self.members: Rows = self._number_of_row
        """The rows of the layout that belong to an entity."""
        self.of_members: Rows = self._number_of_row
        """The number of the entity of each member."""
        self.in_force: Floats = self._constants[0]
        """The limit in force of each member, infinite without a limit."""
        self.sums: Floats = self._constants[0]
        """Sums by number of the limits in force of the entity's rows."""
        self.kept: Mask = self.hidden
        """Mask by number of the measured entities whose limit stays, so that the broker already enforces it."""
        self.raised: Mask = self.hidden
        """Mask by number of the measured entities whose limit is higher than the one in force."""
        self.freed: Rows = self._number_of_row
        """Rows that no rule of the shadow limits, and that the rules in force may limit."""
        self.freed_pools: Rows = self._number_of_row
        """The pool of each freed row."""
        self._has_same_names: Mask = self.hidden
        """Mask of the rows whose entity has the names of the row."""
        self.divided: Rows = self._number_of_row
        """The pool of each divided row."""
        self.unclear: Mask = self.hidden
        """Mask by number of the entities that may have requests in a divided row."""

    @property
    def crowded(self) -> bool:
        """Return whether most of the entities have no row any more."""
        return len(self.entities) > 2 * len(self.members) + 1000

    def move_to(self, layout: Layout) -> None:
        """Carry the entities of rows over to another layout under the same rules, and find those of new rows."""
        if layout is self.layout:
            return
        numbers = layout.carry(self._number_of_row, self.layout, _NEW).copy()
        new_rows = np.flatnonzero(numbers == _NEW)
        numbers[new_rows] = [self._number(entity) for entity in layout.entities[new_rows]]
        same_names = layout.carry(self._has_same_names, self.layout, fill=False).copy()
        same_names[new_rows] = [
            # a mark instead of a number is below 0
            number >= 0 and _names(self.entities[number]) == _names(entity)
            for number, entity in zip(numbers[new_rows].tolist(), layout.entities[new_rows], strict=True)
        ]
        self.layout, self._number_of_row, self._has_same_names = layout, fixed(numbers), fixed(same_names)
        # the new rows may have added entities at the end
        new_constants = [self._constants_of(entity) for entity in self.entities[len(self.limits) :]]
        self._constants = np.hstack([self._constants, np.array(new_constants, np.float64).reshape(-1, 4).T])
        self.limits, self.windows, self.longest, hidden = self._constants
        self.hidden = hidden > 0
        self.pools = [(kind, node) for kind in TYPES for node in layout.nodes]
        self.members = np.flatnonzero(numbers >= 0)
        self.of_members = numbers[self.members]
        pools = layout.types.astype(np.intp) * len(layout.nodes) + layout.node_numbers  # of each row, in `self.pools`
        self.pool_of = np.full(len(self.entities), -1)
        self.pool_of[self.of_members] = pools[self.members]
        self.in_force = np.nan_to_num(layout.limits[self.members], nan=inf, posinf=inf)
        count = len(self.entities)
        # entities of the shadow that are measured as such: by one row, under the same names
        is_measured = np.bincount(self.of_members[same_names[self.members]], minlength=count) == 1
        is_measured &= np.bincount(self.of_members, minlength=count) == 1
        self.kept = np.zeros(count, np.bool_)
        self.kept[self.of_members] = self.in_force == self.limits[self.of_members]
        self.kept &= is_measured
        self.sums = np.bincount(self.of_members, self.in_force, count).astype(np.float64)
        self.raised = is_measured & (self.sums < self.limits)
        self.freed = np.flatnonzero((numbers == _UNLIMITED) & ~np.isnan(layout.limits))
        self.freed_pools = pools[self.freed]
        self.divided = pools[numbers == _DIVIDED]
        self.unclear = np.zeros(len(self.entities), np.bool_)
        divided_names = defaultdict[int, list[Names]](list)
        for pool, entity in zip(self.divided.tolist(), layout.entities[numbers == _DIVIDED], strict=True):
            divided_names[pool].append(_names(entity))
        for number in np.flatnonzero(np.isin(self.pool_of, list(divided_names))).tolist():
            self.unclear[number] = self._may_be_in(divided_names[self.pool_of[number]], self.entities[number])

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
        """Return the number of the shadow's entity for the row of a measured entity, or the mark of the row."""
        kind, names = entity.quota_type, _names(entity)
        if entity.tags is not None or entity.broker in self._overruled:
            return _LEFT_OUT
        if not self.rules[kind].enabled:
            return _UNLIMITED
        tags_by_names, numbers = self._tags_or_mark[kind], self._numbers[kind]
        tags = tags_by_names.get(names)
        if tags is None:
            tags = tags_by_names[names] = self._tags(kind, names)
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
        """Return the tags of a row's requests under the shadow; a mark if they have several, or no limit."""
        rules, enforced = self.rules[kind], self.enforced[kind]
        if all(names):
            tags = rules.metric_tags(*names)
            return _UNLIMITED if rules.bound_of(*tags) is None else tags
        # the sample requests that the rules in force measure in this row; others have tags of their own
        requests = [
            request for request in self._completions[kind].requests(names) if enforced.metric_tags(*request) == names
        ]
        tags_of_requests = {rules.metric_tags(*request) for request in requests}
        if tags_of_requests and all(rules.bound_of(*tags) is None for tags in tags_of_requests):
            return _UNLIMITED
        return names if tags_of_requests == {names} else _DIVIDED

    def _may_be_in(self, divided: Sequence[Names], entity: Entity) -> bool:
        """Return whether requests of an entity may be in a divided row of its pool, by the names of these rows."""
        kind, tags = entity.quota_type, _names(entity)
        if all(tags):
            return False  # its requests are all measured under one set of tags
        if len(divided) > _MOST_EXAMINED:
            return True
        rules, enforced = self.rules[kind], self.enforced[kind]
        user, client_id = tags
        for names in divided:
            # a row of all users can have requests of this user, and a row of a user requests of this client-id
            requests: Iterable[Names] = ()
            row_user, row_client_id = names
            if names == tags:
                requests = self._completions[kind].requests(names)
            elif bool(row_user) != bool(user):
                requests = [(row_user or user, row_client_id or client_id)]
            for request in requests:
                if enforced.metric_tags(*request) == names and rules.metric_tags(*request) == tags:
                    return True
        return False


def _names(entity: Entity) -> Names:
    """Return the user and client-id of an entity."""
    return entity.user, entity.client_id
