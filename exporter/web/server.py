"""The HTTP server: listens, and gives every connection and request the limits and rules of this room."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any, Final, cast

import structlog
from aiohttp import web

from ..config import ServerConfig
from ..errors import CannotListen, os_reason
from ..logs import RateLimitedLog
from .access import AccessPolicy
from .connection import ConnectionPool, HttpConnection, ServerLimits, provide_connections
from .settings import WatchedSettings, WebSettings

log = structlog.get_logger()

_BACKLOG: Final = 128
"""Connections that the kernel queues, and that asyncio accepts in one turn of its loop."""


class HttpServer:
    """
    Serves an application on the configured addresses.

    asyncio accepts the connections and aiohttp speaks HTTP; the places, deadlines, certificates and access rules are
    ours. Raises ``ConfigError`` when the web config file cannot be used.
    """

    def __init__(self, config: ServerConfig, limits: ServerLimits | None = None) -> None:
        self._config = config
        self._limits = limits or ServerLimits(
            connections=provide_connections(config.max_connections), requests=config.max_requests
        )
        self._watched = WatchedSettings(config.web_config_file)
        self._settings = self._watched.now
        self._pool = ConnectionPool(self._limits.connections)
        self._access = AccessPolicy(
            self._settings, self._limits.requests, [host for host, _ in config.endpoints], config.allowed_hosts
        )
        self._runner: web.AppRunner | None = None
        self._listeners: list[asyncio.Server] = []
        self._cannot_accept = RateLimitedLog("connections cannot be accepted", "error")

    async def open(self, app: web.Application, grace_seconds: float) -> str:
        """
        Listen, and answer with ``app``; returns the URL of the first address for a program on this machine.

        Raises ``CannotListen``. ``grace_seconds`` is how long ``close`` waits for requests in progress.
        """
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=grace_seconds)
        await self._runner.setup()
        http = cast("web.Server", self._runner.server)
        # around the application, since it answers `Expect` before its middlewares run
        http.request_handler = partial(self._access.answer, handler=http.request_handler)
        loop = asyncio.get_running_loop()
        connect = partial(HttpConnection, http, self._pool, self._access.put_headers, self._limits, self._settings)
        for host, port in self._config.endpoints:
            try:
                listener = await loop.create_server(connect, host or None, port, backlog=_BACKLOG)
            except (OSError, ValueError) as error:  # ValueError: not a valid host name
                reason = os_reason(error) if isinstance(error, OSError) else str(error)
                raise CannotListen(f"cannot listen on {host or 'all addresses'} port {port}: {reason}") from None
            self._listeners.append(listener)
        loop.set_exception_handler(self._on_loop_error)
        scheme = "http" if self._settings().tls is None else "https"
        users = len(self._settings().config.basic_auth_users)
        urls = [url_of(scheme, *listener.sockets[0].getsockname()[:2]) for listener in self._listeners]
        for url in urls:
            log.info("listening", url=url, users=users or "anybody")
        return urls[0]

    def look(self) -> WebSettings:
        """Look at the web config file and the files that it names, and return its settings; may block."""
        self._watched.look()
        return self._settings()

    @property
    def refused(self) -> Mapping[str, int]:
        """The number of requests that were refused for want of room since the start, by reason."""
        return dict(self._access.refused)

    async def close(self) -> None:
        """Accept no more connections, and wait for requests in progress."""
        loop = asyncio.get_running_loop()
        if self._listeners:
            for listener in self._listeners:
                for socket in listener.sockets:
                    loop.remove_reader(socket.fileno())
            await asyncio.sleep(0)  # else asyncio loses what it has just accepted
            for listener in self._listeners:
                listener.close()
            loop.set_exception_handler(None)
        await self._pool.end_handshakes()
        if self._runner is not None:
            await self._runner.cleanup()

    def _on_loop_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """
        Handle a report of asyncio that it cannot accept connections, because no file descriptor is left.

        asyncio tries again after a second; until then the connection that has waited longest is closed.
        """
        error = context.get("exception")
        if "socket.accept()" not in context["message"] or not isinstance(error, OSError):
            loop.default_exception_handler(context)
            return
        self._cannot_accept.add(reason=os_reason(error), connections=len(self._pool))
        self._pool.make_room()


def url_of(scheme: str, host: str, port: int) -> str:
    """
    Return the URL that a program on this machine can open, for an address that is listened on.

    An empty address stands for all addresses of the machine.
    """
    host_in_url = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host)  # noqa: S104 - compared, not bound
    if host_in_url is None:
        host_in_url = f"[{host}]" if ":" in host else host
    return f"{scheme}://{host_in_url}:{port}"
