"""
Decides which beans count.

A bean stays for up to an hour after its clients have moved to another bean, because there are more specific rules or
none any more. Then both beans would count them.

Since Kafka 4.2 (KAFKA-19282), the rules in force alone decide under which tags a client is measured. So a bean with
other tags is stale unless it rises. An older broker also remembers rules that were removed since its start. There a
bean with a rate above 0 is in use, whatever its tags, and the bean under which the rules would measure its clients is
stale while it shows 0. A broker that does not show its release counts as an older one, so that a client in use is
never hidden.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from quotascope.metrics.kafka.entities import QuotaType

from ..limits import Limits, version_of
from ..mapping import Meaning
from ..snapshot import Entity, Floats, Layout, Place, place_of
from ..snapshot.layout import TYPES, Rows
from .limiting import NO_RULES, RulesInForce
from .placing import Placed

_SAMPLES: Final = np.array([2 if kind is QuotaType.CONTROLLER_MUTATION else 11 for kind in TYPES])
"""Samples of a rate, by quota type."""
_MOST_IDLE_RISE: Final = _SAMPLES / (_SAMPLES - 1) + 1e-9
"""
Largest factor by which a rate rises without traffic, by quota type.

With S samples, Kafka's ``Rate`` divides by S - 1 to S windows, depending on the age of the oldest sample. The factor
allows for rounding.
"""
_LINGER_SECONDS: Final = 60.0
"""Time that a throttle stays in Kafka's averages: 2 x 30 s."""


class Standing(IntEnum):
    """The standing of a bean under the rules in force."""

    IN_USE = 0
    """Clients are measured under these tags."""
    FORWARDED = 1
    """
    The bean is in use while it has a throttle.

    Without request quotas, a broker records no usage in group Request. It still records the throttles that the
    controller's mutation quotas impose on the requests that it forwards.
    """
    STALE = 2
    """No client is measured under these tags."""


class Staleness:
    """
    Judges the beans that the rules do not explain, by their change since the previous collection.

    Such a bean counts if its rate or throttle time rose since the previous collection under the same rules, or within
    the last minute. If the rules have changed since, its traffic was of the earlier rules and is no evidence. On a node
    that remembers removed rules, it also counts while its rate is above 0.
    """

    def __init__(self) -> None:
        self._layout = Layout(())
        self._rules = RulesInForce()
        self._standings: NDArray[np.int8] = np.empty(0, np.int8)
        self._suspects: Rows = np.empty(0, np.intp)
        """The rows with another standing than in use."""
        self._last: tuple[Floats, Floats] = np.empty(0), np.empty(0)
        """Usage and throttle time at the previous collection in Kafka's units, 0 for a missing number."""
        self.read_under: dict[str, int | None] = {}
        """Version of the rules at the previous collection, by node; None if the rules did not decide."""
        self._rose = RecentRows()

    def stale(
        self, placed: Placed, values: Floats, leads: Mapping[str, bool | None], now_seconds: float
    ) -> NDArray[np.bool_]:
        """
        Return the mask of the rows that were read but do not count.

        Mutations of a node that is not the active controller do not count either.

        Args:
            placed: The rows and the places of their numbers.
            values: The numbers of all tables, and a NaN at the end.
            leads: Whether a node is the active controller, by node; None if unknown.
            now_seconds: Steady time of the collection.

        """
        self._move_to(placed, now_seconds)
        layout = placed.layout
        stale = np.zeros(len(layout), np.bool_)
        mutations = layout.of_type(QuotaType.CONTROLLER_MUTATION)
        is_follower = np.array([leads.get(node) is False for node in layout.nodes], np.bool_)
        stale[mutations] = is_follower[layout.node_numbers[mutations]]
        stale &= placed.is_read
        suspects = self._suspects[placed.is_read[self._suspects]]
        if suspects.size:
            self._judge(suspects, stale, placed, values, now_seconds)
        self.read_under.update((node, version_of(placed.rules.on(node))) for node in leads)
        return stale

    def _move_to(self, placed: Placed, now_seconds: float) -> None:
        """Carry the rows over to another layout, and find the standing of rows that are new or under other rules."""
        layout, previous = placed.layout, self._layout
        if layout is not previous or placed.rules is not self._rules:
            standings = layout.carry(self._standings, previous, -1).copy()  # -1 for a new row
            if placed.rules is not self._rules:
                standings[:] = -1
            for row in np.flatnonzero(standings < 0).tolist():
                entity = layout.entities[row]
                standings[row] = standing_of(entity, placed.rules.on(entity.broker))
            usage, throttle = (layout.carry(values, previous, 0.0) for values in self._last)
            self._last = usage.copy(), throttle.copy()
            self._standings, self._layout, self._rules = standings, layout, placed.rules
            self._suspects = np.flatnonzero(standings != Standing.IN_USE)
        self._rose.move_to(layout, now_seconds)

    def _judge(
        self, suspects: Rows, stale: NDArray[np.bool_], placed: Placed, values: Floats, now_seconds: float
    ) -> None:
        """
        Mark the suspects that are stale, and the idle beans whose clients a node measures under removed rules.

        Suspects are rows with another standing than in use. ``stale`` is the mask that is changed.
        """
        layout = placed.layout
        nowhere = np.full(len(layout), -1)  # the place of the NaN at the end
        all_usage = values[placed.places.get(Meaning.USAGE, nowhere)]
        usage = all_usage[suspects]
        throttle_time = values[placed.places.get(Meaning.THROTTLE_TIME, nowhere)[suspects]]
        last_usages, last_throttle_times = self._last
        last_usage, last_throttle_time = last_usages[suspects], last_throttle_times[suspects]
        # fmax makes 0 of NaN
        last_usages[suspects], last_throttle_times[suspects] = np.fmax(usage, 0.0), np.fmax(throttle_time, 0.0)
        # of beans that a throttle keeps in use
        is_forwarded = (self._standings[suspects] == Standing.FORWARDED) & np.isfinite(throttle_time)
        # of beans with a rate on a node that remembers removed rules; comparisons with NaN are False
        remembers = np.array([_remembers(placed.rules.on(node), node) for node in layout.nodes], np.bool_)
        is_busy = remembers[layout.node_numbers[suspects]] & ~stale[suspects] & (usage > 0)
        with np.errstate(over="ignore"):  # an agent may report any float; nothing rises above infinity
            rises = usage > last_usage * _MOST_IDLE_RISE[layout.types[suspects]]
        rises |= throttle_time > last_throttle_time
        has_same_rules = np.array(
            [self.read_under.get(node) == version_of(placed.rules.on(node)) for node in layout.nodes], np.bool_
        )
        is_comparable = has_same_rules[layout.node_numbers[suspects]]
        # the others count if they rose under the same rules within the last minute
        self._rose.drop(suspects[~is_forwarded & ~is_comparable])
        self._rose.note(suspects[~is_forwarded & is_comparable & rises], now_seconds)
        stale[suspects] |= ~is_forwarded & ~is_busy & ~self._rose.among(suspects)
        if is_busy.any():  # then the beans under which the rules would measure their clients do not count
            idle_rows = np.flatnonzero(placed.is_read & (all_usage == 0)).tolist()
            busy_clients = _BusyClients(layout.entities[suspects[is_busy]])
            stale[[row for row in idle_rows if busy_clients.include(layout.entities[row])]] = True


class RecentRows:
    """
    Remembers for a minute when an entity was last seen in some state.

    The time is kept by row while the entity is in the layout, and by name after the entity left. So an entity that
    leaves and comes back, as after a change of its beans, is as recent as before.
    """

    def __init__(self) -> None:
        self._layout = Layout(())
        self._seen: Floats = np.empty(0)
        """Steady time by row at which the entity was seen last, -inf for never."""
        self._left: dict[Place, float] = {}
        """The same time by name of the entities that left."""

    def move_to(self, layout: Layout, now_seconds: float) -> None:
        """Carry the times over to the rows of another layout, and forget entities that were last seen a minute ago."""
        if layout is not self._layout:
            previous, previous_rows = self._layout, layout.rows_in(self._layout)
            seen_of_leavers = self._seen.copy()
            seen_of_leavers[previous_rows[previous_rows >= 0]] = -np.inf  # these entities stay
            for row in np.flatnonzero(seen_of_leavers > -np.inf).tolist():
                self._left[place_of(previous.entities[row])] = float(seen_of_leavers[row])
            self._seen = layout.carry(self._seen, previous, -np.inf).copy()
            if self._left:
                for row in np.flatnonzero(previous_rows < 0).tolist():
                    self._seen[row] = self._left.pop(place_of(layout.entities[row]), -np.inf)
            self._layout = layout
        seen_rows = np.flatnonzero(self._seen > -np.inf)
        is_over = np.abs(now_seconds - self._seen[seen_rows]) > _LINGER_SECONDS
        self._seen[seen_rows[is_over]] = -np.inf
        self._left = {
            place: seen_at for place, seen_at in self._left.items() if abs(now_seconds - seen_at) <= _LINGER_SECONDS
        }

    def note(self, rows: Rows, now_seconds: float) -> None:
        """Note that the entities in ``rows`` are seen at ``now_seconds``."""
        self._seen[rows] = now_seconds

    def drop(self, rows: Rows) -> None:
        """Forget that the entities in ``rows`` were seen."""
        self._seen[rows] = -np.inf

    def among(self, rows: Rows) -> NDArray[np.bool_]:
        """Return whether the entity in each of ``rows`` was seen within the last minute."""
        return self._seen[rows] > -np.inf

    def seen(self) -> tuple[bytes, tuple[Place, ...]]:
        """Return a key that is equal as long as the same entities were seen, also entities that left."""
        return (self._seen > -np.inf).tobytes(), tuple(self._left)

    def clients(self) -> Iterator[tuple[str, str]]:
        """Yield user and client-id of the entities that were seen, also of entities that left."""
        for row in np.flatnonzero(self._seen > -np.inf).tolist():
            entity: Entity = self._layout.entities[row]
            yield entity.user, entity.client_id
        for *_, user, client_id in self._left:
            yield user, client_id


def _remembers(rules: Limits | None, node: str) -> bool:
    """Return whether a node is known to measure clients by removed rules, too."""
    return rules is not None and rules.remembers_removed_rules(node)


class _BusyClients:
    """
    The clients of busy beans: suspects with a rate, whose clients the rules would measure under other tags.

    A broker that remembers removed rules chooses the tags of clients without a rule. A client with a rule has the tags
    of its rule.
    """

    def __init__(self, busy: Iterable[Entity]) -> None:
        self._keys: set[tuple[QuotaType, str, str | None, str | None]] = set()
        """
        Quota type, node, user and client-id under which a busy client may be measured.

        None stands for a name that the busy bean lacks, and an empty name for one that the other tags leave out. A busy
        bean of user ``a`` alone has the keys ``(a, None)``, ``(a, "")`` and ``("", None)``.
        """
        for entity in busy:
            node = entity.quota_type, entity.broker
            user, client_id = entity.user or None, entity.client_id or None
            self._keys |= {(*node, user, client_id), (*node, user, ""), (*node, "", client_id)}

    def include(self, idle: Entity) -> bool:
        """
        Return whether the clients of an idle bean may be busy clients.

        They may be if the user or the client-id is of a busy bean, and the other name does not contradict it. Clients
        with a rule of their own never are.
        """
        if idle.tags is not None or idle.resolution is None or idle.resolution.entity is not None:
            return False
        node = idle.quota_type, idle.broker
        if idle.user and idle.client_id:  # a busy bean with one of these names and without the other
            return (*node, idle.user, None) in self._keys or (*node, None, idle.client_id) in self._keys
        return (*node, idle.user, idle.client_id) in self._keys


def standing_of(entity: Entity, limits: Limits | None) -> Standing:
    """Return the standing of an entity's bean under the rules; in use if they are unknown."""
    if limits is None or entity.tags is not None:
        return Standing.IN_USE
    rules = limits.rules.get(entity.quota_type, NO_RULES)
    if not rules.would_record(entity.user, entity.client_id):
        return Standing.STALE
    if rules.enabled:
        return Standing.IN_USE
    # without quotas of this type, its only numbers can be throttles of forwarded requests
    mutations = limits.rules.get(QuotaType.CONTROLLER_MUTATION, NO_RULES)
    forwarded = entity.quota_type is QuotaType.REQUEST and mutations.enabled
    return Standing.FORWARDED if forwarded else Standing.STALE


def active_controllers(reported: Mapping[str, bool | None], leader: str | None) -> dict[str, bool | None]:
    """
    Return whether a node is the active controller, by node; None if that is unknown.

    Only the mutation beans of the active controller describe the quota. A former one keeps its beans for an hour, and a
    broker has beans of auto-created topics. The report of a node about itself (``ActiveControllerCount``) is newer than
    the Admin API's at the last refresh. During an election two nodes may report that they lead, and both count.

    Args:
        reported: The reports of the nodes about themselves; None for no report.
        leader: The active controller by the Admin API; None if it is unknown.

    """
    if any(reported.values()):
        return {node: bool(leads) for node, leads in reported.items()}
    if leader is None:
        return dict(reported)
    return {node: (node == leader) if leads is None else leads for node, leads in reported.items()}
