"""The tables of a folder of usage history by name, without the libraries that read them."""

from typing import Final

NAMES: Final = ("requests", "quarantine", "history", "seconds", "topics", "connections", "episodes", "shadow")
"""All of them, in the order in which they are made of each other."""
DETAIL: Final = ("requests", "history", "seconds", "topics", "connections")
"""Those that a replay and `usage` read and draw, and that lose days together."""
