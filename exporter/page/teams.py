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
"""Longest text in a query, in characters."""


def readable(text: str) -> str:
    """
    Return a team's name as queries write it.

    It is cut, and lacks characters that cannot be printed, since a form would not show them.
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
        """
        Names that a query can use, in their order; the last stands for entities without a team. Empty without teams.
        """

    def of(self, entity: Entity) -> str | None:
        """
        Return the name of an entity's team, or the name for no team or for an unknown one.

        Return None if no teams are configured.
        """
        return self._finder.label(entity.user, entity.client_id) if self._finder.teams else None

    def own(self, usages: Usages, team: str) -> Usages:
        """Return the usages of this team's entities."""
        # the page repeats its request every few seconds, and only names that were not in the last one are looked up
        previous, self._known = self._known, {}

        def wanted(entity: Entity) -> bool:
            name = entity.user, entity.client_id  # the team is the same on all nodes
            if name in previous:
                self._known[name] = previous[name]
            elif name not in self._known:
                self._known[name] = self.of(entity) or ""
            return readable(self._known[name]) == team

        columns = usages.columns
        entities = columns.layout.entities[usages.rows]
        return Usages(columns, usages.rows[np.fromiter(map(wanted, entities), np.bool_, len(entities))])
