"""Tells systemd how the service is (sd_notify), where systemd wants to know."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from typing import Final

import structlog

from .os_reason import os_reason

log = structlog.get_logger()

READY: Final = "READY=1"
"""It listens, and has a handler for SIGHUP."""
STOPPING: Final = "STOPPING=1"
"""It answers what was asked, and nothing new."""
_SOCKET: Final = "NOTIFY_SOCKET"


def tell(state: str, environ: Mapping[str, str] = os.environ) -> None:
    """
    Send a state, as ``sd_notify(3)`` does, to the socket that ``NOTIFY_SOCKET`` names; without one nothing happens.

    A service manager that cannot be reached costs a line in the log: it will find out by itself.
    """
    path = environ.get(_SOCKET, "")
    if not path.startswith(("/", "@")):
        return
    # a name without a file, as Linux knows it, begins with NUL
    address = f"\0{path[1:]}" if path.startswith("@") else path
    try:
        with socket.socket(
            socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC
        ) as link:
            link.connect(address)
            link.sendall(state.encode())
    except OSError as error:
        log.warning("the service manager cannot be told", error=os_reason(error))
