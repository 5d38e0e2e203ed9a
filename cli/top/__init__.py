"""`quotascope top`: who is closest to their limits, again and again, in the terminal."""

from .command import EXAMPLES, top

__all__ = ["EXAMPLES", "top"]
