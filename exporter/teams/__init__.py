"""What the clients of teams use together, and how much of each broker is promised."""

from .capacity import SoldKeeper
from .counted import TeamCounter
from .sums import TeamAdder

__all__ = ["SoldKeeper", "TeamAdder", "TeamCounter"]
