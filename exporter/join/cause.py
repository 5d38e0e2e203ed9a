"""
Which quota a throttle comes from.

Every throttle that Kafka counts in group Produce, Fetch or ControllerMutation is of that quota.
Group Request is ambiguous under KRaft: a broker that forwards a request to the controller throttles its
client by the response's throttle time, and counts that as a request throttle, even when the
controller refused the request over its mutation quota. These rules distinguish them:

1. A request quota never throttles for longer than one window (``ClientRequestQuotaManager``:
   ``quota.window.size.seconds``), so an average above it holds a throttle by mutations. This is proof.
2. An entity that was seen at its request limit within the last minute is throttled by that.
3. An entity without a request limit cannot exceed one. What is left is a mutation quota that may apply to its
   clients. Where no rule does, the throttle lingers from a rule that was removed: which one is unknown.
   (A request limit removed less than a minute before this exporter started is the exception.)
4. An entity below its request limit, while within the last minute a mutation bucket of the same user or client was
   in debt. This is evidence, not proof: between two collections both may have been otherwise.
5. An entity is throttled by its own quota if its clients are under no mutation quota, or made no controller mutation within
   the last minute according to the active controller's buckets.

Where none of these holds, the cause is unknown. A bucket that shares neither user nor client-id with the entity is
no evidence: a mutation quota for client-ids does not identify their users. It only makes rule 5 fail.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from quotascope.metrics import QuotaType, RuleTable
from quotascope.metrics.entities import Name

from ..limits import Limits
from ..snapshot import CAUSES, Columns, Entity, Layout, ThrottleCause
from ..snapshot.layout import Rows, fixed
from .limiting import NO_RULES
from .staleness import RecentRows


class Causes:
    """Finds causes, and remembers for a minute what they are inferred from."""

    def __init__(self) -> None:
        self._mutating = RecentRows()
        self._in_debt = RecentRows()
        self._at_limit = RecentRows()
        self._rules: RuleTable = NO_RULES
        self._ruled = self._debtors = self._mutators = _Clients(())
        self._evidence: tuple[object, ...] = ()
        self._found: NDArray[np.int8] = np.empty(0, np.int8)
        """By row what was inferred of this evidence, -1 where nothing yet."""

    def find(self, read: Columns, limits: Limits | None, at: float, *, controller_read: bool) -> Columns:
        """
        What was read of all nodes at a Unix time in seconds, with the cause of every throttled entity.

        ``controller_read``: the active controller is among the nodes, so that a client without a bucket is known to have made
        no controller mutations.
        """
        self._remember(read, at)
        layout, throttle = read.layout, read.throttle_time
        causes = np.zeros(len(layout), np.int8)
        causes[np.flatnonzero(throttle[layout.own] > 0)] = CAUSES.index(ThrottleCause.OWN)
        requests = layout.of_type(QuotaType.REQUEST)
        throttled = np.flatnonzero(causes[requests]) + requests.start
        settings = {} if limits is None else limits.nodes
        windows = np.array(
            [settings[node].quota_window_seconds if node in settings else np.inf for node in layout.nodes]
        )
        proven = throttle[throttled] > windows[layout.node_numbers[throttled]]
        causes[throttled[proven]] = CAUSES.index(ThrottleCause.CONTROLLER_MUTATION)
        unclear = throttled[~proven & ~self._at_limit.among(throttled)]
        if unclear.size:
            causes[unclear] = self._inferred(layout, unclear, limits, controller_read=controller_read)
        return replace(read, causes=fixed(causes))

    def _inferred(
        self, layout: Layout, rows: Rows, limits: Limits | None, *, controller_read: bool
    ) -> NDArray[np.int8]:
        """The causes by rules 3 to 5; each row is looked at once as long as the evidence is the same."""
        ruled: _Clients | None = None
        if limits is not None:
            rules = limits.rules.get(QuotaType.CONTROLLER_MUTATION, NO_RULES)
            if rules is not self._rules:
                names = ((_literal(r.user), _literal(r.client_id)) for r in rules)
                self._rules, self._ruled = rules, _Clients(names)
            ruled = self._ruled
        seen = self._in_debt.seen(), self._mutating.seen()
        evidence = layout, ruled, controller_read, seen
        if evidence != self._evidence:
            self._evidence = evidence
            self._debtors = _Clients(self._in_debt.clients())
            self._mutators = _Clients(self._mutating.clients())
            self._found = np.full(len(layout), -1, np.int8)
        for row in rows[self._found[rows] < 0].tolist():
            entity = layout.entities[row]
            if self._debtors.share_a_name(entity):
                cause = ThrottleCause.CONTROLLER_MUTATION
            elif ruled is not None and not ruled.overlap(entity):
                cause = ThrottleCause.UNKNOWN if entity.limit is None else ThrottleCause.OWN
            elif ruled is not None and entity.limit is None:
                cause = ThrottleCause.CONTROLLER_MUTATION
            elif controller_read and not self._mutators.overlap(entity):
                cause = ThrottleCause.OWN
            else:
                cause = ThrottleCause.UNKNOWN
            self._found[row] = CAUSES.index(cause)
        return self._found[rows]

    def _remember(self, read: Columns, at: float) -> None:
        layout = read.layout
        for recent in (self._mutating, self._in_debt, self._at_limit):
            recent.follow(layout, at)
        mutations = layout.of_type(QuotaType.CONTROLLER_MUTATION)
        usage, in_debt = read.usage[mutations], read.tokens[mutations] < 0
        # The rate lingers as long as throttles do: both are kept in two samples of 30 s.
        mutating = in_debt | np.isnan(usage) | (usage > 0)
        self._in_debt.note(np.flatnonzero(in_debt) + mutations.start, at)
        self._mutating.note(np.flatnonzero(mutating) + mutations.start, at)
        requests = layout.of_type(QuotaType.REQUEST)
        full = np.flatnonzero(read.used[requests] >= 1)
        self._at_limit.note(full + requests.start, at)


class _Clients:
    """Clients by user and client-id, an empty one for all, with look-ups that take no longer when they are many."""

    def __init__(self, names: Iterable[tuple[str, str]]) -> None:
        # None is the place of a name that a look-up leaves open.
        self._index = {pair for user, client_id in names for pair in product({user, None}, {client_id, None})}

    def overlap(self, entity: Entity) -> bool:
        """Whether some may be the entity's clients: equal in each name that both have."""
        pairs = product(_fitting(entity.user), _fitting(entity.client_id))
        return not self._index.isdisjoint(pairs)

    def share_a_name(self, entity: Entity) -> bool:
        """Whether some may be the entity's clients, and have its user or client-id in their own tags."""
        user, client_id = entity.user, entity.client_id
        by_user = product((user,) if user else (), _fitting(client_id))
        by_client_id = product(_fitting(user), (client_id,) if client_id else ())
        return not self._index.isdisjoint((*by_user, *by_client_id))


def _fitting(name: str) -> tuple[str | None, ...]:
    return ("", name) if name else (None,)


def _literal(name: Name | None) -> str:
    return name if isinstance(name, str) else ""
