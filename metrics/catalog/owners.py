"""Owners of quota entities: the alerts route by them, the exporter's page and API show them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Clients:
    """
    Entities by name or pattern; an entity must meet all conditions, and a pattern (RE2) matches a name as a whole.

    An entity without a user has the name ``""``, as in the series.
    """

    user: str | None = None
    user_pattern: str | None = None
    client_id: str | None = None
    client_id_pattern: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """A team and its entities."""

    team: str
    clients: Clients
