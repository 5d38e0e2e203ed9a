"""Everything between a socket and the pages."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from functools import partial

import structlog
from aiohttp import web

from ..config import ServerConfig
from .connection import Connection, Guests
from .door import Door, listening_sockets
from .limits import Limits, connections_within
from .load import WebSettings
from .names import is_allowed
from .requests import Requests
from .watched import WatchedSettings

log = structlog.get_logger()


class Front:
    """
    Listens, and lets in who may.

    Raises ``ConfigError`` when the web config file cannot be used.
    """

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
        self._door: Door | None = None

    async def open(self, app: web.Application, grace_seconds: float) -> str:
        """
        Listen, and answer with ``app``; the URL for a program on this machine. Raises ``CannotListen``.

        ``grace_seconds`` is how long the end waits for requests under way.
        """
        sockets = listening_sockets(self._config.address, self._config.port)
        self._runner = web.AppRunner(
            app, access_log=None, shutdown_timeout=grace_seconds
        )
        await self._runner.setup()
        server = self._server()
        # around the application and not as its middlewares: it answers `Expect` before those
        server.request_handler = partial(
            self._requests.answer, handler=server.request_handler
        )
        self._door = Door(
            sockets, self._guests, self._connection, self._tls, self._limits
        )
        host, port = sockets[0].getsockname()[:2]
        url = _url("http" if self._tls() is None else "https", host, port)
        users = len(self._settings().config.basic_auth_users)
        log.info("listening", url=url, users=users or "anybody")
        return url

    async def close(self) -> None:
        """Accept nobody any more, and wait for requests under way."""
        door, self._door = self._door, None
        if door is not None:
            await door.close()
        if self._runner is not None:
            await self._runner.cleanup()

    def _server(self) -> web.Server:
        server = self._runner.server if self._runner else None
        if server is None:
            raise RuntimeError("not open")
        return server

    def _connection(self) -> Connection:
        return Connection(
            self._server(),
            self._guests,
            self._requests.put_headers,
            self._limits,
            self._admits,
        )

    def _admits(self, transport: asyncio.BaseTransport) -> bool:
        tls = self._settings().config.tls_server_config
        return tls is None or is_allowed(transport, tls.client_allowed_sans)

    def _tls(self) -> ssl.SSLContext | None:
        return self._settings().tls


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
