"""Fetches one answer over HTTP, bounded even when compressed; raises a ``SourceError`` that says what to do."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

import aiohttp
from yarl import URL

from ..errors import SourceError, SourceUnreachable
from ..threads import ANSWERS
from ..untrusted import shown
from .budget import BUDGET, LARGE_BYTES, Body
from .peer import AGENT, ENCODING, OK, HttpTarget, Peer, Unpacker, no_http, too_long
from .shortening import Shortening

_CHUNK_BYTES = 1 << 16
_MOST_TAKEN: Final = 8
"""Longest body that is read while it is shortened, as a multiple of the longest answer."""
_ROOM_AFTER: Final = 0.8
"""Longest answer after shortening, as a share of the longest answer, so that it is not shortened again at once."""
_PACKED_BYTES = 1 << 12
"""Bytes that are unpacked before other tasks get their turn: they can become a thousand times as many."""
_QUICK: Final[int | None] = getattr(socket, "TCP_QUICKACK", None)
"""Socket option for quick acknowledgments; only Linux has it."""


class HttpFetch:
    """
    A session with one agent, or with a Prometheus.

    Args:
        target: Address and login of the server.
        hint: Advice for an answer that is not as it should be.
        peer: The words for it.

    """

    def __init__(self, target: HttpTarget, hint: str, peer: Peer = AGENT) -> None:
        self._target = target
        self._hint = hint
        self._peer = peer
        self._session: aiohttp.ClientSession | None = None
        self._closed = False
        self.doubtful = False
        """True if the last answer was long, and could not be used."""

    async def read(self, url: URL | None = None, body: bytes | None = None) -> bytes:
        """Return the body of an answer, as ``asked`` does, of a request that is made alone. Raises ``SourceError``."""
        async with self.asked(url, body) as answer:
            return bytes(answer)

    @asynccontextmanager
    async def asked(
        self, url: URL | None = None, body: bytes | None = None, shortening: Shortening | None = None
    ) -> AsyncIterator[bytearray]:
        """
        Yield the body of an answer.

        The request is a POST if there is a ``body`` to send, else a GET; without a ``url``, it goes to the target. The
        answer counts among those of all sources until the end of the block. One that is too long is made shorter by
        ``shortening`` while it is read. Raises ``SourceError``.
        """
        content, usable = Body(doubtful=self.doubtful), False
        deadline = asyncio.get_running_loop().time() + self._target.timeout_seconds
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout_at(deadline):
                    await stack.enter_async_context(BUDGET.turn(content))
            except TimeoutError:
                raise SourceUnreachable(
                    f"not read within {self._target.timeout_seconds:g} s: its last answer could not be used, and "
                    "others like it are read first"
                ) from None
            try:
                answer = await self._whole(url or URL(self._target.url), body, shortening, content, deadline)
                content.complete = True
                yield answer
                usable = True
            finally:
                BUDGET.close(content)
                self.doubtful = not usable and content.greatest > LARGE_BYTES

    async def _whole(
        self, url: URL, body: bytes | None, shortening: Shortening | None, held: Body, deadline: float
    ) -> bytearray:
        """
        Return the body of an answer. Raises ``SourceError``, whatever fails.

        Args:
            url: The address to ask.
            body: The body to send by POST; None for a GET.
            shortening: Makes an answer that is too long shorter; None to refuse it.
            held: The answer's part of the budget of all answers.
            deadline: Time until which the answer must be complete, by the event loop's clock.

        """
        try:
            async with asyncio.timeout_at(deadline):
                try:
                    return await self._once(url, body, shortening, held)
                except aiohttp.ClientConnectorError:
                    raise  # no connection could be opened, which a second attempt would not change
                except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
                    if held.gave_way:
                        raise
                    # An agent closes idle connections, and a restarted one knows none of them.
                    return await self._once(url, body, shortening, held)
        except TimeoutError:
            seconds = self._target.timeout_seconds
            raise self._peer.late(url.host, url.port, seconds, https=url.scheme == "https") from None
        except aiohttp.ClientError as error:
            if held.gave_way:
                await BUDGET.grow(held, 0)  # raises with the reason
            raise explained(error, self._hint, self._peer, https=url.scheme == "https") from error
        except (OSError, ValueError) as error:
            raise SourceUnreachable(f"cannot be asked: {shown(error)}") from error

    async def close(self) -> None:
        """Close the connections, for good: a read that is under way fails."""
        self._closed = True
        if self._session is not None:
            session, self._session = self._session, None
            await session.close()

    async def _once(self, url: URL, body: bytes | None, shortening: Shortening | None, held: Body) -> bytearray:
        """Send one request, and return the body of its answer. The arguments are those of ``_whole``."""
        if self._closed:
            raise SourceUnreachable("it is no longer a source")
        if self._session is None:
            tls, user = self._target.tls, self._target.username
            headers = {**self._target.headers, "Accept-Encoding": ENCODING}
            if user is not None:
                login = aiohttp.encode_basic_auth(user, self._target.password)
                headers.setdefault("Authorization", login)
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=2, ssl=True if tls is None else tls),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers=headers,
                auto_decompress=False,
                timeout=aiohttp.ClientTimeout(total=None),
            )
        method = "GET" if body is None else "POST"
        async with self._session.request(method, url, data=body, allow_redirects=False) as response:
            if response.status != OK:
                location, reason = response.headers.get("Location"), await self._reason(response)
                raise self._peer.refusal(response.status, str(response.url), location, reason, self._hint)
            held.give_way = response.close
            return await self._bounded(response, shortening, held)

    async def _reason(self, response: aiohttp.ClientResponse) -> str | None:
        """Return the error that the body of a refusal names; None where it names none."""
        if self._peer.reason is None:
            return None
        unpacker = Unpacker(response.headers.get("Content-Encoding", ""))
        content, _ = unpacker.unpacked(await response.content.read(_PACKED_BYTES), _CHUNK_BYTES)
        return self._peer.reason(content)

    async def _bounded(self, response: aiohttp.ClientResponse, shortening: Shortening | None, held: Body) -> bytearray:
        """
        Return the unpacked body of an answer, shortened if it is too long.

        It grows piece by piece, and each piece waits for its room in the budget. Raises ``AnswerTooLong`` if it cannot
        be made shorter.
        """
        body, max_bytes, bytes_taken = bytearray(), self._target.max_bytes, 0
        encoding = response.headers.get("Content-Encoding", "")
        unpacker = Unpacker("" if encoding == self._peer.packed_as else encoding)
        step = _PACKED_BYTES if unpacker.packed else _CHUNK_BYTES
        _acknowledge(response)
        async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
            _acknowledge(response)
            for start in range(0, len(chunk), step):
                rest_of_chunk = chunk[start : start + step]
                while rest_of_chunk:
                    piece, rest_of_chunk = unpacker.unpacked(rest_of_chunk, max_bytes - len(body))
                    bytes_taken += len(piece)
                    await BUDGET.grow(held, len(body) + len(piece))
                    body += piece
                    if len(body) > max_bytes:
                        if shortening is None or bytes_taken > _MOST_TAKEN * max_bytes:
                            raise too_long(max_bytes, self._hint)
                        await asyncio.wrap_future(ANSWERS.submit(shortening.shorten, body))
                        if shortening.enough:  # the rest would be left out
                            response.close()
                            return body
                        if len(body) > _ROOM_AFTER * max_bytes:
                            raise too_long(max_bytes, self._hint)
                    await asyncio.sleep(0)  # other tasks get their turn
        unpacker.check_complete()
        return body


def explained(error: aiohttp.ClientError, hint: str, peer: Peer = AGENT, *, https: bool) -> SourceError:
    """Return the meaning of a failure of the connection, and the remedy."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return peer.distrusted(error.certificate_error)
    if isinstance(error, aiohttp.ClientSSLError):
        return peer.without_tls(error.os_error)
    if isinstance(error, aiohttp.ClientConnectorError):
        return peer.unconnected(error.host, error.port, error.os_error)
    if isinstance(error, aiohttp.ClientConnectionError):
        return peer.disconnected(error, https=https)
    if isinstance(error, aiohttp.ClientPayloadError):
        return peer.cut_short()
    return no_http(hint)


def _acknowledge(response: aiohttp.ClientResponse) -> None:
    """
    Acknowledge at once what has arrived, and the next pieces.

    The JDK's HTTP server, behind which Jolokia and jmx_exporter answer, sends the end of an answer in a small piece of
    its own, when the one before is acknowledged (Nagle's algorithm). Linux delays that by 40 ms, and sets the option
    back by itself.
    """
    link = response.connection and response.connection.transport
    if link is not None and _QUICK is not None:
        link.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, _QUICK, 1)
