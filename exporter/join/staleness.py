"""
Which beans count.

A bean is not a rule: it stays for up to an hour after more specific rules, or the removal of
all rules, have moved its clients elsewhere, and then counts them twice. Since Kafka 4.1
(KAFKA-19282) the rules in force alone decide under which tags a client is measured, so that a bean
with other tags is stale. An older broker also remembers rules removed since its start; there a
bean in use can look stale, and is kept only while it rises (``Staleness``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from quotascope.metrics import QuotaType

from ..limits import Limits
from ..mapping import Meaning
from ..snapshot import Entity, Floats, Layout, Place, place_of
from ..snapshot.layout import TYPES, Rows
from .limiting import NO_RULES, alike
from .placing import Placed

_SAMPLES: Final = np.array([2 if kind is QuotaType.CONTROLLER_MUTATION else 11 for kind in TYPES])
"""Of a rate, by quota type."""
_MOST_IDLE_RISE: Final = _SAMPLES / (_SAMPLES - 1) + 1e-9
"""
By how much a rate can rise without traffic, rounding included.

With S samples Kafka's ``Rate`` divides by S - 1 to S windows, depending on the age of
the oldest.
"""
_LINGER_SECONDS: Final = 60.0
"""How long a throttle stays in Kafka's averages: 2 x 30 s."""


class Standing(IntEnum):
    """Whether clients are measured under the tags of a bean, by the rules in force."""

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

    Such a bean counts when its rate or throttle rose since the previous collection under the same rules, or was seen to do so
    within the last minute. Under other rules it was used rightly, and its last traffic is no sign that it still is.
    """

    def __init__(self) -> None:
        self._layout = Layout(())
        self._rules: Limits | None = None
        self._standings: NDArray[np.int8] = np.empty(0, np.int8)
        self._suspects: Rows = np.empty(0, np.intp)
        """The rows that are not simply in use."""
        self._last: tuple[Floats, Floats] = np.empty(0), np.empty(0)
        """Usage and throttle time at the previous collection in Kafka's units, 0 for what was not there."""
        self.read_under: dict[str, Limits | None] = {}
        """By node the rules at the previous collection."""
        self._rose = RecentRows()

    def stale(self, placed: Placed, values: Floats, leads: Mapping[str, bool | None], at: float) -> NDArray[np.bool_]:
        """By row whether it was read but does not count at ``at`` (Unix time in seconds), with ``leads`` of the nodes read: also mutations of a node that does not lead."""
        self._follow(placed, at)
        layout = placed.layout
        stale = np.zeros(len(layout), np.bool_)
        mutations = layout.of_type(QuotaType.CONTROLLER_MUTATION)
        behind = np.array([leads.get(node) is False for node in layout.nodes], np.bool_)
        stale[mutations] = behind[layout.node_numbers[mutations]]
        stale &= placed.read
        suspects = self._suspects[placed.read[self._suspects]]
        if suspects.size:
            self._judge(suspects, stale, placed, values, at)
        self.read_under.update(dict.fromkeys(leads, placed.rules))
        return stale

    def _follow(self, placed: Placed, at: float) -> None:
        layout, last = placed.layout, self._layout
        if layout is not last or placed.rules is not self._rules:
            standings = layout.carry(self._standings, last, -1).copy()
            if placed.rules is not self._rules:
                standings[:] = -1
            for row in np.flatnonzero(standings < 0).tolist():
                standings[row] = standing_of(layout.entities[row], placed.rules)
            usage, throttle = (layout.carry(each, last, 0.0) for each in self._last)
            self._last = usage.copy(), throttle.copy()
            self._standings, self._layout, self._rules = standings, layout, placed.rules
            self._suspects = np.flatnonzero(standings != Standing.IN_USE)
        self._rose.follow(layout, at)

    def _judge(self, suspects: Rows, stale: NDArray[np.bool_], placed: Placed, values: Floats, at: float) -> None:
        """Find out which of the suspects are stale."""
        layout = placed.layout
        nowhere = np.full(len(layout), -1)  # the NaN at the end
        now = [
            values[placed.places.get(meaning, nowhere)[suspects]] for meaning in (Meaning.USAGE, Meaning.THROTTLE_TIME)
        ]
        before = [each[suspects] for each in self._last]
        for each, last in zip(now, self._last, strict=True):
            last[suspects] = np.fmax(each, 0.0)
        forwarded = (self._standings[suspects] == Standing.FORWARDED) & np.isfinite(now[1])
        judged = ~forwarded & ~stale[suspects]
        rises = now[0] > before[0] * _MOST_IDLE_RISE[layout.types[suspects]]
        rises |= now[1] > before[1]  # both are False for NaN
        under = [self.read_under.get(node) for node in layout.nodes]
        comparable = np.array([alike(then, placed.rules) for then in under], np.bool_)
        comparable = comparable[layout.node_numbers[suspects]]
        self._rose.drop(suspects[judged & ~comparable])
        self._rose.note(suspects[judged & comparable & rises], at)
        stale[suspects] |= judged & ~self._rose.among(suspects)


class RecentRows:
    """
    When each entity was last seen in some state, for a minute: by row while it is in the layout, and by name when it left.

    An entity that leaves and comes back in time, as after a change of its beans, is as recent as before.
    """

    def __init__(self) -> None:
        self._layout = Layout(())
        self._seen: Floats = np.empty(0)
        """Unix time in seconds, -inf for never."""
        self._left: dict[Place, float] = {}

    def follow(self, layout: Layout, at: float) -> None:
        """Take another layout over, and drop what is too long ago at ``at``."""
        if layout is not self._layout:
            last, rows = self._layout, layout.rows_in(self._layout)
            gone = self._seen.copy()
            gone[rows[rows >= 0]] = -np.inf
            for row in np.flatnonzero(gone > -np.inf).tolist():
                self._left[place_of(last.entities[row])] = float(gone[row])
            self._seen = layout.carry(self._seen, last, -np.inf).copy()
            for row in np.flatnonzero(rows < 0).tolist() if self._left else ():
                name = place_of(layout.entities[row])
                self._seen[row] = self._left.pop(name, -np.inf)
            self._layout = layout
        seen = np.flatnonzero(self._seen > -np.inf)
        self._seen[seen[np.abs(at - self._seen[seen]) > _LINGER_SECONDS]] = -np.inf
        self._left = {name: seen for name, seen in self._left.items() if abs(at - seen) <= _LINGER_SECONDS}

    def note(self, rows: Rows, at: float) -> None:
        """See the entities of these rows now."""
        self._seen[rows] = at

    def drop(self, rows: Rows) -> None:
        """Never have seen the entities of these rows."""
        self._seen[rows] = -np.inf

    def among(self, rows: Rows) -> NDArray[np.bool_]:
        """Which of these rows were seen."""
        return self._seen[rows] > -np.inf

    def seen(self) -> tuple[bytes, tuple[Place, ...]]:
        """What is equal as long as the same rows of a layout were seen, and the same entities of those that left."""
        return (self._seen > -np.inf).tobytes(), tuple(self._left)

    def clients(self) -> Iterator[tuple[str, str]]:
        """User and client-id of each entity that was seen, also of those that left."""
        for row in np.flatnonzero(self._seen > -np.inf).tolist():
            entity: Entity = self._layout.entities[row]
            yield entity.user, entity.client_id
        for *_, user, client_id in self._left:
            yield user, client_id


def standing_of(entity: Entity, limits: Limits | None) -> Standing:
    """Whether an entity's bean is in use by the rules; without known rules it is."""
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
    Which nodes lead the KRaft quorum; None where that is unknown.

    A former leader keeps its mutation beans for an hour, and a broker has some of its own from
    auto-created topics; only the leader's describe the quota. What a node reports of itself
    (``ActiveControllerCount``) is fresher than what the Admin API said at the last refresh. During
    an election two nodes may both think they lead, and both count. ``leader`` is the one of the Admin API.
    """
    if any(reported.values()):
        return {node: bool(own) for node, own in reported.items()}
    if leader is None:
        return dict(reported)
    return {node: node == leader if own is None else own for node, own in reported.items()}
