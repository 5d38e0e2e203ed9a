"""How the C libraries keep what is free, and which threads they start, in a process whose threads take turns with large answers."""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from typing import Final

_M_ARENA_MAX: Final = -8
"""Of glibc's <malloc.h>."""
_MOST_ARENAS: Final = 2


def share_arenas() -> None:
    """
    Let all threads use the same two heaps; to be called before there are any.

    glibc gives each thread one of its own, up to eight for each core, and each of them keeps some of the largest answer that its
    thread ever read: after an hour twice the memory that is needed. Another C library is left alone.
    """
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _MOST_ARENAS)


def spare_threads() -> None:
    """
    Keep NumPy's linear algebra, which nothing here uses, from starting a thread for each core; to be called before NumPy is imported.

    A value of the environment counts more.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
