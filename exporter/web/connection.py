"""Connections: the deadlines of each, in which its client must ask and take the answer, and the places that all of them share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from http import HTTPStatus
from typing import TYPE_CHECKING, TypeAlias, cast

from aiohttp import web

from .limits import Limits
from .load import WebSettings
from .names import is_allowed

if TYPE_CHECKING:
    from aiohttp.web_request import BaseRequest
    from multidict import CIMultiDict

Guest: TypeAlias = object
Drop: TypeAlias = Callable[[], None]


class Guests:
    """
    The connections that there are: some whose request is being answered, and some that wait.

    They wait for a handshake, for the rest of a request, or for the next one. When all places are taken, a new
    connection gets that of the one that waited longest, so that waiting keeps no other out. The place of a connection
    whose request is being answered is never given away.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._drops: dict[Guest, Drop] = {}
        """Of all."""
        self._waiting: dict[Guest, None] = {}
        """Some of them, the longest first."""

    @property
    def asking(self) -> int:
        """How many requests are being answered."""
        return len(self._drops) - len(self._waiting)

    def __len__(self) -> int:
        return len(self._drops)

    def enter(self, guest: Guest, drop: Drop) -> bool:
        """A new connection, which ``drop`` ends; False when there is no room for it."""
        if len(self._drops) >= self._most and not self.make_room():
            return False
        self._drops[guest] = drop
        self._waiting[guest] = None
        return True

    def make_room(self) -> bool:
        """End the connection that waited longest; False when none waits."""
        if not self._waiting:
            return False
        longest = next(iter(self._waiting))
        del self._waiting[longest]
        self._drops.pop(longest)()
        return True

    def asks(self, guest: Guest) -> None:
        """Its request has come."""
        self._waiting.pop(guest, None)

    def waits(self, guest: Guest) -> None:
        """Its answer is taken; it waits from now on, if it is still there."""
        if guest in self._drops:
            self._waiting.setdefault(guest)

    def leave(self, guest: Guest) -> None:
        """The connection has ended."""
        self._waiting.pop(guest, None)
        self._drops.pop(guest, None)


class Connection(web.RequestHandler):
    """
    aiohttp's connection with deadlines, of which aiohttp itself has none for a request's head and for an answer.

    A client that misses one is cut off: an ordinary end would wait for what is still to be sent.

    Args:
        server: aiohttp's server.
        guests: The places of connections, one of which is its own.
        put_headers: Completes the headers of an answer; here of the answers to what is not HTTP.
        limits: The deadlines.
        settings: Those of the web config file, as they are now: whose certificates are allowed.

    """

    __slots__ = (
        "_between",
        "_body_left",
        "_deadline",
        "_guests",
        "_held",
        "_limits",
        "_put_headers",
        "_settings",
        "_taking",
        "_wire",
    )

    def __init__(
        self,
        server: web.Server,
        guests: Guests,
        put_headers: Callable[[CIMultiDict[str]], None],
        limits: Limits,
        settings: Callable[[], WebSettings],
    ) -> None:
        super().__init__(
            server,
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
        self._guests = guests
        self._put_headers = put_headers
        self._limits = limits
        self._settings = settings
        self._between = False
        self._body_left: int | None = None
        self._held = ExitStack()
        """What is held until the answer to the request at hand is taken."""
        self._wire: asyncio.Transport | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._taking: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The handshake of TLS, if there is one, is over: the client may go on if its certificate is allowed."""
        # kept apart: aiohttp forgets its own before the last of an answer is sent
        self._wire = cast("asyncio.Transport", transport)
        tls = self._settings().config.tls_server_config
        if tls is not None and not is_allowed(transport, tls.client_allowed_sans):
            self.cut()
            return
        super().connection_made(transport)
        self._within(self._limits.head_seconds)

    def data_received(self, data: bytes) -> None:
        """A piece of a request has come."""
        if self._body_left is not None:
            self._body_left -= len(data)
            if self._body_left < 0:
                self.cut()
                return
        if self._between and data:
            self._between = False
            self._within(self._limits.head_seconds)
        super().data_received(data)

    def asked(self, *, body: bool = False) -> None:
        """
        A whole head has come; its answer has deadlines of its own.

        Of a ``body`` that follows a little is taken and ignored, so that the client reads the answer.
        """
        self._between = False
        self._within(None)
        self._guests.asks(self)
        if body:
            self._body_left = self._limits.body_bytes

    def until_taken(self, release: Callable[[], None]) -> None:
        """Call this once the answer to the request at hand is taken, or the client is gone."""
        if self._wire is None:
            release()
        else:
            self._held.callback(release)

    async def finish_response(
        self,
        request: BaseRequest,
        resp: web.StreamResponse,
        start_time: float | None,
    ) -> tuple[web.StreamResponse, bool]:
        """Send an answer."""
        try:
            finished = await super().finish_response(request, resp, start_time)
        finally:
            self._held.close()
        if self._wire is not None:  # the client may have gone meanwhile
            self._guests.waits(self)
            self._between = True
            self._within(self._limits.idle_seconds)
        return finished

    def pause_writing(self) -> None:
        """The client takes the answer more slowly than it is written."""
        super().pause_writing()
        self._taking = self._loop.call_later(self._limits.taking_seconds, self.cut)

    def resume_writing(self) -> None:
        """The client took most of what was written."""
        super().resume_writing()
        if self._taking is not None:
            self._taking.cancel()

    def connection_lost(self, exc: BaseException | None) -> None:
        """The connection has ended, whichever side ended it: it gives back all that it held."""
        self._within(None)
        if self._taking is not None:
            self._taking.cancel()
        self._guests.leave(self)
        self._wire = None
        self._held.close()
        super().connection_lost(exc)

    def handle_error(
        self,
        request: BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer what is not HTTP: without repeating it, and without a traceback in the log, which strangers could fill. Defects have one."""
        del message
        self.asked()
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            self.log_exception("a request failed", exc_info=exc)
        else:
            self.logger.debug("no HTTP from %s: %r", request.remote, exc)
        text = f"{status} {HTTPStatus(status).phrase}\n"
        answer = web.Response(status=status, text=text)
        self._put_headers(answer.headers)
        answer.force_close()
        return answer

    @property
    def arrived(self) -> bool:
        """Whether the handshake is over."""
        return self._wire is not None

    def cut(self) -> None:
        """End the connection at once."""
        if self._wire is not None:
            self._wire.abort()

    def _within(self, seconds: float | None) -> None:
        """Cut the client off so many seconds from now, instead of when it was to be; None for never."""
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = (
            None if seconds is None else self._loop.call_later(seconds, self.cut)
        )
