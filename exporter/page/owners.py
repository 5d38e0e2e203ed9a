"""Whose a quota entity is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from ..config import OwnerConfig
from ..patterns import Matches, matcher
from ..snapshot import Entity, Usages

_LONGEST: Final = 200
"""Characters of a text in a query."""


def readable(text: str) -> str:
    """A text as a query has it: cut, and without what cannot be printed, and so not be seen in the form either."""
    return "".join(filter(str.isprintable, text[:_LONGEST]))


class Owners:
    """
    The configured owners: the first entry that matches an entity counts, as it does for the label `owner` of alerts.

    Queries name an owner by its ``readable`` text.
    """

    def __init__(self, entries: Sequence[OwnerConfig] = (), default: str | None = None) -> None:
        self._entries = [
            (
                each.team,
                _wanted(each.user, each.user_pattern),
                _wanted(each.client_id, each.client_id_pattern),
            )
            for each in entries
        ]
        self._default = default
        self._known: dict[tuple[str, str], str | None] = {}
        names = [each.team for each in entries]
        if default is not None:
            names.append(default)
        self.names = tuple(dict.fromkeys(filter(None, map(readable, names))))
        """Those that a query can name, in the order of the configuration."""

    def of(self, entity: Entity) -> str | None:
        """The owner of an entity; None if it has none."""
        for team, user, client_id in self._entries:
            if user(entity.user) and client_id(entity.client_id):
                return team
        return self._default

    def own(self, usages: Usages, owner: str) -> Usages:
        """Those of the usages that are of this owner."""
        # the page asks every few seconds for the same: only new names are matched again
        before, self._known = self._known, {}

        def wanted(entity: Entity) -> bool:
            name = entity.user, entity.client_id  # the same on all nodes
            if name not in self._known:
                known = before[name] if name in before else self.of(entity)
                self._known[name] = known
            return readable(self._known[name] or "") == owner

        columns = usages.columns
        entities = columns.layout.entities[usages.rows]
        return Usages(columns, usages.rows[np.fromiter(map(wanted, entities), np.bool_, len(entities))])


def _wanted(name: str | None, pattern: str | None) -> Matches:
    if name is not None:
        return lambda given: given == name
    return matcher(pattern) if pattern is not None else lambda _: True
