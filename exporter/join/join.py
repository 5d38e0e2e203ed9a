"""Usage joined with limits: from tables and rules to one snapshot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from quotascope.metrics import QuotaType

from ..beans import BeanTable
from ..limits import Limits
from ..snapshot import (
    Columns,
    EntityUsage,
    LimitsHealth,
    NodeUsage,
    Snapshot,
    SourceHealth,
    SourceRead,
)
from .callbacks import callbacks
from .cause import Causes
from .entity_usage import usages
from .leadership import active_controllers
from .node_usage import NodeUsages, told_to_lead
from .plan import Numbers, Places
from .planner import Planner
from .staleness import Staleness
from .standing import Standing, deciding
from .told import disagreements

_PLAN_SECONDS: Final = 300.0
"""How long a node that is not read keeps its plan and last numbers, which are large and soon made anew."""
_NODE_SECONDS: Final = 3600.0
"""How long it keeps its totals, which must not go back."""


class Join:
    """
    Joins what the sources read with the configured limits.

    It remembers what the next join needs: where to find each number, what was in debt or rising a short
    while ago, and totals that must not go back.
    """

    def __init__(self) -> None:
        self._planners: dict[str, Planner] = {}
        self._before: dict[str, Numbers] = {}
        self._read_at: dict[str, float] = {}
        self._staleness = Staleness()
        self._causes = Causes()
        self._nodes = NodeUsages()

    def snapshot(
        self,
        reads: Sequence[SourceRead],
        limits: Limits | None,
        limits_health: LimitsHealth,
        taken_at: float,
    ) -> Snapshot:
        """The state of the cluster at ``taken_at`` (Unix time in seconds)."""
        sources, tables = _one_for_each_node(reads)
        seen = any(self._sees_callback(table) for table in tables)
        rules = deciding(limits, callback_seen=seen)
        read = [self._numbers(table, rules) for table in tables]
        leading = active_controllers(
            {numbers.plan.node_id: told_to_lead(numbers) for numbers in read},
            limits.active_controller if limits else None,
        )
        entities, nodes = self._joined(read, limits, leading, taken_at)
        self._causes.find(
            entities, rules, taken_at, controller_read=any(leading.values())
        )
        tagged, of_callbacks = callbacks(read)
        self._before.update({numbers.plan.node_id: numbers for numbers in read})
        self._read_at.update(
            dict.fromkeys((table.node_id for table in tables), taken_at)
        )
        self._forget_nodes(taken_at)
        return Snapshot(
            taken_at=taken_at,
            shown=Columns.of([*entities, *tagged]),
            callbacks=of_callbacks,
            nodes=tuple(nodes),
            sources=sources,
            limits=limits,
            limits_health=limits_health,
        )

    def _forget_nodes(self, at: float) -> None:
        """Drop what is kept of nodes that were not read for long: in some clusters they get new ids again and again."""
        for node_id in self._unread(_PLAN_SECONDS, at):
            self._planners.pop(node_id, None)
            self._before.pop(node_id, None)
        for node_id in self._unread(_NODE_SECONDS, at):
            del self._read_at[node_id]
            self._nodes.forget(node_id)

    def _unread(self, seconds: float, at: float) -> list[str]:
        read_at = self._read_at.items()
        return [node for node, then in read_at if abs(at - then) > seconds]

    def _sees_callback(self, table: BeanTable) -> bool:
        return self._planner(table).sees_callback(table.layout)

    def _numbers(self, table: BeanTable, rules: Limits | None) -> Numbers:
        return Numbers.read(self._planner(table).plan(table.layout, rules), table)

    def _planner(self, table: BeanTable) -> Planner:
        return self._planners.setdefault(table.node_id, Planner(table.node_id))

    def _joined(
        self,
        read: Sequence[Numbers],
        limits: Limits | None,
        leading: Mapping[str, bool | None],
        at: float,
    ) -> tuple[list[EntityUsage], list[NodeUsage]]:
        self._staleness.forget(at)
        entities: list[EntityUsage] = []
        nodes: list[NodeUsage] = []
        for numbers in read:
            leads = leading[numbers.plan.node_id] is not False
            counting, stale = self._sifted(numbers, leads=leads, at=at)
            own = list(usages(counting, numbers))
            entities += own
            node = self._nodes.of(numbers, limits, stale)
            told = disagreements(own) if numbers.plan.limits is not None else None
            nodes.append(replace(node, utilization_disagreements=told))
        return entities, nodes

    def _sifted(
        self, numbers: Numbers, *, leads: bool, at: float
    ) -> tuple[list[Places], Mapping[QuotaType, int]]:
        """The entities that count, and how many do not."""
        before = self._before_under_same_rules(numbers)
        counting: list[Places] = []
        stale: Counter[QuotaType] = Counter(_judged(numbers, leads=leads))
        in_use, mutation = Standing.IN_USE, QuotaType.CONTROLLER_MUTATION
        for places in numbers.plan.entities.values():
            if not leads and places.tags[0] is mutation:
                stale[mutation] += 1
            elif places.standing is in_use or self._staleness.in_use(
                places, numbers, before, at
            ):
                counting.append(places)
            else:
                stale[places.tags[0]] += 1
        return counting, dict(stale)

    def _before_under_same_rules(self, numbers: Numbers) -> Numbers | None:
        before = self._before.get(numbers.plan.node_id)
        if before is None or not before.plan.serves(numbers.plan.limits):
            return None
        return before


def _judged(numbers: Numbers, *, leads: bool) -> dict[QuotaType, int]:
    """A zero for each quota type in which stale entities can be told."""
    if numbers.plan.limits is not None:
        return dict.fromkeys(QuotaType, 0)
    return {} if leads else {QuotaType.CONTROLLER_MUTATION: 0}


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
                health = _doubled(health, first, table.node_id)
        sources.append(health)
    return tuple(sources), tables


def _doubled(health: SourceHealth, first: SourceHealth, node_id: str) -> SourceHealth:
    return replace(
        health,
        up=False,
        error=f"reads node {node_id}, which source {first.name} reads already: "
        "configure each node once, and check url and node_id",
    )
