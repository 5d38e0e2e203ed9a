"""Sums over the clients of teams, and the part of each broker's capacity that limits promise."""

from .capacity import SoldKeeper
from .counted import TeamCounter
from .sums import TeamAdder

__all__ = ["SoldKeeper", "TeamAdder", "TeamCounter"]
