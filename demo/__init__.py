"""Named clients at work on the quotas of an engine in the same process: no broker, no Java."""

from .cast import CAST, RULES, Role
from .simulation import Simulation, run

__all__ = ["CAST", "RULES", "Role", "Simulation", "run"]
