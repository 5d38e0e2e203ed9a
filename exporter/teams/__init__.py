"""What the clients of teams use together, and how much of each broker is promised."""

from .capacity import SoldKeeper
from .sums import TeamAdder, brokers_under_limits

__all__ = ["SoldKeeper", "TeamAdder", "brokers_under_limits"]
