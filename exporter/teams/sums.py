"""
Adds up what the entities of each team use, over all nodes and before entities are folded for the number of series.

The team and the entity of a row are found once, when the row is new. So a scrape in which no entity comes or leaves
costs a few sums over arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quotascope.metrics.catalog.teams import Team
from quotascope.metrics.kafka.entities import QuotaType

from ..snapshot import CAUSES, Columns, Floats, Layout, Snapshot, ThrottleCause
from ..snapshot.fairness import jain_index
from ..snapshot.layout import TYPES, fixed
from ..snapshot.teams import TeamSums
from .index import UNDECIDED_INDEX, Ints, TeamIndex
from .limits import LimitSums

_MUTATION_CAUSE: Final = CAUSES.index(ThrottleCause.CONTROLLER_MUTATION)
_Masks = NDArray[np.bool_]


class _Usage(NamedTuple):
    """The usage of one quota type by team."""

    total: Floats
    """Sums of the known values."""
    complete: _Masks
    """True if all values of the team are known."""
    by_node: Floats
    """Sums of the known values by team and by number of the node."""


class _Rows:
    """
    The rows of one quota type in a layout, with the values that depend on their teams and nodes alone.

    Args:
        index: The teams of the layout.
        layout: The layout.
        kind: The quota type.

    """

    def __init__(self, index: TeamIndex, layout: Layout, kind: QuotaType) -> None:
        self.rows = layout.of_type(kind)
        self.teams = index.team_of_row[self.rows]
        self.count = len(index.names)
        self._begins = index.begins[self.rows]
        self._nodes = layout.node_numbers[self.rows]
        self._node_count = len(layout.nodes)
        self.empty = np.bincount(self.teams, minlength=self.count) == 0
        """Mask of the teams without any of these rows."""
        self.undecided = bool(np.any(self.teams == self.count + UNDECIDED_INDEX))
        """True if one of the rows is of an unknown team."""

    @cached_property
    def cells(self) -> Ints:
        """The number of each row's pair of team and node: its place in the flat table of teams (rows) and nodes."""
        return self.teams * self._node_count + self._nodes

    @cached_property
    def entities(self) -> Ints:
        """The number of each row's entity."""
        return np.cumsum(self._begins)

    @cached_property
    def all_known(self) -> _Masks:
        """Mask of the complete teams if all values are known, as ``complete_teams`` returns it."""
        return self.complete_teams(np.ones(len(self.teams), np.bool_))

    def complete_teams(self, known: _Masks) -> _Masks:
        """
        Return the mask of the teams all of whose values are known, from the mask of the rows with a known value.

        No team is complete while a row is of an unknown team, since it may be of any team.
        """
        complete = np.ones(self.count, np.bool_)
        complete[self.teams[~known]] = False
        if self.undecided:
            complete[: self.count + UNDECIDED_INDEX] = False
        return fixed(complete)

    def sums_by_node(self, cells: Ints, values: Floats) -> Floats:
        """Return the sums of values by team and node, from the number of each value's pair of team and node."""
        sums = np.bincount(cells, values, self.count * self._node_count).astype(np.float64, copy=False)
        return sums.reshape(self.count, self._node_count)


class TeamAdder:
    """
    Adds up each snapshot by team.

    Args:
        teams: The teams, in order.

    """

    def __init__(self, teams: Sequence[Team]) -> None:
        self._teams = tuple(teams)
        self._index = TeamIndex(teams)
        self._limits = LimitSums(self._index)
        self._budgets = {
            kind: fixed(np.array([*(team.budgets.get(kind, np.nan) for team in teams), np.nan, np.nan]))
            for kind in TYPES
        }
        self._layout: Layout | None = None
        self._rows: dict[QuotaType, _Rows] = {}
        """Rows of the last layout, by quota type."""

    async def look_up(self, layout: Layout) -> None:
        """Find the teams of the next snapshot's rows, in a thread if that takes long."""
        await self._index.look_up(layout)

    def add_up(self, joined: Snapshot) -> TeamSums:
        """Return the sums of a snapshot with all measured entities. Call it for each snapshot, in their order."""
        columns, index = joined.columns, self._index
        if columns.layout is not self._layout:
            self._layout = columns.layout
            index.move_to(columns.layout)
            self._rows = {kind: _Rows(index, columns.layout, kind) for kind in TYPES}
        bounds = self._limits.update(joined)
        usages = {kind: self._usage(kind, columns) for kind in TYPES}
        throttled = {kind: self._throttled(rows, columns) for kind, rows in self._rows.items()}
        # the index of fairness of an incomplete snapshot is unknown: 0 brokers give NaN
        broker_count = 0 if joined.incomplete else joined.enforcers or 0
        brokers = joined.enforcing_brokers
        node_numbers = [number for number, node in enumerate(columns.layout.nodes) if node in brokers]
        fairness = {}
        for kind, usage in usages.items():
            jain = jain_index(usage.by_node[:, node_numbers], broker_count)
            fairness[kind] = fixed(np.where(usage.complete & bounds.located[kind], jain, np.nan))
        return TeamSums(
            teams=self._teams,
            names=index.names,
            usage={kind: usage.total for kind, usage in usages.items()},
            usage_complete={kind: usage.complete for kind, usage in usages.items()},
            allowed=bounds.allowed,
            allowed_known=bounds.allowed_known,
            allowed_complete=bounds.allowed_complete,
            stranded=bounds.stranded,
            stranded_complete=bounds.stranded_complete,
            fairness=fairness,
            unlimited=bounds.unlimited,
            throttled={kind: counts for kind, (counts, _) in throttled.items()},
            throttled_complete={kind: complete for kind, (_, complete) in throttled.items()},
            entities=index.entities,
            budgets=self._budgets,
        )

    def usage_on_fresh_nodes(self, joined: Snapshot, sums: TeamSums) -> Mapping[QuotaType, Floats]:
        """
        Return the usage by quota type and team, without the nodes that have old numbers.

        Args:
            joined: The snapshot that `add_up` was called with last.
            sums: Its sums over all nodes.

        """
        old_nodes = {source.node_id for source in joined.old_sources}
        columns = joined.columns
        old_numbers = [number for number, node in enumerate(columns.layout.nodes) if node in old_nodes]
        if not old_numbers:
            return sums.usage
        usage = np.where(np.isin(columns.layout.node_numbers, old_numbers), np.nan, columns.usage)
        fresh_columns = replace(columns, usage=fixed(usage))
        return {kind: self._usage(kind, fresh_columns).total for kind in TYPES}

    def _usage(self, kind: QuotaType, columns: Columns) -> _Usage:
        """Return the usage of a quota type by team; its total is NaN for a team without a known value."""
        rows = self._rows[kind]
        values, cells, empty, complete = columns.usage[rows.rows], rows.cells, rows.empty, rows.all_known
        finite = np.isfinite(values)
        if not finite.all():  # an infinite value is added up, but makes a team incomplete, too
            complete = rows.complete_teams(finite)
            known = ~np.isnan(values)
            cells, values = cells[known], values[known]
            empty = np.bincount(rows.teams[known], minlength=rows.count) == 0
        with np.errstate(over="ignore", invalid="ignore"):
            by_node = rows.sums_by_node(cells, values)
            total = by_node.sum(axis=1)
        total[empty] = np.nan
        return _Usage(fixed(total), complete, by_node)

    @staticmethod
    def _throttled(rows: _Rows, columns: Columns) -> tuple[Floats, _Masks]:
        """
        Return the number of throttled entities by team, NaN where it is unknown, and whether it is complete.

        It has the entities that the quota type of the rows throttles on some node, and is complete if the throttle
        times of all entities of the team are known.
        """
        throttle_times = columns.throttle_time[rows.rows]
        counts, empty, complete = np.zeros(rows.count), rows.empty, rows.all_known
        throttled = np.flatnonzero((throttle_times > 0) & (columns.causes[rows.rows] != _MUTATION_CAUSE))
        if throttled.size:
            # an entity that is throttled on several nodes counts once
            _, first_rows = np.unique(rows.entities[throttled], return_index=True)
            counts += np.bincount(rows.teams[throttled[first_rows]], minlength=rows.count)
        finite = np.isfinite(throttle_times)
        if not finite.all():
            complete = rows.complete_teams(finite)
            empty = np.bincount(rows.teams[~np.isnan(throttle_times)], minlength=rows.count) == 0
        counts[empty] = np.nan
        return fixed(counts), complete
