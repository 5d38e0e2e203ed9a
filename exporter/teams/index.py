"""The team of each row of a layout, found once for each row that comes."""

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
"""Placeholder for the number of a team: the row came with this layout."""
UNDECIDED_PLACE: Final = -1
"""Place of the entry for an unknown team, counted from the end of the names."""
_LAST: Final = {NOT_OWNED: -2, NOT_DECIDED: UNDECIDED_PLACE}
FEW: Final = 500
"""Entities whose teams are found on the event loop, which takes about 10 ms with a thousand teams."""
KINDS: Final = tuple(EntityKind)
"""Kinds of entities by their number in ``TeamIndex.kinds``."""
_NO_KIND: Final = len(KINDS)
Ints = NDArray[np.intp]
_Numbers: TypeAlias = dict[tuple[str, str], int]
"""Numbers of teams by user and client-id."""


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
        self.of_row: Ints = np.empty(0, np.intp)
        """For each row of the last layout the number of its team."""
        self._hashes: NDArray[np.int64] = np.empty(0, np.int64)
        self.kinds: NDArray[np.int8] = np.empty(0, np.int8)
        """For each row the number of its kind in ``KINDS``; one more for a client that sends no client-id."""
        self.begins: NDArray[np.bool_] = np.empty(0, np.bool_)
        """For each row of Kafka's own quotas True if it is the first of an entity and quota type."""
        self.entities: Floats = np.empty(0)
        """Number of users and client-ids of each team, by its number."""
        self._known: _Numbers = {}
        """Numbers that were looked up for the next layout."""

    async def look_up(self, layout: Layout) -> None:
        """Find the teams of a layout that ``follow`` will take over; in a thread for more than ``FEW`` new rows."""
        fresh = np.flatnonzero(layout.carry(self.of_row, self._layout, _NEW) == _NEW)
        if fresh.size > FEW:
            self._known = await asyncio.to_thread(self._numbers, layout, fresh)

    def _numbers(self, layout: Layout, rows: Ints) -> _Numbers:
        """Return the numbers of these rows' teams by user and client-id."""
        names = dict.fromkeys((entity.user, entity.client_id) for entity in layout.entities[rows])
        return {name: self._finder.number(*name) for name in names}

    def follow(self, layout: Layout) -> None:
        """Take over the rows of another layout; nothing happens for the same one."""
        if layout is self._layout:
            return
        of_row = layout.carry(self.of_row, self._layout, _NEW).copy()
        hashes = layout.carry(self._hashes, self._layout, 0).copy()
        kinds = layout.carry(self.kinds, self._layout, _NO_KIND).copy()
        fresh = np.flatnonzero(of_row == _NEW)
        numbers, self._known = self._known, {}
        for row, entity in zip(fresh.tolist(), layout.entities[fresh], strict=True):
            name = entity.user, entity.client_id
            number = numbers.get(name)
            if number is None:
                number = numbers[name] = self._finder.number(*name)
            of_row[row] = number if number >= 0 else len(self.names) + _LAST[number]
            hashes[row] = hash(name)
            kind = EntityKind.of(*name)
            kinds[row] = _NO_KIND if kind is None else KINDS.index(kind)
        self._layout, self.of_row, self._hashes, self.kinds = layout, of_row, hashes, kinds
        own = layout.own
        types, names = layout.types[own], hashes[own]
        self.begins = np.ones(len(names), np.bool_)
        # rows of an entity are together
        self.begins[1:] = (types[1:] != types[:-1]) | (names[1:] != names[:-1])
        _, firsts = np.unique(names, return_index=True)
        self.entities = fixed(np.bincount(of_row[own][firsts], minlength=len(self.names)).astype(np.float64))
