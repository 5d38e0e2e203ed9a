"""Listens, and accepts connections: over TLS as the web config file has it at that moment, and no more of them than there are places."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from functools import partial
from typing import Final, cast

import structlog
from aiohttp import web

from ..config import ServerConfig
from ..errors import CannotListen
from ..os_reason import os_reason
from .connection import Connection, Guests
from .limits import Limits, connections_within
from .load import WebSettings
from .occasional import Occasional
from .requests import Requests
from .watched import WatchedSettings

log = structlog.get_logger()

_BACKLOG: Final = 128
_PAUSE_SECONDS: Final = 0.1


class Front:
    """
    The server: its sockets, the connections that it accepts, and what every request of them passes.

    A connection takes its place before TLS begins, so that handshakes are counted too. Raises ``ConfigError`` when the
    web config file cannot be used.
    """

    _server: web.Server
    """Of the application; set before anything is accepted."""

    def __init__(self, config: ServerConfig, limits: Limits | None = None) -> None:
        self._config = config
        self._limits = limits or Limits(
            connections=connections_within(config.max_connections),
            requests=config.max_requests,
        )
        self._settings = settings_of(config)
        self._guests = Guests(self._limits.connections)
        self._requests = Requests(
            self._settings, self._limits.requests, config.address, config.allowed_hosts
        )
        self._runner: web.AppRunner | None = None
        self._sockets: list[socket.socket] = []
        """What is listened on; none before it is open, and none once it is closed."""
        self._arriving: set[asyncio.Task[None]] = set()
        """Connections whose handshake is under way."""
        self._full = Occasional("connections were refused: all are in use")
        self._failed = Occasional("TLS failed with who connected")
        self._stuck = Occasional("connections cannot be accepted", "error")

    async def open(self, app: web.Application, grace_seconds: float) -> str:
        """
        Listen, and answer with ``app``; the URL for a program on this machine. Raises ``CannotListen``.

        ``grace_seconds`` is how long the end waits for requests under way.
        """
        self._sockets = listening_sockets(self._config.address, self._config.port)
        self._runner = web.AppRunner(
            app, access_log=None, shutdown_timeout=grace_seconds
        )
        await self._runner.setup()
        self._server = cast("web.Server", self._runner.server)
        # around the application and not as its middlewares: it answers `Expect` before those
        self._server.request_handler = partial(
            self._requests.answer, handler=self._server.request_handler
        )
        for each in self._sockets:
            self._listen(each)
        host, port = self._sockets[0].getsockname()[:2]
        url = _url("http" if self._settings().tls is None else "https", host, port)
        users = len(self._settings().config.basic_auth_users)
        log.info("listening", url=url, users=users or "anybody")
        return url

    async def close(self) -> None:
        """Accept no connection any more, and wait for requests under way."""
        closed, self._sockets = self._sockets, []
        for each in closed:
            asyncio.get_running_loop().remove_reader(each)
            each.close()
        for task in self._arriving:
            task.cancel()
        await asyncio.gather(*self._arriving, return_exceptions=True)
        if self._runner is not None:
            await self._runner.cleanup()

    def _listen(self, listener: socket.socket) -> None:
        # not sock_accept: cancelled at the wrong moment it loses a connection that it has accepted
        if listener in self._sockets:
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

        def arrived(task: asyncio.Task[None]) -> None:
            self._arriving.discard(task)
            if task.cancelled():  # maybe before it has begun
                accepted.close()

        task.add_done_callback(arrived)

    async def _let_in(self, accepted: socket.socket) -> None:
        """Give the connection a place, or close it where none is free; then make the handshake."""
        connection = Connection(
            self._server,
            self._guests,
            self._requests.put_headers,
            self._limits,
            self._settings,
        )
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
            tls = self._settings().tls
            seconds = None if tls is None else self._limits.handshake_seconds
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
        except BaseException:  # such as: cancelled, because another one needs the place
            self._guests.leave(connection)
            raise


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


def settings_of(config: ServerConfig) -> Callable[[], WebSettings]:
    """What gives the settings of the web config file as they are now. Raises ``ConfigError``."""
    if config.web_config_file is None:
        settings = WebSettings()
        return lambda: settings
    return WatchedSettings(config.web_config_file).now


def _url(scheme: str, host: str, port: int) -> str:
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host)  # noqa: S104 - compared, not bound
    if shown is None:
        shown = f"[{host}]" if ":" in host else host
    return f"{scheme}://{shown}:{port}"


def _reason(error: OSError) -> str:
    if isinstance(error, ssl.SSLError):
        return error.reason or str(error)
    return os_reason(error) or type(error).__name__
