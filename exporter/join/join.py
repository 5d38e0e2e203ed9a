"""Joins the tables of the sources with the configured limits to a snapshot."""

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
"""Time for which the entities of a node are kept when it is not read. They are large, and can be made again."""
FEW: Final = 2000
"""Most columns and entities that are placed on the event loop, which takes some hundredths of a second."""
_TOTALS_SECONDS: Final = 3600.0
"""Time for which the totals of a node are kept when it is not read, since they must not go back."""


class Join:
    """
    Joins the tables of the sources with the configured limits.

    It remembers for the next join where the numbers are in the tables, the entities that were in debt or rising
    lately, and the totals, which must not go back.
    """

    def __init__(self) -> None:
        self._placing = Placing()
        self._staleness = Staleness()
        self._causes = Causes()
        self._nodes = NodeUsages()
        placed = self._placing.place((), None)
        self._reader = UsageReader(placed, placed.is_read, placed.layout)
        self._with_entities = Expiring[str, None](_ENTITIES_SECONDS)
        self._with_totals = Expiring[str, None](_TOTALS_SECONDS)

    def layout(self, tables: Sequence[BeanTable], limits: Limits | None) -> Layout:
        """Return the layout that a snapshot of the tables will have. There is one table for each node."""
        return self._placing.place(tables, limits).layout

    def is_long(self, tables: Sequence[BeanTable], limits: Limits | None) -> bool:
        """Return whether `layout` would block an event loop for long."""
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
        Return the state of the cluster.

        Args:
            reads: The results of the sources, with one table for each node at most.
            limits: The configured limits; None while they are unknown.
            limits_health: The outcome of the last read of the limits.
            taken_at: Unix time of the snapshot in seconds.
            boot_seconds: Steady time of the snapshot, by which old facts are forgotten. None takes ``taken_at``.

        """
        now_seconds = taken_at if boot_seconds is None else boot_seconds
        answered = [(source_read.table, source_read.asked_at) for source_read in reads if source_read.table is not None]
        tables, asked_at = [table for table, _ in answered], [time for _, time in answered]
        placed = self._placing.place(tables, limits)
        arrays = [np.asarray(table.values) for table in tables]
        values = np.concatenate([*arrays, [np.nan]])  # the NaN is at place -1, for rows without a number
        nodes = list(map(NodeNumbers, placed.nodes, arrays, (table.coverage for table in tables), asked_at))
        leads = active_controllers(
            {numbers.node.node_id: numbers.leads for numbers in nodes}, limits.active_controller if limits else None
        )
        stale = self._staleness.stale(placed, values, leads, now_seconds)
        counted, reader = placed.is_read & ~stale, self._reader
        if reader.placed is not placed or not np.array_equal(counted, reader.counted):
            self._reader = UsageReader(placed, counted, reader.layout)
        columns = self._causes.find(self._reader.read(values), placed.rules, now_seconds, leads)
        usages = self._nodes.update(nodes, limits, self._reader, columns, stale, leads, now_seconds)
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
        """Forget nodes that were not read for long, since nodes get new ids again and again in some clusters."""
        for node_id in node_ids:
            self._with_entities.see(node_id, None, now_seconds)
            self._with_totals.see(node_id, None, now_seconds)
        for node_id in self._with_entities.expire(now_seconds):
            self._placing.forget(node_id)
            self._staleness.read_under.pop(node_id, None)
        for node_id in self._with_totals.expire(now_seconds):
            self._nodes.counters.pop(node_id, None)
