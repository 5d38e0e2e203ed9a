"""Named clients at work on the quotas of an engine in the same process: no broker, no Java."""

from .cast import CAST, Role
from .live import run
from .rules import RULES
from .simulation import Simulation

__all__ = ["CAST", "RULES", "Role", "Simulation", "run"]
