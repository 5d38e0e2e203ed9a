"""Teams: the alerts route by them, the exporter adds up what their clients use, page, API and commands show them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ..kafka.entities import QuotaType

UNOWNED: Final = "__unowned__"
"""Value of the label ``team`` in the sums of entities that no team owns."""
UNDECIDED: Final = "__undecided__"
"""
Value of the label ``team`` in the sums of entities of which the team is unknown: of a long name that is not remembered,
patterns cannot decide.
"""


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
class Team:
    """A team, its entities, and what was agreed with it."""

    name: str
    clients: tuple[Clients, ...]
    """Entries of which an entity has to match one; of several teams, the first with such an entry owns it."""
    contact: str | None = None
    """Where the team is reached, such as a channel; free text."""
    budgets: Mapping[QuotaType, float] = field(default_factory=dict)
    """
    Agreed usage over the whole cluster, in bytes/s, threads or mutations/s by quota type; nothing enforces it. A type
    that is not in it has no budget.
    """
    price_per_gb_in: float | None = None
    """Price of 10^9 bytes produced."""
    price_per_gb_out: float | None = None
    """Price of 10^9 bytes fetched."""
    currency: str | None = None
    """Currency of both prices by ISO 4217; None without a price, and where the file does not name it."""
