"""
The quota that a throttle comes from.

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
5. An entity is throttled by its own quota if its clients are under no mutation quota, or made no controller mutation
within
   the last minute according to the active controller's buckets.

Where none of these holds, the cause is unknown. A bucket that shares neither user nor client-id with the entity is
no evidence: a mutation quota for client-ids does not identify their users. It only makes rule 5 fail.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from quotascope.metrics.kafka.entities import Name, QuotaType
from quotascope.metrics.kafka.rules import RuleTable

from ..snapshot import CAUSES, Columns, Entity, Layout, ThrottleCause
from ..snapshot.layout import Rows, fixed
from .deciding import Deciders, indexed, overlapping, sharing
from .limiting import NO_RULES, RulesInForce
from .staleness import RecentRows


class Causes:
    """Finds causes, and remembers for a minute what they are inferred from."""

    def __init__(self) -> None:
        self._mutating = RecentRows()
        self._in_debt = RecentRows()
        self._at_limit = RecentRows()
        self._deciders = Deciders()
        self._rules: RuleTable = NO_RULES
        self._ruled = self._debtors = self._mutators = _Clients(())
        self._evidence: tuple[object, ...] = ()
        self._found: NDArray[np.int8] = np.empty(0, np.int8)
        """For each row the cause inferred from this evidence, -1 where there is none yet."""

    def find(
        self, columns: Columns, rules: RulesInForce, now_seconds: float, leads: Mapping[str, bool | None]
    ) -> Columns:
        """
        Return the columns of all nodes, with the cause of every throttled entity, and throttle times where they belong.

        Where ``leads`` has an active controller, a client without a bucket is known to have made no controller
        mutations.
        """
        self._remember(columns, now_seconds)
        layout, throttle = columns.layout, columns.throttle_time
        causes = np.zeros(len(layout), np.int8)
        causes[np.flatnonzero(throttle[layout.own] > 0)] = CAUSES.index(ThrottleCause.OWN)
        requests = layout.of_type(QuotaType.REQUEST)
        throttled = np.flatnonzero(causes[requests]) + requests.start
        settings = {} if rules.limits is None else rules.limits.nodes
        windows = np.array(
            [settings[node].quota_window_seconds if node in settings else np.inf for node in layout.nodes]
        )
        proven = throttle[throttled] > windows[layout.node_numbers[throttled]]
        causes[throttled[proven]] = CAUSES.index(ThrottleCause.CONTROLLER_MUTATION)
        unclear = throttled[~proven & ~self._at_limit.among(throttled)]
        if unclear.size:
            causes[unclear] = self._inferred(layout, unclear, rules, leads)
        mutations = layout.of_type(QuotaType.CONTROLLER_MUTATION)
        buckets = np.arange(mutations.start, mutations.stop)
        in_debt = buckets[self._in_debt.among(buckets)]
        table = self._mutation_rules(rules, leads)
        return self._deciders.join(replace(columns, causes=fixed(causes)), table, rules.overruled, in_debt)

    def _mutation_rules(self, rules: RulesInForce, leads: Mapping[str, bool | None]) -> RuleTable | None:
        """
        Return the rules of controller mutations.

        Return None where they are unknown, or may not decide on the active controller.
        """
        controllers = {node for node, leading in leads.items() if leading}
        if rules.limits is None or not rules.overruled.isdisjoint(controllers or leads):
            return None
        return rules.limits.rules.get(QuotaType.CONTROLLER_MUTATION, NO_RULES)

    def _inferred(
        self, layout: Layout, rows: Rows, rules: RulesInForce, leads: Mapping[str, bool | None]
    ) -> NDArray[np.int8]:
        """Return the causes by rules 3 to 5; a row is judged once for as long as the evidence is the same."""
        mutation_rules: _Clients | None = None
        table = self._mutation_rules(rules, leads)
        if table is not None:
            if table is not self._rules:
                names = ((_literal(rule.user), _literal(rule.client_id)) for rule in table)
                self._rules, self._ruled = table, _Clients(names)
            mutation_rules = self._ruled
        controller_read = any(leads.values())
        seen = self._in_debt.seen(), self._mutating.seen()
        evidence = layout, mutation_rules, rules.overruled, controller_read, seen
        if evidence != self._evidence:
            self._evidence = evidence
            self._debtors = _Clients(self._in_debt.clients())
            self._mutators = _Clients(self._mutating.clients())
            self._found = np.full(len(layout), -1, np.int8)
        for row in rows[self._found[rows] < 0].tolist():
            entity = layout.entities[row]
            ruled = None if entity.broker in rules.overruled else mutation_rules
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

    def _remember(self, columns: Columns, now_seconds: float) -> None:
        layout = columns.layout
        for recent in (self._mutating, self._in_debt, self._at_limit):
            recent.follow(layout, now_seconds)
        mutations = layout.of_type(QuotaType.CONTROLLER_MUTATION)
        usage, in_debt = columns.usage[mutations], columns.tokens[mutations] < 0
        # The rate lingers as long as throttles do: both are kept in two samples of 30 s.
        mutating = in_debt | np.isnan(usage) | (usage > 0)
        self._in_debt.note(np.flatnonzero(in_debt) + mutations.start, now_seconds)
        self._mutating.note(np.flatnonzero(mutating) + mutations.start, now_seconds)
        requests = layout.of_type(QuotaType.REQUEST)
        full = np.flatnonzero(columns.used[requests] >= 1)
        self._at_limit.note(full + requests.start, now_seconds)


class _Clients:
    """Clients by user and client-id, an empty one for all, with look-ups that take no longer when they are many."""

    def __init__(self, names: Iterable[tuple[str, str]]) -> None:
        self._index = {pair for user, client_id in names for pair in indexed(user, client_id)}

    def overlap(self, entity: Entity) -> bool:
        """Return whether some client may be one of the entity's: equal in each name that both have."""
        return not self._index.isdisjoint(overlapping(entity))

    def share_a_name(self, entity: Entity) -> bool:
        """Return whether some client may be one of the entity's, and has its user or client-id in its own tags."""
        return not self._index.isdisjoint(sharing(entity))


def _literal(name: Name | None) -> str:
    return name if isinstance(name, str) else ""
