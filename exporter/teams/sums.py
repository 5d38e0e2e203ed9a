"""
Adds up what the entities of each team use, over all nodes and before entities are folded for the number of series.

Which team an entity is of, and which rows are one entity, is found once for each row that comes: a scrape in which no
entity comes or leaves costs a few sums over arrays.
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
from .index import UNDECIDED_PLACE, Ints, TeamIndex
from .limits import LimitSums

_REFERS: Final = CAUSES.index(ThrottleCause.CONTROLLER_MUTATION)
_Masks = NDArray[np.bool_]


class _Usage(NamedTuple):
    """Sums of the known values of some rows by team, and whether all of them are known."""

    total: Floats
    complete: _Masks
    by_node: Floats
    """Sums by team and by place of the node."""


class _Rows:
    """
    The rows of one quota type in a layout, and what follows from their teams and nodes alone.

    Args:
        index: The teams of the layout.
        layout: The layout.
        kind: The quota type.

    """

    def __init__(self, index: TeamIndex, layout: Layout, kind: QuotaType) -> None:
        self.rows = layout.of_type(kind)
        self.teams = index.of_row[self.rows]
        self.count = len(index.names)
        self._begins = index.begins[self.rows]
        self._nodes = layout.node_numbers[self.rows]
        self._node_count = len(layout.nodes)
        self.empty = np.bincount(self.teams, minlength=self.count) == 0
        """Mask of the teams without any of these rows."""
        self.undecided = bool(np.any(self.teams == self.count + UNDECIDED_PLACE))
        """True if one of the rows is of an unknown team."""

    @cached_property
    def cells(self) -> Ints:
        """The number of each row's pair of team and node."""
        return self.teams * self._node_count + self._nodes

    @cached_property
    def entities(self) -> Ints:
        """The number of each row's entity."""
        return np.cumsum(self._begins)

    @cached_property
    def all_known(self) -> _Masks:
        """Completeness of each team if all values are known."""
        return self.complete(np.ones(len(self.teams), np.bool_))

    def complete(self, known: _Masks) -> _Masks:
        """Return for each team whether all values are known, and no entity of an unknown team has any."""
        complete = np.ones(self.count, np.bool_)
        complete[self.teams[~known]] = False
        if self.undecided:
            complete[: self.count + UNDECIDED_PLACE] = False  # each of these entities may be the team's
        return fixed(complete)

    def by_node(self, cells: Ints, values: Floats) -> Floats:
        """Return sums by team and node."""
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

    def of(self, joined: Snapshot) -> TeamSums:
        """Return the sums of a snapshot with all entities; to be called for each, in their order."""
        columns, index = joined.columns, self._index
        if columns.layout is not self._layout:
            self._layout = columns.layout
            index.follow(columns.layout)
            self._rows = {kind: _Rows(index, columns.layout, kind) for kind in TYPES}
        count = 0 if joined.incomplete else joined.enforcers or 0
        brokers = joined.enforcing_brokers
        places = [place for place, node in enumerate(columns.layout.nodes) if node in brokers]
        bounds = self._limits.of(joined)
        usages = {kind: self._usage(kind, columns) for kind in TYPES}
        throttled = {kind: self._throttled(rows, columns) for kind, rows in self._rows.items()}
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
            fairness={
                kind: fixed(
                    np.where(usage.complete & bounds.located[kind], jain_index(usage.by_node[:, places], count), np.nan)
                )
                for kind, usage in usages.items()
            },
            unlimited=bounds.unlimited,
            throttled={kind: counts for kind, (counts, _) in throttled.items()},
            throttled_complete={kind: complete for kind, (_, complete) in throttled.items()},
            entities=index.entities,
            budgets=self._budgets,
        )

    def fresh(self, joined: Snapshot, sums: TeamSums) -> Mapping[QuotaType, Floats]:
        """
        Return the usage of the last snapshot by team, on nodes alone whose numbers are of this collection.

        Args:
            joined: the snapshot with all entities that `of` was last called with.
            sums: its sums, which have the numbers of all nodes.

        """
        old = {source.node_id for source in joined.old_sources}
        columns = joined.columns
        places = [place for place, node in enumerate(columns.layout.nodes) if node in old]
        if not places:
            return sums.usage
        usage = np.where(np.isin(columns.layout.node_numbers, places), np.nan, columns.usage)
        without = replace(columns, usage=fixed(usage))
        return {kind: self._usage(kind, without).total for kind in TYPES}

    def _usage(self, kind: QuotaType, columns: Columns) -> _Usage:
        """Return the sums of the known usage of a quota type by team, NaN for a team without any."""
        rows = self._rows[kind]
        values, cells, empty, complete = columns.usage[rows.rows], rows.cells, rows.empty, rows.all_known
        finite = np.isfinite(values)
        if not finite.all():
            complete = rows.complete(finite)
            known = ~np.isnan(values)
            cells, values = cells[known], values[known]
            empty = np.bincount(rows.teams[known], minlength=rows.count) == 0
        with np.errstate(over="ignore", invalid="ignore"):
            by_node = rows.by_node(cells, values)
            total = by_node.sum(axis=1)
        total[empty] = np.nan
        return _Usage(fixed(total), complete, by_node)

    @staticmethod
    def _throttled(rows: _Rows, columns: Columns) -> tuple[Floats, _Masks]:
        """
        Return for each team the number of entities that a node throttles by the quota of these rows; NaN if unknown.

        Return also for each team whether the throttles of all its entities are known.
        """
        delays = columns.throttle_time[rows.rows]
        counts, empty, complete = np.zeros(rows.count), rows.empty, rows.all_known
        throttled = np.flatnonzero((delays > 0) & (columns.causes[rows.rows] != _REFERS))
        if throttled.size:
            _, firsts = np.unique(rows.entities[throttled], return_index=True)
            counts += np.bincount(rows.teams[throttled[firsts]], minlength=rows.count)
        finite = np.isfinite(delays)
        if not finite.all():
            complete = rows.complete(finite)
            empty = np.bincount(rows.teams[~np.isnan(delays)], minlength=rows.count) == 0
        counts[empty] = np.nan
        return fixed(counts), complete
