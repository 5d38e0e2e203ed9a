"""Connections of clients: how many there may be, and the deadlines in which a client must ask and take the answer."""

from __future__ import annotations

import asyncio
import resource
import ssl
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Protocol, cast

import structlog
from aiohttp import web

from ..errors import os_reason
from ..logs import RateLimitedLog
from .settings import WebSettings, is_allowed

if TYPE_CHECKING:
    from aiohttp.web_request import BaseRequest
    from multidict import CIMultiDict

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """The limits of the server; times in seconds."""

    connections: int = 512
    """Most connections at once, TLS handshakes included; as many as Prometheus's own server has."""
    requests: int = 40
    """Most scrapes at once, until their answers are taken, as in node_exporter; and as many other requests."""
    handshake_seconds: float = 10.0
    head_seconds: float = 10.0
    """Time from the first byte of a request (of a new connection: from its beginning) to the end of its head."""
    idle_seconds: float = 330.0
    """Time between two requests: longer than any useful scrape interval."""
    taking_seconds: float = 60.0
    """Time in which a client must take an answer."""
    line_bytes: int = 8190
    """Longest request line, and longest header, in bytes."""
    headers: int = 64
    body_seconds: float = 2.0
    """Time in which a body is ignored."""
    body_bytes: int = 1 << 20
    """Bytes of a body that are ignored; the connection of a client that sends more is cut."""


class _Release(Protocol):
    """Gives back what was held for an answer, and learns whether the client took it."""

    def __call__(self, *, taken: bool) -> None: ...


class ConnectionPool:
    """
    All connections. Each of them is either waiting or has a request that is being answered.

    A connection waits for its TLS handshake, for the rest of a request, or for the next one. When the pool is full, a
    new connection replaces the one that has waited longest, so that idle clients keep no scraper out. A connection
    with a request that is being answered is never replaced.
    """

    def __init__(self, max_connections: int) -> None:
        self._most = max_connections
        self._all: set[HttpConnection] = set()
        self._waiting: dict[HttpConnection, None] = {}
        """Connections that wait, in the order in which they began to."""
        self.refused = RateLimitedLog("connections were refused: all are in use")
        self.failed_handshakes = RateLimitedLog("TLS handshakes failed")

    def __len__(self) -> int:
        return len(self._all)

    def enter(self, connection: HttpConnection) -> bool:
        """Add a new connection, which waits; return False if the pool is full and no connection in it waits."""
        if len(self._all) >= self._most and not self.make_room():
            self.refused.add(most=len(self._all))
            return False
        self._all.add(connection)
        self._waiting[connection] = None
        return True

    def make_room(self) -> bool:
        """Cut the connection that has waited longest; False when none waits."""
        if not self._waiting:
            return False
        longest = next(iter(self._waiting))
        self.leave(longest)
        longest.cut()
        return True

    def answer(self, connection: HttpConnection) -> None:
        """Note that the connection waits no more: its request is being answered."""
        self._waiting.pop(connection, None)

    def wait(self, connection: HttpConnection) -> None:
        """Note that the client has taken its answer: the connection waits again, unless it has ended."""
        if connection in self._all:
            self._waiting.setdefault(connection)

    def leave(self, connection: HttpConnection) -> None:
        """Remove a connection that has ended."""
        self._waiting.pop(connection, None)
        self._all.discard(connection)

    async def end_handshakes(self) -> None:
        """Cut all connections with an incomplete TLS handshake."""
        begun = [connection for connection in self._all if connection.handshake is not None]
        for connection in begun:
            connection.cut()
        tasks = [connection.handshake for connection in begun if connection.handshake is not None]
        await asyncio.gather(*tasks, return_exceptions=True)


class HttpConnection(web.RequestHandler):
    """
    aiohttp's connection with a place in the pool, TLS by the certificate of that moment, and deadlines.

    aiohttp has no deadline for a request's head, nor for a client that does not take its answer. A client that misses
    one is cut off: an ordinary close would wait for what is still to be sent.

    Args:
        http: aiohttp's server.
        pool: The pool in which the connection needs a place, from before TLS begins.
        put_headers: Completes the headers of an answer; here of the answers to what is not HTTP.
        limits: The deadlines.
        settings: Returns the current settings of the web config file: TLS, and which certificates of clients are
            allowed.

    """

    def __init__(
        self,
        http: web.Server,
        pool: ConnectionPool,
        put_headers: Callable[[CIMultiDict[str]], None],
        limits: ServerLimits,
        settings: Callable[[], WebSettings],
    ) -> None:
        super().__init__(
            http,
            loop=asyncio.get_running_loop(),
            access_log=None,  # type: ignore[arg-type] # what web.AppRunner is given, too
            keepalive_timeout=limits.idle_seconds,
            max_line_size=limits.line_bytes,
            max_field_size=limits.line_bytes,
            max_headers=limits.headers,
            lingering_time=limits.body_seconds,
            # a body is unpacked on the event loop before any handler sees the request: 1 MB can become 1 GiB
            auto_decompress=False,
        )
        self._pool = pool
        self._put_headers = put_headers
        self._limits = limits
        self._settings = settings
        self.handshake: asyncio.Task[None] | None = None
        """The TLS handshake while it lasts."""
        self._early: list[bytes] = []
        """Bytes that were sent right behind the handshake, before its task had ended."""
        self._between = False
        """True if an answer was taken and no byte of the next request has come."""
        self._body_left: int | None = None
        self._taken = False
        """True if the answer to the current request was taken."""
        self._held = ExitStack()
        """Resources that are held until the answer to the current request is taken."""
        self._wire: asyncio.Transport | None = None
        """The transport: aiohttp forgets its own before the last part of an answer is sent."""
        self._sending = False
        """Whether an answer is being written."""
        self._deadline: asyncio.TimerHandle | None = None
        self._taking: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take a place, and begin TLS if it is configured."""
        self._wire = cast("asyncio.Transport", transport)
        if not self._pool.enter(self):
            self.cut()
            return
        context = self._settings().tls
        if context is None:
            self._begin(self._wire)
        else:
            self._wire.pause_reading()
            self.handshake = self._loop.create_task(self._shake(self._wire, context))

    async def _shake(self, wire: asyncio.Transport, context: ssl.SSLContext) -> None:
        """Make the TLS handshake within its deadline."""
        seconds = self._limits.handshake_seconds
        secured: asyncio.Transport | None = None
        try:
            secured = await self._loop.start_tls(
                wire, self, context, server_side=True, ssl_handshake_timeout=seconds, ssl_shutdown_timeout=seconds
            )
        except OSError as error:  # such as ssl.SSLError, and a client that is gone
            self._pool.failed_handshakes.add(reason=os_reason(error) or type(error).__name__)
        finally:
            self.handshake = None
            if secured is None:  # the handshake failed, or the connection was cut meanwhile
                self._pool.leave(self)
        if secured is not None and self._wire is not None:
            self._begin(secured)

    def _begin(self, transport: asyncio.Transport) -> None:
        """Speak HTTP, if the client's certificate is allowed."""
        self._wire = transport
        tls = self._settings().config.tls_server_config
        if tls is not None and not is_allowed(transport, tls.client_allowed_sans):
            self.cut()
            return
        super().connection_made(transport)
        self._set_deadline(self._limits.head_seconds)
        early, self._early = self._early, []
        for data in early:
            self.data_received(data)

    def data_received(self, data: bytes) -> None:
        """Take a part of a request."""
        if self.handshake is not None:
            self._early.append(data)
            return
        if self._body_left is not None:
            self._body_left -= len(data)
            if self._body_left < 0:
                self.cut()
                return
        if self._between and data:
            self._between = False
            self._set_deadline(self._limits.head_seconds)
        super().data_received(data)

    def head_received(self, *, body: bool = False) -> None:
        """
        Note that a whole head has come; its answer has deadlines of its own.

        If a ``body`` follows, a little of it is read and ignored, so that the client reads the answer.
        """
        self._between = False
        self._set_deadline(None)
        self._pool.answer(self)
        if body:
            self._body_left = self._limits.body_bytes

    def until_taken(self, release: _Release) -> None:
        """Have ``release`` called once the answer to the current request is taken, or the client is gone."""
        if self._wire is None:
            release(taken=False)
        else:
            self._held.callback(lambda: release(taken=self._taken))

    async def finish_response(
        self, request: BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Send an answer."""
        self._taken, self._sending = False, True
        try:
            finished = await super().finish_response(request, resp, start_time)
            self._taken = self._wire is not None
        finally:
            self._sending = False
            if not self._paused:
                self._end_taking()
            self._held.close()
        if self._wire is not None:  # the client may have gone meanwhile
            self._pool.wait(self)
            self._between = True
            self._set_deadline(self._limits.idle_seconds)
        return finished

    def pause_writing(self) -> None:
        """
        Start the deadline of a client that takes the answer more slowly than it is written.

        All pieces of an answer have one deadline together.
        """
        super().pause_writing()
        if self._taking is None:
            self._taking = self._loop.call_later(self._limits.taking_seconds, self.cut)

    def resume_writing(self) -> None:
        """End the deadline, unless more of the answer follows: the client has taken most of the written part."""
        super().resume_writing()
        if not self._sending:
            self._end_taking()

    def _end_taking(self) -> None:
        """End the deadline for taking an answer, if there is one."""
        if self._taking is not None:
            self._taking.cancel()
            self._taking = None

    def connection_lost(self, exc: BaseException | None) -> None:
        """Give back all that the connection held, whichever side ended it."""
        self._set_deadline(None)
        self._end_taking()
        self._pool.leave(self)
        self._wire = None
        self._held.close()
        super().connection_lost(exc)

    def handle_error(
        self, request: BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        """
        Answer a request that is not HTTP.

        The log gets neither the request nor a traceback, with which clients could fill it; only defects of ours have
        one.
        """
        del message
        self.head_received()
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            self.log_exception("a request failed", exc_info=exc)
        else:
            self.logger.debug("no HTTP from %s: %r", request.remote, exc)
        text = f"{status} {HTTPStatus(status).phrase}\n"
        answer = web.Response(status=status, text=text)
        self._put_headers(answer.headers)
        answer.force_close()
        return answer

    def cut(self) -> None:
        """End the connection at once."""
        if self.handshake is not None:
            self.handshake.cancel()
        if self._wire is not None:
            self._wire.abort()

    def _set_deadline(self, seconds: float | None) -> None:
        """Replace the deadline after which the connection is cut; None for no deadline."""
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if seconds is None else self._loop.call_later(seconds, self.cut)


def most_connections(connections: int) -> int:
    """
    Return the number of client connections that the process can have at once.

    They take at most half of the files that the process may open, so that some are left for its own connections.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return connections if hard == resource.RLIM_INFINITY else min(connections, max(1, hard // 2))


def advice_of_files(connections: int) -> str:
    """Return the advice on how to allow the process this number of connections."""
    return (
        f"raise the limit of open files (ulimit -n, LimitNOFILE= of systemd) to {2 * connections}, or lower "
        "server.max_connections"
    )


def provide_connections(connections: int) -> int:
    """
    Raise the soft limit of open files, up to the hard one (setrlimit(2)), as far as this many connections need.

    Return the number of connections that the process can then have. If it is less, log a warning: with more, idle
    connections would take the last file, and the exporter would neither answer nor read a source.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 2 * connections
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    possible = most_connections(connections)
    if possible < connections:
        log.warning(
            "fewer connections at once than configured: the process may open too few files",
            connections=possible,
            max_connections=connections,
            open_files=soft,
            advice=advice_of_files(connections),
        )
    return possible
