"""The teams of quota entities, as pages and the API show them and queries name them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from quotascope.metrics.catalog.teams import UNOWNED, Team
from quotascope.quotas.team_finder import TeamFinder

from ..names import real_name
from ..snapshot import Entity, Usages

_LONGEST: Final = 200
"""Characters of a text in a query."""


def readable(text: str) -> str:
    """
    Return a text as a query has it.

    Cut, and without what cannot be printed, and so not be seen in the form either.
    """
    return "".join(filter(str.isprintable, text[:_LONGEST]))


class Teams:
    """
    The configured teams: the first entry that matches an entity counts, as it does for the label `team` of alerts.

    Queries name a team by its ``readable`` text.
    """

    def __init__(self, teams: Sequence[Team] = ()) -> None:
        self._finder = TeamFinder(teams, real_name)
        self._known: dict[tuple[str, str], str] = {}
        names = [*(team.name for team in teams), UNOWNED] if teams else []
        self.names = tuple(dict.fromkeys(filter(None, map(readable, names))))
        """Teams that a query can name, in their order, last what stands for no team; empty without teams."""

    def of(self, entity: Entity) -> str | None:
        """
        Return the name of the team of an entity, or what stands for none or for an unknown one.

        None without teams.
        """
        return self._finder.label(entity.user, entity.client_id) if self._finder.teams else None

    def own(self, usages: Usages, team: str) -> Usages:
        """Return the usages that are of this team."""
        # the page asks every few seconds for the same: only new names are matched again
        previous, self._known = self._known, {}

        def wanted(entity: Entity) -> bool:
            name = entity.user, entity.client_id  # the same on all nodes
            if name not in self._known:
                self._known[name] = previous[name] if name in previous else self.of(entity) or ""
            return readable(self._known[name]) == team

        columns = usages.columns
        entities = columns.layout.entities[usages.rows]
        return Usages(columns, usages.rows[np.fromiter(map(wanted, entities), np.bool_, len(entities))])
