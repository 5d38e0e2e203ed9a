"""
Adds up what the entities of each team use, over all nodes and before entities are folded for the number of series.

Which team an entity is of, and which rows are one entity, is found once for each row that comes: a scrape in which no
entity comes or leaves costs a few sums over arrays.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quotascope.metrics.catalog.teams import UNDECIDED, UNOWNED, Team
from quotascope.metrics.kafka.entities import QuotaType
from quotascope.quotas.team_finder import NOT_DECIDED, NOT_OWNED, TeamFinder

from ..names import real_name
from ..snapshot import CAUSES, Columns, Floats, Layout, Snapshot, ThrottleCause
from ..snapshot.layout import TYPES, fixed
from ..snapshot.teams import TeamSums

_NEW: Final = -9
"""In place of the number of a team: the row came with this layout."""
_LAST: Final = {NOT_OWNED: -2, NOT_DECIDED: -1}
"""Places of what stands for no team and for an unknown one, from the end of the names."""
_REFERS: Final = CAUSES.index(ThrottleCause.CONTROLLER_MUTATION)
FEW: Final = 500
"""Entities whose teams are found on the event loop, which takes about 10 ms with a thousand teams."""
_Ints = NDArray[np.intp]
_Numbers: TypeAlias = dict[tuple[str, str], int]
"""Numbers of teams by user and client-id."""


class TeamIndex:
    """
    The team of each row of a layout, and the rows that are one entity.

    Args:
        teams: In their order.

    """

    def __init__(self, teams: Sequence[Team]) -> None:
        self._finder = TeamFinder(teams, real_name)
        self.names = (*(team.name for team in teams), UNOWNED, UNDECIDED)
        """Names by number."""
        self._layout = Layout(())
        self.of_row: _Ints = np.empty(0, np.intp)
        """By row of the last layout: the number of its team."""
        self._hashes: NDArray[np.int64] = np.empty(0, np.int64)
        self.begins: NDArray[np.bool_] = np.empty(0, np.bool_)
        """By row of Kafka's own quotas: True for the first row of an entity and quota type."""
        self.entities: Floats = np.empty(0)
        """By number of a team: its users and client-ids."""
        self._known: _Numbers = {}
        """Numbers that were looked up for the next layout."""

    async def look_up(self, layout: Layout) -> None:
        """Find the teams of a layout that ``follow`` will take over; of more than ``FEW`` new rows in a thread."""
        fresh = np.flatnonzero(layout.carry(self.of_row, self._layout, _NEW) == _NEW)
        if fresh.size > FEW:
            self._known = await asyncio.to_thread(self._numbers, layout, fresh)

    def _numbers(self, layout: Layout, rows: _Ints) -> _Numbers:
        """Return the numbers of these rows by name."""
        names = dict.fromkeys((entity.user, entity.client_id) for entity in layout.entities[rows])
        return {name: self._finder.number(*name) for name in names}

    def follow(self, layout: Layout) -> None:
        """Take over the rows of another layout; nothing happens for the same one."""
        if layout is self._layout:
            return
        of_row = layout.carry(self.of_row, self._layout, _NEW).copy()
        hashes = layout.carry(self._hashes, self._layout, 0).copy()
        fresh = np.flatnonzero(of_row == _NEW)
        numbers, self._known = self._known, {}
        for row, entity in zip(fresh.tolist(), layout.entities[fresh], strict=True):
            name = entity.user, entity.client_id
            number = numbers.get(name)
            if number is None:
                number = numbers[name] = self._finder.number(*name)
            of_row[row] = number if number >= 0 else len(self.names) + _LAST[number]
            hashes[row] = hash(name)
        self._layout, self.of_row, self._hashes = layout, of_row, hashes
        own = layout.own
        types, names = layout.types[own], hashes[own]
        self.begins = np.ones(len(names), np.bool_)
        # rows of an entity are together
        self.begins[1:] = (types[1:] != types[:-1]) | (names[1:] != names[:-1])
        _, firsts = np.unique(names, return_index=True)
        self.entities = fixed(np.bincount(of_row[own][firsts], minlength=len(self.names)).astype(np.float64))


class TeamAdder:
    """
    Adds up each snapshot by team.

    Args:
        teams: In their order.

    """

    def __init__(self, teams: Sequence[Team]) -> None:
        self._teams = tuple(teams)
        self._index = TeamIndex(teams)
        self._budgets = {
            kind: fixed(np.array([*(team.budgets.get(kind, np.nan) for team in teams), np.nan, np.nan]))
            for kind in TYPES
        }
        self._limits: tuple[Layout, int | None, dict[QuotaType, Floats], dict[QuotaType, Floats]] | None = None
        """The last layout and number of brokers, and what followed from both."""

    async def look_up(self, layout: Layout) -> None:
        """Find the teams of the rows that the next snapshot has, beside the event loop if that takes long."""
        await self._index.look_up(layout)

    def of(self, joined: Snapshot) -> TeamSums:
        """Return the sums of a snapshot with all entities; to be called for each, in their order."""
        columns = joined.columns
        index, layout = self._index, columns.layout
        index.follow(layout)
        brokers = joined.enforcers
        if self._limits is None or self._limits[0] is not layout or self._limits[1] != brokers:
            self._limits = layout, brokers, *self._allowed(layout, brokers)
        _, _, allowed, unlimited = self._limits
        return TeamSums(
            teams=self._teams,
            names=index.names,
            usage={kind: self._sum(layout.of_type(kind), columns.usage) for kind in TYPES},
            usage_complete={kind: self._complete(layout.of_type(kind), columns.usage) for kind in TYPES},
            allowed=allowed,
            unlimited=unlimited,
            throttled={kind: self._throttled(layout.of_type(kind), columns) for kind in TYPES},
            throttled_complete={kind: self._complete(layout.of_type(kind), columns.throttle_time) for kind in TYPES},
            entities=index.entities,
            budgets=self._budgets,
        )

    def _sum(self, rows: slice, values: Floats) -> Floats:
        """Return the sum of the known values of some rows by team, NaN for a team without any."""
        teams, values = self._index.of_row[rows], values[rows]
        known = ~np.isnan(values)
        if not known.all():
            teams, values = teams[known], values[known]
        count = len(self._index.names)
        with np.errstate(over="ignore", invalid="ignore"):
            sums: Floats = np.bincount(teams, values, count).astype(np.float64, copy=False)
        sums[np.bincount(teams, minlength=count) == 0] = np.nan
        return fixed(sums)

    def _complete(self, rows: slice, values: Floats) -> NDArray[np.bool_]:
        """Return by team whether all values of some rows are known, and none are of an entity of an unknown team."""
        teams = self._index.of_row[rows]
        complete = np.ones(len(self._index.names), np.bool_)
        complete[teams[~np.isfinite(values[rows])]] = False
        undecided = len(complete) + _LAST[NOT_DECIDED]
        if np.any(teams == undecided):
            complete[:undecided] = False  # each may be theirs
        complete.flags.writeable = False
        return complete

    def _throttled(self, rows: slice, columns: Columns) -> Floats:
        """Return the number of entities by team that a node throttles by the quota of these rows; NaN if unknown."""
        teams, delays = self._index.of_row[rows], columns.throttle_time[rows]
        count = len(self._index.names)
        counts = np.zeros(count)
        throttled = np.flatnonzero((delays > 0) & (columns.causes[rows] != _REFERS))
        if throttled.size:
            entities = np.cumsum(self._index.begins[rows])[throttled]
            _, firsts = np.unique(entities, return_index=True)
            counts += np.bincount(teams[throttled[firsts]], minlength=count)
        known = ~np.isnan(delays)
        counts[np.bincount(teams if known.all() else teams[known], minlength=count) == 0] = np.nan
        return fixed(counts)

    def _allowed(self, layout: Layout, brokers: int | None) -> tuple[dict[QuotaType, Floats], dict[QuotaType, Floats]]:
        """Return the sums of limits on all brokers, and the numbers of entities without one, by team."""
        allowed, unlimited = {}, {}
        count = len(self._index.names)
        for kind in TYPES:
            rows = layout.of_type(kind)
            teams, limits, begins = self._index.of_row[rows], layout.limits[rows], self._index.begins[rows]
            enforcers = 1.0 if kind is QuotaType.CONTROLLER_MUTATION else np.nan if brokers is None else float(brokers)
            # NaN without one of the limits
            sums: Floats = np.bincount(teams[begins], enforcers * limits[begins], count).astype(np.float64, copy=False)
            # an entity may be under limits on one node, and under an unknown callback on another
            sums[teams[np.isnan(limits)]] = np.nan
            sums[np.bincount(teams, minlength=count) == 0] = np.nan
            allowed[kind] = fixed(sums)
            without_limit = begins & np.isnan(limits) & ~layout.limits_unknown[rows]
            unlimited[kind] = fixed(np.bincount(teams[without_limit], minlength=count).astype(np.float64))
        return allowed, unlimited
