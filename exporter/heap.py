"""How the C library keeps what is free, in a process whose threads take turns with large answers."""

from __future__ import annotations

import ctypes
from contextlib import suppress
from typing import Final

_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
"""Of glibc's <malloc.h>."""
_MOST_ARENAS: Final = 2
_LARGE_BYTES: Final = 1 << 20


def give_back_memory() -> None:
    """
    Give the memory of answers back to the system when they are done with; to be called before there are threads.

    All threads share two heaps: glibc gives each thread one of its own, up to eight for each core, and each of them keeps some of
    the largest answer that its thread ever read. And each large answer gets pages of its own: by itself glibc cuts blocks of up
    to 32 MiB out of a heap, where one small block behind them that is still in use keeps them all. Another C library is left
    alone.
    """
    with suppress(AttributeError, OSError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_ARENA_MAX, _MOST_ARENAS)
        mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
