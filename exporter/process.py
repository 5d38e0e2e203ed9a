"""The memory and threads of the exporter's process, and its reports to systemd."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import structlog

from .errors import os_reason

log = structlog.get_logger()

READY: Final = "READY=1"
"""The exporter listens, and has a handler for SIGHUP."""
STOPPING: Final = "STOPPING=1"
"""The exporter answers the requests in progress, and no new ones."""
ALIVE: Final = "WATCHDOG=1"
"""The event loop turns; for a unit with ``WatchdogSec``."""
_SOCKET: Final = "NOTIFY_SOCKET"
_WATCHDOG: Final = "WATCHDOG_USEC"
_GC_THRESHOLDS: Final = (250_000, 20, 10)
_M_ARENA_MAX: Final = -8
"""Number of the option for the most heaps, from glibc's <malloc.h>."""
_MOST_ARENAS: Final = 2


def collect_garbage_rarely() -> None:
    """
    Have Python search for cycles of garbage less often, and not among the objects that exist already.

    A collection of 15,000 entities makes some 100,000 objects, none of them in a cycle; by default Python goes
    through all of them dozens of times.
    """
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)


def share_arenas() -> None:
    """
    Let all threads use the same two heaps; to be called before there are any.

    glibc gives each thread a heap of its own, up to eight heaps for each core, and each heap keeps memory of the
    largest answer that its thread ever read: after an hour, that is twice the memory that is needed. Another C library
    is left alone.
    """
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _MOST_ARENAS)


def spare_threads() -> None:
    """
    Keep NumPy's linear algebra, which nothing here uses, from starting a thread for each core.

    To be called before NumPy is imported. A value of the environment counts more.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def notify(state: str, environ: Mapping[str, str] = os.environ) -> None:
    """
    Report a state to systemd, as ``sd_notify(3)`` does, at the socket that ``NOTIFY_SOCKET`` names, if it is set.

    A service manager that cannot be reached is a warning in the log.
    """
    path = environ.get(_SOCKET, "")
    if not path.startswith(("/", "@")):
        return
    # a name without a file, as Linux knows it, begins with NUL
    address = f"\0{path[1:]}" if path.startswith("@") else path
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as link:
            link.connect(address)
            link.sendall(state.encode())
    except OSError as error:
        log.warning("the service manager cannot be notified", error=os_reason(error))


async def report_alive(environ: Mapping[str, str] = os.environ) -> None:
    """
    Report to systemd that the event loop turns, twice in the time that a unit's ``WatchdogSec`` allows, until canceled.

    Without such a time it reports nothing. A loop that something blocks reports nothing either, and systemd starts the
    service again.
    """
    allowed_us = environ.get(_WATCHDOG, "")
    if not allowed_us.isdecimal() or int(allowed_us) == 0:
        return
    while True:
        notify(ALIVE, environ)
        await asyncio.sleep(int(allowed_us) / 2e6)  # half of it, in seconds
