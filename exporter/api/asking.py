"""
Asks a running exporter over HTTP, once for each connection.

Commands ask one URL and end. The standard library's client does that with the bounds and errors of ``sources/fetch``,
and without the import of aiohttp, which takes longer than the question.
"""

from __future__ import annotations

import asyncio
import ssl
from base64 import b64encode
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, IncompleteRead, RemoteDisconnected
from socket import SHUT_RDWR, create_connection
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlsplit

from ..errors import SourceError, SourceUnreachable
from ..sources.peer import ENCODING, OK, HttpTarget, Peer, Unpacker, no_http, too_long
from ..threads import in_daemon_thread
from ..untrusted import shown

if TYPE_CHECKING:
    from urllib.parse import SplitResult

_CHUNK_BYTES: Final = 1 << 16
_REASON_BYTES: Final = 1 << 12
_PORTS: Final = {"http": 80, "https": 443}
_KEPT: Final = "/?%:@!$&'()*+,;=[]~"
"""Characters of a path and query that are not percent-encoded."""


async def ask(target: HttpTarget, url: str, hint: str, peer: Peer) -> bytes:
    """
    Return the body of the answer to a GET.

    Args:
        target: The login, the longest wait, and the longest answer.
        url: The address to ask: the target's, or another one of the same exporter.
        hint: Advice for an answer that is not as it should be.
        peer: The words for it.

    Raises:
        SourceError: There is no complete answer in time, or another status than 200.

    """
    exchange = _Exchange(target, url, hint, peer)
    try:
        async with asyncio.timeout(target.timeout_seconds):
            # a daemon thread, as looking up the host can hang for longer than anybody waits
            return await asyncio.wrap_future(in_daemon_thread("ask", exchange.answer))
    except TimeoutError:
        raise exchange.late() from None
    finally:
        exchange.end()


class _Exchange:
    """One request and its answer, in a thread that ends when the connection is shut down."""

    def __init__(self, target: HttpTarget, url: str, hint: str, peer: Peer) -> None:
        self._target, self._hint, self._peer = target, hint, peer
        self._url: SplitResult = urlsplit(url)
        self._https = self._url.scheme == "https"
        self._host, self._port = self._url.hostname or "", self._url.port or _PORTS[self._url.scheme]
        self._connection = HTTPConnection(self._host, self._port)

    def late(self) -> SourceUnreachable:
        """Return the error of an answer that is not complete in time."""
        return self._peer.late(self._host, self._port, self._target.timeout_seconds, https=self._https)

    def end(self) -> None:
        """End a read that still waits for the exporter."""
        if (connected := self._connection.sock) is not None:
            with suppress(OSError):
                connected.shutdown(SHUT_RDWR)

    def answer(self) -> bytes:
        """Return the body. Raises ``SourceError``."""
        peer, https = self._peer, self._https
        try:
            self._connect()
            path_and_query = self._url._replace(scheme="", netloc="", fragment="").geturl()
            path = quote(path_and_query or "/", safe=_KEPT)
            self._connection.request("GET", path, headers=self._headers())
            with self._connection.getresponse() as response:
                return self._body(response)
        except ssl.SSLCertVerificationError as error:
            raise peer.distrusted(error) from error
        except IncompleteRead as error:
            raise peer.cut_short() from error
        except RemoteDisconnected as error:
            raise peer.disconnected(error, https=https) from error
        except HTTPException as error:
            raise no_http(self._hint) from error
        except ssl.SSLError as error:
            raise peer.without_tls(error) from error
        except OSError as error:
            raise peer.disconnected(error, https=https) from error
        except ValueError as error:
            raise SourceUnreachable(f"cannot be asked: {shown(error)}") from error
        finally:
            self._connection.close()

    def _connect(self) -> None:
        """Open the connection, with TLS for https."""
        try:
            # a little longer than `ask` waits, so that `ask` reports the timeout
            plain = create_connection((self._host, self._port), self._target.timeout_seconds + 1)
        except OSError as error:
            raise self._peer.unconnected(self._host, self._port, error) from error
        self._connection.sock = plain
        if self._https:
            tls = self._target.tls or ssl.create_default_context()
            self._connection.sock = tls.wrap_socket(plain, server_hostname=self._host)

    def _headers(self) -> dict[str, str]:
        """Return the headers of the request; a configured header takes precedence over the login."""
        headers = {**self._target.headers, "Accept-Encoding": ENCODING, "Connection": "close"}
        if (user := self._target.username) is not None:
            login = b64encode(f"{user}:{self._target.password}".encode()).decode()
            headers.setdefault("Authorization", f"Basic {login}")
        return headers

    def _body(self, response: HTTPResponse) -> bytes:
        """Return the unpacked body of an answer. Raises ``SourceError`` if it is too long, or not complete."""
        unpacker = Unpacker(response.headers.get("Content-Encoding", ""))
        if response.status != OK:
            raise self._refusal(response, unpacker)
        body, max_bytes = bytearray(), self._target.max_bytes
        while chunk := response.read(_CHUNK_BYTES):
            content, _ = unpacker.unpacked(chunk, max_bytes - len(body))
            body += content
            if len(body) > max_bytes:
                raise too_long(max_bytes, self._hint)
        if response.length:  # the bytes that are missing of Content-Length
            raise self._peer.cut_short()
        unpacker.check_complete()
        return bytes(body)

    def _refusal(self, response: HTTPResponse, unpacker: Unpacker) -> SourceError:
        """Return the error of an answer with another status than 200, with the exporter's reason if it gives one."""
        reason = None
        if self._peer.reason is not None:
            content, _ = unpacker.unpacked(response.read(_REASON_BYTES), _CHUNK_BYTES)
            reason = self._peer.reason(content)
        return self._peer.refusal(
            response.status, self._url.geturl(), response.headers.get("Location"), reason, self._hint
        )
