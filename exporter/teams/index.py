"""Finds the team of each row of a layout, once for each new row."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from quotascope.metrics.catalog.teams import UNDECIDED, UNOWNED, Team
from quotascope.quotas.team_finder import NOT_DECIDED, NOT_OWNED, TeamFinder

from ..coverage import EntityKind
from ..names import real_name
from ..snapshot import Floats, Layout
from ..snapshot.layout import fixed

_NEW: Final = -9
"""Mark of a row that came with the present layout, instead of the number of a team."""
UNDECIDED_INDEX: Final = -1
"""Index of the name for an unknown team, counted from the end of the names."""
_INDEX_FROM_END: Final = {NOT_OWNED: -2, NOT_DECIDED: UNDECIDED_INDEX}
"""Indexes of the names for no team and for an unknown one, by the number that `TeamFinder` returns."""
FEW: Final = 500
"""Entities whose teams are found on the event loop, which takes about 10 ms with a thousand teams."""
KINDS: Final = tuple(EntityKind)
"""Kinds of entities by their number in ``TeamIndex.kinds``."""
_NO_KIND: Final = len(KINDS)
Ints = NDArray[np.intp]
_Numbers: TypeAlias = dict[tuple[str, str], int]
"""Numbers of teams, or `NOT_OWNED` or `NOT_DECIDED`, by user and client-id."""


class TeamIndex:
    """
    The team of each row of a layout, and the rows that are one entity.

    Args:
        teams: The teams, in order.

    """

    def __init__(self, teams: Sequence[Team]) -> None:
        self._finder = TeamFinder(teams, real_name)
        self.names = (*(team.name for team in teams), UNOWNED, UNDECIDED)
        """Names of the teams, by number."""
        self._layout = Layout(())
        self.team_of_row: Ints = np.empty(0, np.intp)
        """The number of the team of each row of the last layout."""
        self._hashes: NDArray[np.int64] = np.empty(0, np.int64)
        """The hash of the user and client-id of each row."""
        self.kinds: NDArray[np.int8] = np.empty(0, np.int8)
        """The number of the kind of each row in ``KINDS``; one more for a client that sends no client-id."""
        self.begins: NDArray[np.bool_] = np.empty(0, np.bool_)
        """Mask of the rows of Kafka's own quotas that are the first of an entity and quota type."""
        self.entities: Floats = np.empty(0)
        """Number of users and client-ids of each team, by the number of the team."""
        self._looked_up: _Numbers = {}
        """Numbers that were looked up for the next layout."""

    async def look_up(self, layout: Layout) -> None:
        """Find the teams for the next call of ``move_to``; in a thread, and only for more than ``FEW`` new rows."""
        new_rows = np.flatnonzero(layout.carry(self.team_of_row, self._layout, _NEW) == _NEW)
        if new_rows.size > FEW:
            self._looked_up = await asyncio.to_thread(self._find, layout, new_rows)

    def _find(self, layout: Layout, rows: Ints) -> _Numbers:
        """Return the numbers of the teams of some rows by user and client-id."""
        names = dict.fromkeys((entity.user, entity.client_id) for entity in layout.entities[rows])
        return {name: self._finder.number(*name) for name in names}

    def move_to(self, layout: Layout) -> None:
        """Carry the teams of rows over to another layout, find those of new rows, and count the entities of teams."""
        if layout is not self._layout:
            self._carry_to(layout)
            self._count_entities()

    def _carry_to(self, layout: Layout) -> None:
        """Carry the arrays by row over to another layout, and fill them for new rows."""
        teams = layout.carry(self.team_of_row, self._layout, _NEW).copy()
        hashes = layout.carry(self._hashes, self._layout, 0).copy()
        kinds = layout.carry(self.kinds, self._layout, _NO_KIND).copy()
        new_rows = np.flatnonzero(teams == _NEW)
        numbers, self._looked_up = self._looked_up, {}
        for row, entity in zip(new_rows.tolist(), layout.entities[new_rows], strict=True):
            name = entity.user, entity.client_id
            number = numbers.get(name)
            if number is None:
                number = numbers[name] = self._finder.number(*name)
            # no team and an unknown one have the last two names
            teams[row] = number if number >= 0 else len(self.names) + _INDEX_FROM_END[number]
            hashes[row] = hash(name)
            kind = EntityKind.of(*name)
            kinds[row] = _NO_KIND if kind is None else KINDS.index(kind)
        self._layout, self.team_of_row, self._hashes, self.kinds = layout, teams, hashes, kinds

    def _count_entities(self) -> None:
        """Mark the rows at which an entity begins, and count the users and client-ids of each team."""
        own_rows = self._layout.own
        types, hashes, teams = self._layout.types[own_rows], self._hashes[own_rows], self.team_of_row[own_rows]
        self.begins = np.ones(len(hashes), np.bool_)
        # a layout has the rows of an entity together
        self.begins[1:] = (types[1:] != types[:-1]) | (hashes[1:] != hashes[:-1])
        # a user and client-id is counted once, whatever the number of its quota types and nodes
        _, first_rows = np.unique(hashes, return_index=True)
        self.entities = fixed(np.bincount(teams[first_rows], minlength=len(self.names)).astype(np.float64))
