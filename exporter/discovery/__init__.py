"""Finds brokers and controllers, in the cluster or in files, and follows them while they come and go."""

from .discovery import Discovery
from .roster import Roster

__all__ = ["Discovery", "Roster"]
