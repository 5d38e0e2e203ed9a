"""Usage joined with limits: from tables and rules to one snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from ..expiry import Expiring
from ..limits import Limits
from ..mapping import BeanTable
from ..snapshot import Layout, LimitsHealth, Snapshot, SourceRead
from .cause import Causes
from .placing import Placing
from .staleness import Staleness, active_controllers
from .usage import NodeNumbers, NodeUsages, UsageReader

_ENTITIES_SECONDS: Final = 300.0
"""Time that a node which is not read keeps its entities and last numbers, which are large and soon made again."""
FEW: Final = 2000
"""Columns and entities that are placed on the event loop: some hundredths of a second."""
_NODE_SECONDS: Final = 3600.0
"""Time that a node which is not read keeps its totals, which must not go back."""


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
        self._reader = UsageReader(placed, placed.is_read, placed.layout)
        self._with_entities = Expiring[str, None](_ENTITIES_SECONDS)
        self._with_totals = Expiring[str, None](_NODE_SECONDS)

    def layout(self, tables: Sequence[BeanTable], limits: Limits | None) -> Layout:
        """Return the layout of the next snapshot of these tables, one table for each node."""
        return self._placing.place(tables, limits).layout

    def is_long(self, tables: Sequence[BeanTable], limits: Limits | None) -> bool:
        """Return whether finding the rows of these tables would hold an event loop for long."""
        return self._placing.work(tables, limits) > FEW

    def snapshot(
        self,
        reads: Sequence[SourceRead],
        limits: Limits | None,
        limits_health: LimitsHealth,
        taken_at: float,
        boot_seconds: float | None = None,
    ) -> Snapshot:
        """
        Return the state of the cluster at ``taken_at`` (Unix time in seconds).

        ``reads`` have one table for each node at most.

        What is remembered is forgotten by ``boot_seconds``, which no one sets; by ``taken_at`` where it is None.
        """
        now_seconds = taken_at if boot_seconds is None else boot_seconds
        answered = [(source_read.table, source_read.asked_at) for source_read in reads if source_read.table is not None]
        tables, asked_at = [table for table, _ in answered], [time for _, time in answered]
        placed = self._placing.place(tables, limits)
        arrays = [np.asarray(table.values) for table in tables]
        values = np.concatenate([*arrays, [np.nan]])
        nodes = list(map(NodeNumbers, placed.nodes, arrays, (table.coverage for table in tables), asked_at))
        leads = active_controllers(
            {numbers.node.node_id: numbers.leads for numbers in nodes}, limits.active_controller if limits else None
        )
        stale = self._staleness.stale(placed, values, leads, now_seconds)
        counted, reader = placed.is_read & ~stale, self._reader
        if reader.placed is not placed or not np.array_equal(counted, reader.counted):
            self._reader = UsageReader(placed, counted, reader.layout)
        columns = self._causes.find(self._reader.read(values), placed.rules, now_seconds, leads)
        usages = self._nodes.of(nodes, limits, self._reader, columns, stale, leads, now_seconds)
        self._forget_nodes(leads, now_seconds)
        return Snapshot(
            taken_at=taken_at,
            boot_seconds=boot_seconds,
            columns=columns,
            callbacks=placed.callbacks,
            nodes=usages,
            sources=tuple(source_read.health for source_read in reads),
            limits=limits,
            limits_health=limits_health,
        )

    def _forget_nodes(self, node_ids: Iterable[str], now_seconds: float) -> None:
        """Drop what is kept of nodes that were not read for long: in some clusters they get new ids again and again."""
        for node_id in node_ids:
            self._with_entities.see(node_id, None, now_seconds)
            self._with_totals.see(node_id, None, now_seconds)
        for node_id in self._with_entities.expire(now_seconds):
            self._placing.forget(node_id)
            self._staleness.read_under.pop(node_id, None)
        for node_id in self._with_totals.expire(now_seconds):
            self._nodes.sums.pop(node_id, None)
