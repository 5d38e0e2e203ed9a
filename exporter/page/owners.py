"""The owners of quota entities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from quotascope.metrics.catalog.owners import Owner

from ..names import real_name
from ..patterns import matcher
from ..snapshot import Entity, Usages

_LONGEST: Final = 200
"""Characters of a text in a query."""


def readable(text: str) -> str:
    """
    Return a text as a query has it.

    Cut, and without what cannot be printed, and so not be seen in the form either.
    """
    return "".join(filter(str.isprintable, text[:_LONGEST]))


class Owners:
    """
    The configured owners: the first entry that matches an entity counts, as it does for the label `owner` of alerts.

    Queries name an owner by its ``readable`` text.
    """

    def __init__(self, owners: Sequence[Owner] = (), default: str | None = None) -> None:
        self._entries = [
            (
                owner.team,
                _wanted(owner.clients.user, owner.clients.user_pattern),
                _wanted(owner.clients.client_id, owner.clients.client_id_pattern),
            )
            for owner in owners
        ]
        self._default = default
        self._known: dict[tuple[str, str], str | None] = {}
        names = [owner.team for owner in owners]
        if default is not None:
            names.append(default)
        self.names = tuple(dict.fromkeys(filter(None, map(readable, names))))
        """Owners that a query can name, in the order of the configuration."""

    def of(self, entity: Entity) -> str | None:
        """
        Return the owner of an entity; None if it has none.

        Also None for a long name that is not remembered, so that the first entry to match is unknown.
        """
        for team, user, client_id in self._entries:
            matches = user(entity.user), client_id(entity.client_id)
            if False not in matches:
                return None if None in matches else team
        return self._default

    def own(self, usages: Usages, owner: str) -> Usages:
        """Return the usages that are of this owner."""
        # the page asks every few seconds for the same: only new names are matched again
        previous, self._known = self._known, {}

        def wanted(entity: Entity) -> bool:
            name = entity.user, entity.client_id  # the same on all nodes
            if name not in self._known:
                owner_of_name = previous[name] if name in previous else self.of(entity)
                self._known[name] = owner_of_name
            return readable(self._known[name] or "") == owner

        columns = usages.columns
        entities = columns.layout.entities[usages.rows]
        return Usages(columns, usages.rows[np.fromiter(map(wanted, entities), np.bool_, len(entities))])


def _wanted(name: str | None, pattern: str | None) -> Callable[[str], bool | None]:
    """Return what says whether a name matches; None where that is unknown."""
    if name is not None:
        return lambda candidate: candidate == name
    if pattern is None:
        return lambda _: True
    matches = matcher(pattern)

    def known_to_match(candidate: str) -> bool | None:
        name_of_client = real_name(candidate)
        return None if name_of_client is None else matches(name_of_client)

    return known_to_match
