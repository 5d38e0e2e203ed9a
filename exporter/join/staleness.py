"""
Decides which beans count.

A bean is not a rule: it stays for up to an hour after more specific rules, or the removal of
all rules, have moved its clients elsewhere, and then counts them twice. Since Kafka 4.2
(KAFKA-19282) the rules in force alone decide under which tags a client is measured, so that a bean
with other tags is stale unless it rises. An older broker also remembers rules removed since its
start: there a bean whose rate is above 0 is in use, whatever its tags, and the bean under which
the rules would measure its clients is stale while it shows 0. A broker that does not show its
release counts as an older one: a client in use is never hidden.
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
By how much a rate can rise without traffic, rounding included.

With S samples Kafka's ``Rate`` divides by S - 1 to S windows, depending on the age of
the oldest.
"""
_LINGER_SECONDS: Final = 60.0
"""Time that a throttle stays in Kafka's averages: 2 x 30 s."""


class Standing(IntEnum):
    """Standing of a bean: the reason why clients are, or are not, measured under its tags by the rules in force."""

    IN_USE = 0
    """Clients are measured under these tags."""
    FORWARDED = 1
    """
    In use while it carries a throttle. Without request quotas nothing is recorded in group
    Request, but a broker still keeps the throttles there that the controller's mutation quotas
    impose on the requests it forwards.
    """
    STALE = 2
    """No client is measured under these tags."""


class Staleness:
    """
    Judges beans that the rules do not explain, by what they were at the previous collection.

    Such a bean counts when its rate or throttle rose since the previous collection under the same rules, or was seen to
    do so within the last minute. Under other rules it was used rightly, and its last traffic is no sign that it still
    is. On a node that remembers removed rules it also counts while its rate is above 0.
    """

    def __init__(self) -> None:
        self._layout = Layout(())
        self._rules = RulesInForce()
        self._standings: NDArray[np.int8] = np.empty(0, np.int8)
        self._suspects: Rows = np.empty(0, np.intp)
        """The rows that are not simply in use."""
        self._last: tuple[Floats, Floats] = np.empty(0), np.empty(0)
        """Usage and throttle time at the previous collection in Kafka's units, 0 for what was not there."""
        self.read_under: dict[str, int | None] = {}
        """Version of the rules at the previous collection, by node; None where the rules did not decide."""
        self._rose = RecentRows()

    def stale(
        self, placed: Placed, values: Floats, leads: Mapping[str, bool | None], now_seconds: float
    ) -> NDArray[np.bool_]:
        """
        Return for each row whether it was read but does not count at ``now_seconds`` (Unix time).

        Mutations of a node that does not lead do not count either, by the ``leads`` of the nodes read.
        """
        self._follow(placed, now_seconds)
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

    def _follow(self, placed: Placed, now_seconds: float) -> None:
        layout, previous = placed.layout, self._layout
        if layout is not previous or placed.rules is not self._rules:
            standings = layout.carry(self._standings, previous, -1).copy()
            if placed.rules is not self._rules:
                standings[:] = -1
            for row in np.flatnonzero(standings < 0).tolist():
                entity = layout.entities[row]
                standings[row] = standing_of(entity, placed.rules.on(entity.broker))
            usage, throttle = (layout.carry(values, previous, 0.0) for values in self._last)
            self._last = usage.copy(), throttle.copy()
            self._standings, self._layout, self._rules = standings, layout, placed.rules
            self._suspects = np.flatnonzero(standings != Standing.IN_USE)
        self._rose.follow(layout, now_seconds)

    def _judge(
        self, suspects: Rows, stale: NDArray[np.bool_], placed: Placed, values: Floats, now_seconds: float
    ) -> None:
        """Find out which of the suspects are stale."""
        layout = placed.layout
        nowhere = np.full(len(layout), -1)  # the NaN at the end
        current = [
            values[placed.places.get(meaning, nowhere)[suspects]] for meaning in (Meaning.USAGE, Meaning.THROTTLE_TIME)
        ]
        previous = [kept_values[suspects] for kept_values in self._last]
        for numbers, kept_values in zip(current, self._last, strict=True):
            kept_values[suspects] = np.fmax(numbers, 0.0)
        forwarded = (self._standings[suspects] == Standing.FORWARDED) & np.isfinite(current[1])
        remembering = np.array([_remembers(placed.rules.on(node), node) for node in layout.nodes], np.bool_)
        busy = remembering[layout.node_numbers[suspects]] & ~stale[suspects] & (current[0] > 0)  # False for NaN
        with np.errstate(over="ignore"):  # an agent may report any float; nothing rises above infinity
            rises = current[0] > previous[0] * _MOST_IDLE_RISE[layout.types[suspects]]
        rises |= current[1] > previous[1]  # both are False for NaN
        comparable = np.array(
            [self.read_under.get(node) == version_of(placed.rules.on(node)) for node in layout.nodes], np.bool_
        )
        comparable = comparable[layout.node_numbers[suspects]]
        self._rose.drop(suspects[~forwarded & ~comparable])
        self._rose.note(suspects[~forwarded & comparable & rises], now_seconds)
        stale[suspects] |= ~forwarded & ~busy & ~self._rose.among(suspects)
        if busy.any():
            usage = values[placed.places.get(Meaning.USAGE, nowhere)]
            idle = np.flatnonzero(placed.is_read & (usage == 0)).tolist()
            moved = _Traffic(layout.entities[suspects[busy]])
            stale[[row for row in idle if moved.includes(layout.entities[row])]] = True


class RecentRows:
    """
    The time at which each entity was last seen in some state, for a minute.

    The time is kept by row while the entity is in the layout, and by name after it left. An entity that leaves and
    comes back in time, as after a change of its beans, is as recent as before.
    """

    def __init__(self) -> None:
        self._layout = Layout(())
        self._seen: Floats = np.empty(0)
        """Unix time in seconds, -inf for never."""
        self._left: dict[Place, float] = {}

    def follow(self, layout: Layout, now_seconds: float) -> None:
        """Move to another layout, and drop entities that were last seen too long before ``now_seconds``."""
        if layout is not self._layout:
            previous, rows = self._layout, layout.rows_in(self._layout)
            seen_before_leaving = self._seen.copy()
            seen_before_leaving[rows[rows >= 0]] = -np.inf
            for row in np.flatnonzero(seen_before_leaving > -np.inf).tolist():
                self._left[place_of(previous.entities[row])] = float(seen_before_leaving[row])
            self._seen = layout.carry(self._seen, previous, -np.inf).copy()
            for row in np.flatnonzero(rows < 0).tolist() if self._left else ():
                self._seen[row] = self._left.pop(place_of(layout.entities[row]), -np.inf)
            self._layout = layout
        seen = np.flatnonzero(self._seen > -np.inf)
        self._seen[seen[np.abs(now_seconds - self._seen[seen]) > _LINGER_SECONDS]] = -np.inf
        self._left = {
            place: seen_at for place, seen_at in self._left.items() if abs(now_seconds - seen_at) <= _LINGER_SECONDS
        }

    def note(self, rows: Rows, now_seconds: float) -> None:
        """Note that the entities of these rows are seen now."""
        self._seen[rows] = now_seconds

    def drop(self, rows: Rows) -> None:
        """Forget that the entities of these rows were seen."""
        self._seen[rows] = -np.inf

    def among(self, rows: Rows) -> NDArray[np.bool_]:
        """Return for each of these rows whether it was seen."""
        return self._seen[rows] > -np.inf

    def seen(self) -> tuple[bytes, tuple[Place, ...]]:
        """Return a key that stays equal as long as the same entities were seen, in the layout and beyond it."""
        return (self._seen > -np.inf).tobytes(), tuple(self._left)

    def clients(self) -> Iterator[tuple[str, str]]:
        """Yield user and client-id of each entity that was seen, also of those that left."""
        for row in np.flatnonzero(self._seen > -np.inf).tolist():
            entity: Entity = self._layout.entities[row]
            yield entity.user, entity.client_id
        for *_, user, client_id in self._left:
            yield user, client_id


def _remembers(rules: Limits | None, node: str) -> bool:
    return rules is not None and rules.remembers_removed_rules(node)


class _Traffic:
    """
    The clients that some busy beans measure, which the rules would measure under other tags.

    Such a broker measures only clients without a rule under tags of its own choice; a client of a rule has the tags of
    that rule.
    """

    def __init__(self, busy: Iterable[Entity]) -> None:
        self._seen: set[tuple[QuotaType, str, str | None, str | None]] = set()
        for entity in busy:
            node = entity.quota_type, entity.broker
            user, client_id = entity.user or None, entity.client_id or None
            self._seen |= {(*node, user, client_id), (*node, user, ""), (*node, "", client_id)}

    def includes(self, idle: Entity) -> bool:
        """
        Return whether the clients of an entity are among them.

        They are if their user or client-id is among them and the other name does not contradict it.
        """
        if idle.tags is not None or idle.resolution is None or idle.resolution.entity is not None:
            return False
        node = idle.quota_type, idle.broker
        if idle.user and idle.client_id:
            return (*node, idle.user, None) in self._seen or (*node, None, idle.client_id) in self._seen
        return (*node, idle.user, idle.client_id) in self._seen


def standing_of(entity: Entity, limits: Limits | None) -> Standing:
    """Return whether an entity's bean is in use by the rules; without known rules it is."""
    if limits is None or entity.tags is not None:
        return Standing.IN_USE
    rules = limits.rules.get(entity.quota_type, NO_RULES)
    if not rules.would_record(entity.user, entity.client_id):
        return Standing.STALE
    if rules.enabled:
        return Standing.IN_USE
    mutations = limits.rules.get(QuotaType.CONTROLLER_MUTATION, NO_RULES)
    forwarded = entity.quota_type is QuotaType.REQUEST and mutations.enabled
    return Standing.FORWARDED if forwarded else Standing.STALE


def active_controllers(reported: Mapping[str, bool | None], leader: str | None) -> dict[str, bool | None]:
    """
    Return for each node whether it leads the KRaft quorum; None where that is unknown.

    A former leader keeps its mutation beans for an hour, and a broker has some of its own from
    auto-created topics; only the leader's describe the quota. What a node reports of itself
    (``ActiveControllerCount``) is fresher than what the Admin API said at the last refresh. During
    an election two nodes may both think they lead, and both count. ``leader`` is the one of the Admin API.
    """
    if any(reported.values()):
        return {node: bool(leads) for node, leads in reported.items()}
    if leader is None:
        return dict(reported)
    return {node: node == leader if leads is None else leads for node, leads in reported.items()}
