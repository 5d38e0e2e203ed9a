"""Accepts connections: TLS as it is configured at that moment, no more of them than there is room for."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import Final

import structlog

from ..errors import CannotListen
from ..os_reason import os_reason
from .connection import Connection, Guests
from .limits import Limits
from .occasional import Occasional

log = structlog.get_logger()

_BACKLOG: Final = 128
_PAUSE_SECONDS: Final = 0.1


def listening_sockets(address: str, port: int) -> list[socket.socket]:
    """Sockets that listen on all that the address stands for. Raises ``CannotListen``."""
    opened: list[socket.socket] = []
    try:
        found = socket.getaddrinfo(
            address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        for family, _, _, _, place in dict.fromkeys(found):
            opened.append(socket.create_server(place, family=family, backlog=_BACKLOG))
    except (OSError, ValueError) as error:  # the latter of names that none can be
        for each in opened:
            each.close()
        reason = os_reason(error) if isinstance(error, OSError) else str(error)
        raise CannotListen(
            f"cannot listen on {address} port {port}: {reason}"
        ) from None
    for each in opened:
        each.setblocking(False)  # noqa: FBT003 - socket's own
    return opened


class Door:
    """
    Lets connections in.

    Args:
        sockets: Where they come; closed with the door.
        guests: Who is in.
        connection: Makes a connection.
        tls: What TLS is now, None for none.
        limits: How long a handshake may take.

    """

    def __init__(
        self,
        sockets: list[socket.socket],
        guests: Guests,
        connection: Callable[[], Connection],
        tls: Callable[[], ssl.SSLContext | None],
        limits: Limits,
    ) -> None:
        self._sockets = sockets
        self._guests = guests
        self._connection = connection
        self._tls = tls
        self._limits = limits
        self._arriving: set[asyncio.Task[None]] = set()
        self._full = Occasional("connections were refused: all are in use")
        self._failed = Occasional("TLS failed with who connected")
        self._stuck = Occasional("connections cannot be accepted", "error")
        self._open = True
        for each in sockets:
            self._listen(each)

    async def close(self) -> None:
        """Accept nobody any more; who is in, stays."""
        self._open = False
        for each in self._sockets:
            asyncio.get_running_loop().remove_reader(each)
            each.close()
        for task in self._arriving:
            task.cancel()
        await asyncio.gather(*self._arriving, return_exceptions=True)

    def _listen(self, listener: socket.socket) -> None:
        # not sock_accept: cancelled at the wrong moment it loses a connection that it has accepted
        if self._open:
            asyncio.get_running_loop().add_reader(listener, self._accept, listener)

    def _accept(self, listener: socket.socket) -> None:
        try:
            accepted, _ = listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError as error:  # such as: no file descriptor is left
            self._stuck.happened(reason=os_reason(error), connections=len(self._guests))
            self._guests.make_room()
            loop = asyncio.get_running_loop()
            loop.remove_reader(listener)
            loop.call_later(_PAUSE_SECONDS, self._listen, listener)
            return
        accepted.setblocking(False)  # noqa: FBT003 - socket's own
        task = asyncio.create_task(self._let_in(accepted))
        self._arriving.add(task)
        task.add_done_callback(lambda done: self._settle(done, accepted))

    def _settle(self, arriving: asyncio.Task[None], accepted: socket.socket) -> None:
        self._arriving.discard(arriving)
        if arriving.cancelled():  # maybe before it has begun
            accepted.close()

    async def _let_in(self, accepted: socket.socket) -> None:
        connection = self._connection()
        arriving = asyncio.current_task()

        def drop() -> None:
            if connection.arrived:
                connection.cut()
            elif arriving is not None:
                arriving.cancel()

        if not self._guests.enter(connection, drop):
            self._full.happened(most=len(self._guests))
            accepted.close()
            return
        try:
            await self._connect(accepted, connection)
        except BaseException:
            self._guests.leave(connection)
            raise

    async def _connect(self, accepted: socket.socket, connection: Connection) -> None:
        tls = self._tls()
        seconds = None if tls is None else self._limits.handshake_seconds
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: connection,
                accepted,
                ssl=tls,
                ssl_handshake_timeout=seconds,
                ssl_shutdown_timeout=seconds,
            )
        except OSError as error:  # ssl.SSLError and a client that went are such
            self._guests.leave(connection)
            self._failed.happened(reason=_reason(error))


def _reason(error: OSError) -> str:
    if isinstance(error, ssl.SSLError):
        return error.reason or str(error)
    return os_reason(error) or type(error).__name__
