"""
Finds the quota that a throttle comes from.

Every throttle that Kafka counts in group Produce, Fetch or ControllerMutation is of that quota.
Group Request is ambiguous under KRaft: a broker that forwards a request to the controller throttles its
client by the response's throttle time, and counts that as a request throttle, even when the
controller refused the request over its mutation quota. These rules distinguish them:

1. A request quota never throttles for longer than one window (``ClientRequestQuotaManager``:
   ``quota.window.size.seconds``), so an average above it holds a throttle by mutations. This is proof.
2. An entity that was seen at its request limit within the last minute is throttled by that limit.
3. An entity without a request limit cannot exceed one, so a mutation quota of its clients throttles it. If no rule of
   mutations applies to its clients, the throttle lingers from a rule that was removed, and the cause is unknown.
   (A request limit removed less than a minute before this exporter started is the exception.)
4. An entity below its request limit is throttled by a mutation quota if a mutation bucket of the same user or client
   was in debt within the last minute. This is evidence, not proof: both may have changed between two collections.
5. An entity is throttled by its own quota if its clients are under no mutation quota, or made no controller mutation
   within the last minute according to the active controller's buckets.

If no rule applies, the cause is unknown. A bucket that shares neither user nor client-id with the entity is no
evidence for rule 4, since a mutation quota for client-ids does not identify their users. It only makes rule 5 fail.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
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
    """Finds the causes of throttles, and keeps the evidence for them for a minute."""

    def __init__(self) -> None:
        self._mutating = RecentRows()
        self._in_debt = RecentRows()
        self._at_limit = RecentRows()
        self._deciders = Deciders()
        self._mutation_table: RuleTable = NO_RULES
        self._ruled = self._debtors = self._mutators = _Clients(())
        """Clients with a mutation rule of the table, with a bucket in debt, and with controller mutations."""
        self._evidence: tuple[object, ...] = ()
        self._inferred: NDArray[np.int8] = np.empty(0, np.int8)
        """The cause of each row as inferred from this evidence, -1 before it is inferred."""

    def find(
        self, columns: Columns, rules: RulesInForce, now_seconds: float, leads: Mapping[str, bool | None]
    ) -> Columns:
        """
        Return the columns with the causes of throttles, and with throttle times of mutation buckets.

        Args:
            columns: The columns of all nodes.
            rules: The configured quotas.
            now_seconds: Steady time of the collection.
            leads: Whether a node is the active controller, by node; None if unknown. If one is, a client without a
                bucket is known to have made no controller mutations.

        """
        self._remember(columns, now_seconds)
        layout, throttle_time = columns.layout, columns.throttle_time
        causes = np.zeros(len(layout), np.int8)
        causes[np.flatnonzero(throttle_time[layout.own] > 0)] = CAUSES.index(ThrottleCause.OWN)
        requests = layout.of_type(QuotaType.REQUEST)
        throttled = np.flatnonzero(causes[requests]) + requests.start
        # rule 1; a window that is not known proves nothing
        settings = {} if rules.limits is None else rules.limits.nodes
        windows = np.array(
            [settings[node].quota_window_seconds if node in settings else np.inf for node in layout.nodes]
        )
        is_proven = throttle_time[throttled] > windows[layout.node_numbers[throttled]]
        causes[throttled[is_proven]] = CAUSES.index(ThrottleCause.CONTROLLER_MUTATION)
        # rule 2 leaves the cause OWN; rules 3 to 5 decide on the others
        unclear = throttled[~is_proven & ~self._at_limit.among(throttled)]
        table = self._mutation_rules(rules, leads)
        if unclear.size:
            controller_is_read = any(leads.values())
            causes[unclear] = self._infer(
                layout, unclear, table, rules.overruled, controller_is_read=controller_is_read
            )
        mutations = layout.of_type(QuotaType.CONTROLLER_MUTATION)
        buckets = np.arange(mutations.start, mutations.stop)
        in_debt = buckets[self._in_debt.among(buckets)]
        return self._deciders.join(replace(columns, causes=fixed(causes)), table, rules.overruled, in_debt)

    def _mutation_rules(self, rules: RulesInForce, leads: Mapping[str, bool | None]) -> RuleTable | None:
        """Return the rules of controller mutations; None if they are unknown, or a callback may overrule them."""
        controllers = {node for node, leading in leads.items() if leading}
        deciding_nodes = controllers or leads  # while the active controller is unknown, it may be any node
        if rules.limits is None or not rules.overruled.isdisjoint(deciding_nodes):
            return None
        return rules.limits.rules.get(QuotaType.CONTROLLER_MUTATION, NO_RULES)

    def _infer(
        self,
        layout: Layout,
        rows: Rows,
        table: RuleTable | None,
        overruled: AbstractSet[str],
        *,
        controller_is_read: bool,
    ) -> NDArray[np.int8]:
        """Return the causes of rows by rules 3 to 5. While the evidence is the same, a row is judged once."""
        if table is not None and table is not self._mutation_table:
            names = ((_literal(rule.user), _literal(rule.client_id)) for rule in table)
            self._mutation_table, self._ruled = table, _Clients(names)
        ruled_clients = None if table is None else self._ruled
        seen = self._in_debt.seen(), self._mutating.seen()
        evidence = layout, ruled_clients, overruled, controller_is_read, seen
        if evidence != self._evidence:
            self._evidence = evidence
            self._debtors = _Clients(self._in_debt.clients())
            self._mutators = _Clients(self._mutating.clients())
            self._inferred = np.full(len(layout), -1, np.int8)
        for row in rows[self._inferred[rows] < 0].tolist():
            entity = layout.entities[row]
            ruled = None if entity.broker in overruled else ruled_clients
            if self._debtors.share_a_name(entity):  # rule 4
                cause = ThrottleCause.CONTROLLER_MUTATION
            elif ruled is not None and not ruled.overlap(entity):  # rules 3 and 5: no mutation quota applies
                cause = ThrottleCause.UNKNOWN if entity.limit is None else ThrottleCause.OWN
            elif ruled is not None and entity.limit is None:  # rule 3
                cause = ThrottleCause.CONTROLLER_MUTATION
            elif controller_is_read and not self._mutators.overlap(entity):  # rule 5: no mutation
                cause = ThrottleCause.OWN
            else:
                cause = ThrottleCause.UNKNOWN
            self._inferred[row] = CAUSES.index(cause)
        return self._inferred[rows]

    def _remember(self, columns: Columns, now_seconds: float) -> None:
        """Note the buckets in debt, the buckets of clients with mutations, and the entities at their request limit."""
        layout = columns.layout
        for recent in (self._mutating, self._in_debt, self._at_limit):
            recent.move_to(layout, now_seconds)
        mutations = layout.of_type(QuotaType.CONTROLLER_MUTATION)
        usage, in_debt = columns.usage[mutations], columns.tokens[mutations] < 0
        # Kafka keeps the rate in two samples of 30 s as it keeps throttles, so both linger for the same time.
        is_mutating = in_debt | np.isnan(usage) | (usage > 0)
        self._in_debt.note(np.flatnonzero(in_debt) + mutations.start, now_seconds)
        self._mutating.note(np.flatnonzero(is_mutating) + mutations.start, now_seconds)
        requests = layout.of_type(QuotaType.REQUEST)
        at_limit = np.flatnonzero(columns.used[requests] >= 1)
        self._at_limit.note(at_limit + requests.start, now_seconds)


class _Clients:
    """
    A set of clients, whose look-ups take the same time however many there are.

    Args:
        names: User and client-id of each client; an empty name stands for all.

    """

    def __init__(self, names: Iterable[tuple[str, str]]) -> None:
        self._index = {pair for user, client_id in names for pair in indexed(user, client_id)}

    def overlap(self, entity: Entity) -> bool:
        """Return whether the entity may count a client of the set: each name that both have is the same."""
        return not self._index.isdisjoint(overlapping(entity))

    def share_a_name(self, entity: Entity) -> bool:
        """Return whether the entity may count a client of the set, and one name or more is the same."""
        return not self._index.isdisjoint(sharing(entity))


def _literal(name: Name | None) -> str:
    """Return the name in a rule; empty if the rule has none, or is for a default."""
    return name if isinstance(name, str) else ""
