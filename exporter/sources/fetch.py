"""Fetches one answer over HTTP, bounded even when compressed; raises a ``SourceError`` that says what to do."""

from __future__ import annotations

import asyncio
import socket
import ssl
import zlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import aiohttp
from yarl import URL

from ..errors import AnswerTooLong, SourceDenied, SourceError, SourceUnreachable, SourceUnreadable, os_reason
from ..threads import ANSWERS
from ..untrusted import shown
from .budget import BUDGET, LARGE_BYTES, Body
from .shortening import Shortening

MEBIBYTE: Final = 1 << 20
_CHUNK_BYTES = 1 << 16
_MOST_TAKEN: Final = 8
"""Times the longest answer that are read of one that is made shorter."""
_ROOM_AFTER: Final = 0.8
"""Share of the longest answer that an answer may have that was made shorter, so that this is not done again at once."""
_PACKED_BYTES = 1 << 12
"""Bytes that are unpacked before other tasks get their turn: they can become a thousand times as much."""
_OK = 200
_REDIRECTS = range(300, 400)
_DENIED = (401, 403, 407)
_NOT_FOUND = 404
_ASKED_FOR: Final = "gzip"
"""Value of `Accept-Encoding`."""
_GZIP: Final = {"gzip", "x-gzip"}
_PLAIN: Final = {"", "identity"}
_GZIP_WINDOW: Final = 31
_BY_DATE: Final = {9, 10}
"""OpenSSL's ``X509_V_ERR_CERT_NOT_YET_VALID`` and ``X509_V_ERR_CERT_HAS_EXPIRED``."""
_QUICK: Final[int | None] = getattr(socket, "TCP_QUICKACK", None)
"""Linux only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpTarget:
    """One agent. Its secrets never show in ``repr``."""

    url: str
    """http or https, without a user or password in it."""
    node_id: str | None = None
    """Kafka's ``node.id``; None leaves it to the node to report."""
    timeout_seconds: float = 60.0
    """Longest wait for one complete answer, and for all that one read needs."""
    username: str | None = None
    """For basic authentication."""
    password: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Sent along with every request."""
    tls: ssl.SSLContext | None = field(default=None, repr=False)
    """For https; None trusts the system's authorities."""
    max_bytes: int = 64 * MEBIBYTE
    """An answer that is longer, decompressed, is not read to its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """The name of the server in messages, and the advice to check it."""

    name: str = "the agent"
    silent: str = "the node is overloaded or stuck{maybe}, or timeout_seconds is too short for this many clients"
    unreached: str = "is the node up, its agent loaded, and the port open from here?"
    ended: str = "is the node shutting down"
    login: str = "check basic_auth and headers of this source"
    trust: str = "set tls.ca_file to the authority that signed it"
    reason: Callable[[bytes], str | None] | None = None
    """What finds the error that the body of a refusal names, where this kind of server names one."""


AGENT: Final = Peer()


class HttpFetch:
    """
    A session with one agent, or with an exporter.

    Args:
        target: Where it answers.
        hint: What to check when it answers, but not as it should.
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
        """Return the body of an answer as ``asked`` gives it, of one that is asked alone. Raises ``SourceError``."""
        async with self.asked(url, body) as answer:
            return bytes(answer)

    @asynccontextmanager
    async def asked(
        self, url: URL | None = None, body: bytes | None = None, shortening: Shortening | None = None
    ) -> AsyncIterator[bytearray]:
        """
        Yield the body of an answer.

        To POST with a ``body`` to send, to GET without; of the target when no ``url`` is given. It counts among the
        answers of all sources until the end of the block. One that is too long is made shorter by ``shortening`` while
        it is read. Raises ``SourceError``.
        """
        held, usable = Body(doubtful=self.doubtful), False
        deadline = asyncio.get_running_loop().time() + self._target.timeout_seconds
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout_at(deadline):
                    await stack.enter_async_context(BUDGET.turn(held))
            except TimeoutError:
                raise SourceUnreachable(
                    f"not read within {self._target.timeout_seconds:g} s: its last answer could not be used, and "
                    "others like it are read first"
                ) from None
            try:
                answer = await self._whole(url or URL(self._target.url), body, shortening, held, deadline)
                held.complete = True
                yield answer
                usable = True
            finally:
                BUDGET.close(held)
                self.doubtful = not usable and held.greatest > LARGE_BYTES

    async def _whole(
        self, url: URL, body: bytes | None, shortening: Shortening | None, held: Body, deadline: float
    ) -> bytearray:
        try:
            async with asyncio.timeout_at(deadline):
                try:
                    return await self._once(url, body, shortening, held)
                except aiohttp.ClientConnectorError:
                    raise
                except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
                    if held.gave_way:
                        raise
                    # An agent closes idle connections, and a restarted one knows none of them.
                    return await self._once(url, body, shortening, held)
        except TimeoutError:
            maybe = ", this port does not speak https" if url.scheme == "https" else ""
            raise SourceUnreachable(
                f"no complete answer from {shown(f'{url.host}:{url.port}')} within "
                f"{self._target.timeout_seconds:g} s: {self._peer.silent.format(maybe=maybe)}"
            ) from None
        except aiohttp.ClientError as error:
            if held.gave_way:
                await BUDGET.grow(held, 0)  # says why
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
        if self._closed:
            raise SourceUnreachable("it is no longer a source")
        if self._session is None:
            tls, user = self._target.tls, self._target.username
            headers = {**self._target.headers, "Accept-Encoding": _ASKED_FOR}
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
            if response.status != _OK:
                raise self._refused(response, await self._reason(response))
            held.give_way = response.close
            return await self._bounded(response, shortening, held)

    async def _reason(self, response: aiohttp.ClientResponse) -> str | None:
        """Return the error that the body of a refusal names, None where it names none."""
        if self._peer.reason is None:
            return None
        unpacker = Unpacker(response.headers.get("Content-Encoding", ""))
        content, _ = unpacker.unpacked(await response.content.read(_PACKED_BYTES), _CHUNK_BYTES)
        return self._peer.reason(content)

    def _refused(self, response: aiohttp.ClientResponse, reason: str | None) -> SourceError:
        status = response.status
        if status in _DENIED:
            return SourceDenied(f"HTTP {status}: {self._peer.name} refuses these credentials; {self._peer.login}")
        if status in _REDIRECTS:
            try:
                url = response.url.join(URL(response.headers["Location"]))
                # without the parts of a URL that may be secret
                place = shown(url.with_user(None).with_query(None).with_fragment(None))
            except (KeyError, ValueError):
                place = "an invalid address"
            return SourceUnreadable(
                f"HTTP {status}: redirects to {place}; redirects are not followed, configure the final url"
            )
        if reason is not None:
            return SourceUnreadable(f"HTTP {status}: {self._peer.name} says: {reason}")
        if status == _NOT_FOUND:
            return SourceUnreadable(f"HTTP 404: nothing at this path; {self._hint}")
        return SourceUnreadable(f"HTTP {status} instead of 200; {self._hint}")

    def _too_long(self) -> AnswerTooLong:
        # made where it is raised: in a variable, it would keep the frame with the answer until a collection of garbage
        max_mebibytes = self._target.max_bytes / MEBIBYTE
        return AnswerTooLong(f"the answer is longer than {max_mebibytes:g} MiB (max_answer_bytes); {self._hint}")

    async def _bounded(self, response: aiohttp.ClientResponse, shortening: Shortening | None, held: Body) -> bytearray:
        body, max_bytes, taken = bytearray(), self._target.max_bytes, 0
        unpacker = Unpacker(response.headers.get("Content-Encoding", ""))
        step = _PACKED_BYTES if unpacker.packed else _CHUNK_BYTES
        _acknowledge(response)
        async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
            _acknowledge(response)
            for start in range(0, len(chunk), step):
                rest_of_chunk = chunk[start : start + step]
                while rest_of_chunk:
                    piece, rest_of_chunk = unpacker.unpacked(rest_of_chunk, max_bytes - len(body))
                    taken += len(piece)
                    await BUDGET.grow(held, len(body) + len(piece))
                    body += piece
                    if len(body) > max_bytes:
                        if shortening is None or taken > _MOST_TAKEN * max_bytes:
                            raise self._too_long()
                        await asyncio.wrap_future(ANSWERS.submit(shortening.shorten, body))
                        if shortening.enough:
                            response.close()
                            return body
                        if len(body) > _ROOM_AFTER * max_bytes:
                            raise self._too_long()
                    await asyncio.sleep(0)
        unpacker.check_complete()
        return body


def explained(error: aiohttp.ClientError, hint: str, peer: Peer = AGENT, *, https: bool) -> SourceError:
    """Return the meaning of a failure of the connection, and the remedy."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        reason, advice = error.certificate_error, f"{peer.trust}, and use the name it was made for"
        if getattr(reason, "verify_code", None) in _BY_DATE:
            advice = "renew it, or set the clock of this machine"
        return SourceDenied(f"its certificate is not trusted ({shown(reason)}): {advice}")
    if isinstance(error, aiohttp.ClientSSLError):
        return SourceUnreadable(
            f"TLS failed ({shown(os_reason(error.os_error))}): does this port speak https, and does it require a "
            "client certificate?"
        )
    if isinstance(error, aiohttp.ClientConnectorError):
        return SourceUnreachable(
            f"no connection to {error.host}:{error.port} ({shown(os_reason(error.os_error))}): {peer.unreached}"
        )
    if isinstance(error, aiohttp.ClientConnectionError):
        doubt = "does it want a client certificate, or another one" if https else "is this port https"
        return SourceUnreachable(f"the connection ended before an answer ({shown(error)}): {peer.ended}, or {doubt}?")
    if isinstance(error, aiohttp.ClientPayloadError):
        return SourceUnreachable(f"the connection ended in the middle of the answer: {peer.ended}?")
    return SourceUnreadable(f"this is not valid HTTP; {hint}")


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


class Unpacker:
    """
    Unpacks the pieces of one body.

    zlib is called piece by piece and with a bound, so that a small answer cannot become a large one; at the end it says
    whether that was all, since half an answer must not pass for a whole one.

    Args:
        encoding: The answer's ``Content-Encoding``. Raises ``SourceUnreadable`` for one that was not requested.

    """

    def __init__(self, encoding: str) -> None:
        word = encoding.strip().lower()
        if word not in _GZIP | _PLAIN:
            raise SourceUnreadable(
                f"the answer is compressed as {shown(encoding)!r}, which was not requested: does a proxy compress it?"
            )
        self.packed = word in _GZIP
        """True if a piece can hold more than its length."""
        self._member = zlib.decompressobj(_GZIP_WINDOW)
        self._begun = False

    def unpacked(self, piece: bytes, max_bytes: int) -> tuple[bytes, bytes]:
        """
        Return the content of a piece, but no more than ``max_bytes`` bytes and one, and the rest of the piece.

        Raises ``SourceUnreadable``.
        """
        if not self.packed:
            return piece, b""
        content = bytearray()
        try:
            while piece and len(content) <= max_bytes:
                if self._member.eof:
                    self._member = zlib.decompressobj(_GZIP_WINDOW)
                content += self._member.decompress(piece, max_bytes + 1 - len(content))
                piece = self._member.unconsumed_tail or self._member.unused_data
        except zlib.error as error:
            raise SourceUnreadable(
                f"the answer says it is compressed, but cannot be unpacked ({shown(error)})"
            ) from None
        self._begun = True
        return bytes(content), piece

    def check_complete(self) -> None:
        """Raise ``SourceUnreachable`` when there should have been more."""
        if self._begun and not self._member.eof:
            raise SourceUnreachable(
                "the answer ended in the middle of what is compressed: is the node shutting down, or does a proxy "
                "cut it?"
            )
