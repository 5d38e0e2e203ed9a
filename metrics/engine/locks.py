"""
The lock of the hot path, in one place.

It is held for a few lines and never taken twice by one thread, so the plainest kind will do: the standard library's, or
librt's in a compiled build, which calls it without going through Python and so for a tenth of the time.
"""

from typing import TYPE_CHECKING

from .native import compiled

if TYPE_CHECKING or compiled:
    from librt.threading import Lock
else:
    from threading import Lock

__all__ = ["Lock"]
