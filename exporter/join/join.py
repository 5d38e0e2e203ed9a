"""Usage joined with limits: from tables and rules to one snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from quotascope.metrics import QuotaType

from ..beans import BeanTable
from ..limits import Limits
from ..snapshot import (
    Layout,
    LimitsHealth,
    Snapshot,
    SourceHealth,
    SourceRead,
)
from ..snapshot.layout import TYPES
from .cause import Causes
from .node_usage import NodeNumbers, NodeUsages, disagreements
from .placing import Placed, Placing
from .shown import Shown
from .staleness import Staleness
from .standing import active_controllers

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
        self._shown: Shown | None = None
        self._read_at: dict[str, float] = {}

    def snapshot(
        self,
        reads: Sequence[SourceRead],
        limits: Limits | None,
        limits_health: LimitsHealth,
        taken_at: float,
    ) -> Snapshot:
        """The state of the cluster at ``taken_at`` (Unix time in seconds)."""
        sources, tables = _one_for_each_node(reads)
        placed = self._placing.place(tables, limits)
        each = [np.asarray(table.values) for table in tables]
        values = np.concatenate([*each, [np.nan]])
        nodes = list(map(NodeNumbers, placed.nodes, each))
        leads = active_controllers(
            {numbers.node.node_id: numbers.leads for numbers in nodes},
            limits.active_controller if limits else None,
        )
        aside = self._staleness.uncounted(placed, values, leads, taken_at)
        shown = self._shown = self._show(placed, placed.read & ~aside)
        read = self._causes.find(
            shown.read(values),
            placed.rules,
            taken_at,
            controller_read=any(leads.values()),
        )
        stale = _by_node_and_type(placed.layout, aside)
        differ = disagreements(shown, read) if placed.rules is not None else {}
        usages = tuple(
            self._nodes.of(
                numbers,
                limits,
                {
                    kind: stale.get((node_id, kind), 0)
                    for kind in _judged(placed, leads=leads[node_id] is not False)
                },
                differ.get(node_id),
            )
            for numbers, node_id in zip(nodes, leads, strict=True)
        )
        self._forget_nodes(list(leads), taken_at)
        return Snapshot(
            taken_at=taken_at,
            shown=read,
            callbacks=placed.callbacks,
            nodes=usages,
            sources=sources,
            limits=limits,
            limits_health=limits_health,
        )

    def _show(self, placed: Placed, counts: NDArray[np.bool_]) -> Shown:
        """What is shown, as it was as long as the tables have the same columns and the same entities count."""
        last = self._shown
        rows = None if counts.all() else np.flatnonzero(counts)
        if last is not None and last.placed is placed:
            if rows is None or last.rows is None:
                same = rows is last.rows
            else:
                same = np.array_equal(rows, last.rows)
            if same:
                return last
        return Shown(placed, rows, Layout(()) if last is None else last.layout)

    def _forget_nodes(self, read: Sequence[str], at: float) -> None:
        """Drop what is kept of nodes that were not read for long: in some clusters they get new ids again and again."""
        self._read_at.update(dict.fromkeys(read, at))
        for node_id, then in tuple(self._read_at.items()):
            if abs(at - then) > _ENTITIES_SECONDS:
                self._placing.forget(node_id)
                self._staleness.forget(node_id)
            if abs(at - then) > _NODE_SECONDS:
                del self._read_at[node_id]
                self._nodes.forget(node_id)


def _by_node_and_type(
    layout: Layout, rows: NDArray[np.bool_]
) -> dict[tuple[str, QuotaType], int]:
    """How many of some rows there are."""
    both = layout.node_numbers[rows] * len(TYPES) + layout.types[rows]
    found, counts = np.unique(both, return_counts=True)
    return {
        (layout.nodes[number // len(TYPES)], TYPES[number % len(TYPES)]): count
        for number, count in zip(found.tolist(), counts.tolist(), strict=True)
    }


def _judged(placed: Placed, *, leads: bool) -> Sequence[QuotaType]:
    """The quota types in which stale entities of a node are found."""
    if placed.rules is not None:
        return TYPES
    return () if leads else (QuotaType.CONTROLLER_MUTATION,)


def _one_for_each_node(
    reads: Sequence[SourceRead],
) -> tuple[tuple[SourceHealth, ...], list[BeanTable]]:
    """The tables, and how reading them went: of two sources that read the same node the second is left out."""
    by_node: dict[str, SourceHealth] = {}
    sources: list[SourceHealth] = []
    tables: list[BeanTable] = []
    for read in reads:
        health, table = read.health, read.table
        if table is not None:
            first = by_node.setdefault(table.node_id, health)
            if first is health:
                tables.append(table)
            else:
                health = replace(
                    health,
                    up=False,
                    error=f"reads node {table.node_id}, which source {first.name} reads already: "
                    "configure each node once, and check url and node_id",
                )
        sources.append(health)
    return tuple(sources), tables
