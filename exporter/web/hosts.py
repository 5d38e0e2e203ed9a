"""
Under which names the exporter may be asked.

A page that a browser loaded from elsewhere can have its own name point to this address (DNS rebinding), and read what
is there as its own. It cannot choose the name that the browser sends, so that name is looked at.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from aiohttp import web
from aiohttp.typedefs import Handler

from .headers import refusal
from .occasional import Occasional


class Hosts:
    """
    Refuses requests for other names.

    Args:
        listening: The address that is listened on. On one of this machine alone only ``localhost`` and IP addresses
            are asked for, unless others are allowed; elsewhere nobody knows what it is called.
        allowed: Names that may be asked for besides IP addresses and ``localhost``; empty for the default.

    """

    def __init__(self, listening: str, allowed: Sequence[str] = ()) -> None:
        self._any = not allowed and not is_loopback(listening)
        self._names = {"localhost", *(name.lower().rstrip(".") for name in allowed)}
        self._refused = Occasional("requests for another host were refused")

    @web.middleware
    async def middleware(
        self, request: web.Request, handler: Handler
    ) -> web.StreamResponse:
        """As aiohttp wants it."""
        name = host_name(request.headers.get("Host", ""))
        if self._any or name in self._names or _is_address(name):
            return await handler(request)
        self._refused.happened(address=request.remote, host=name)
        return refusal(421, "not asked for under this name; server.allowed_hosts says which are")  # fmt: skip


def host_name(header: str) -> str:
    """The host of a ``Host`` header, without its port, in lower case."""
    text = header.strip().lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0].rstrip(".")


def is_loopback(address: str) -> bool:
    """Whether only this machine can reach it."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name == ""  # HTTP/1.0 without one, which no browser speaks
    return True
