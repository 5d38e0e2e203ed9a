"""Usage joined with limits: from tables and rules to one snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from ..expiry import Expiring
from ..limits import Limits
from ..snapshot import LimitsHealth, Snapshot, SourceRead
from .cause import Causes
from .placing import Placing
from .staleness import Staleness, active_controllers
from .usage import NodeNumbers, NodeUsages, UsageReader

_ENTITIES_SECONDS: Final = 300.0
"""How long a node that is not read keeps its entities and last numbers, which are large and soon made again."""
_NODE_SECONDS: Final = 3600.0
"""How long it keeps its totals, which must not go back."""


class Join:
    """
    Joins what the sources read with the configured limits.

    It remembers what the next join needs: where to find each number, what was in debt or rising a short
    while ago, and totals that must not go back.
    """

    def __init__(self) -> None:
        self._placing = Placing()
        self._staleness = Staleness()
        self._causes = Causes()
        self._nodes = NodeUsages()
        placed = self._placing.place((), None)
        self._reader = UsageReader(placed, placed.read, placed.layout)
        self._with_entities = Expiring[str, None](_ENTITIES_SECONDS)
        self._with_totals = Expiring[str, None](_NODE_SECONDS)

    def snapshot(
        self, reads: Sequence[SourceRead], limits: Limits | None, limits_health: LimitsHealth, taken_at: float
    ) -> Snapshot:
        """The state of the cluster at ``taken_at`` (Unix time in seconds), of ``reads`` with one table for each node at most."""
        tables = [read.table for read in reads if read.table is not None]
        placed = self._placing.place(tables, limits)
        each = [np.asarray(table.values) for table in tables]
        values = np.concatenate([*each, [np.nan]])
        nodes = list(map(NodeNumbers, placed.nodes, each))
        leads = active_controllers(
            {numbers.node.node_id: numbers.leads for numbers in nodes}, limits.active_controller if limits else None
        )
        stale = self._staleness.stale(placed, values, leads, taken_at)
        counted, last = placed.read & ~stale, self._reader
        if last.placed is not placed or not np.array_equal(counted, last.counted):
            self._reader = UsageReader(placed, counted, last.layout)
        shown = self._causes.find(
            self._reader.read(values), placed.rules, taken_at, controller_read=any(leads.values())
        )
        usages = self._nodes.of(nodes, limits, self._reader, shown, stale, leads)
        self._forget_nodes(leads, taken_at)
        return Snapshot(
            taken_at=taken_at,
            shown=shown,
            callbacks=placed.callbacks,
            nodes=usages,
            sources=tuple(read.health for read in reads),
            limits=limits,
            limits_health=limits_health,
        )

    def _forget_nodes(self, read: Iterable[str], at: float) -> None:
        """Drop what is kept of nodes that were not read for long: in some clusters they get new ids again and again."""
        for node_id in read:
            self._with_entities.see(node_id, None, at)
            self._with_totals.see(node_id, None, at)
        for node_id in self._with_entities.expire(at):
            self._placing.forget(node_id)
            self._staleness.read_under.pop(node_id, None)
        for node_id in self._with_totals.expire(at):
            self._nodes.sums.pop(node_id, None)
