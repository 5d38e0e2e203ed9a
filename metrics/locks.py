"""
The lock of the hot path, in one place.

It is held for a few lines and never taken twice by one thread, so the plainest kind will do; a compiled build puts a
cheaper one here.
"""

from threading import Lock

__all__ = ["Lock"]
