"""Which brokers and controllers there are: found in the cluster or in files, and followed while they come and go."""

from .follow import Discovery
from .roster import Roster

__all__ = ["Discovery", "Roster"]
