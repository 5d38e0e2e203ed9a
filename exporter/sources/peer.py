"""The other end of a request over HTTP: its address and login, and errors that name what went wrong and a remedy."""

from __future__ import annotations

import socket
import ssl
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urljoin, urlsplit

from ..errors import (
    AnswerLate,
    AnswerTooLong,
    SourceDenied,
    SourceError,
    SourceUnreachable,
    SourceUnreadable,
    os_reason,
)
from ..untrusted import shown

MEBIBYTE: Final = 1 << 20
OK: Final = 200
_REDIRECTS = range(300, 400)
_DENIED = (401, 403, 407)
_NOT_FOUND = 404
ENCODING: Final = "gzip"
"""Value of `Accept-Encoding`."""
_GZIP: Final = {"gzip", "x-gzip"}
_PLAIN: Final = {"", "identity"}
_GZIP_WINDOW: Final = 31
_BY_DATE: Final = {9, 10}
"""
Error codes of certificates by date: OpenSSL's ``X509_V_ERR_CERT_NOT_YET_VALID`` and ``X509_V_ERR_CERT_HAS_EXPIRED``.
"""


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
    """User for basic authentication."""
    password: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Sent along with every request."""
    tls: ssl.SSLContext | None = field(default=None, repr=False)
    """TLS settings for https; None trusts the system's authorities."""
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
    """Function that finds the error in the body of a refusal, if this kind of server names one there."""
    packed_as: str = ""
    """`Content-Encoding` of answers that are left packed, as their protocol says, for a reader that bounds them."""

    def late(self, host: str | None, port: int | None, seconds: float, *, https: bool) -> AnswerLate:
        """Return the error of an answer that is not complete in time."""
        maybe = ", this port does not speak https" if https else ""
        return AnswerLate(
            f"no complete answer from {shown(f'{host}:{port}')} within {seconds:g} s: {self.silent.format(maybe=maybe)}"
        )

    def distrusted(self, reason: object) -> SourceDenied:
        """Return the error of a certificate that is not trusted."""
        advice = f"{self.trust}, and use the name it was made for"
        if getattr(reason, "verify_code", None) in _BY_DATE:
            advice = "renew it, or set the clock of this machine"
        return SourceDenied(f"its certificate is not trusted ({shown(reason)}): {advice}")

    def without_tls(self, error: OSError) -> SourceUnreadable:
        """Return the error of a handshake that failed."""
        return SourceUnreadable(
            f"TLS failed ({shown(os_reason(error))}): does this port speak https, and does it require a client "
            "certificate?"
        )

    def unconnected(self, host: str | None, port: int | None, error: OSError) -> SourceUnreachable:
        """
        Return the error of a connection that could not be opened.

        >>> str(Peer().unconnected("nohost", 1, socket.gaierror(-2, "not known"))).partition(": ")[2]
        "check the host's spelling, and the DNS of this machine"
        """
        advice = self.unreached
        if isinstance(error, socket.gaierror):
            advice = "check the host's spelling, and the DNS of this machine"
        return SourceUnreachable(f"no connection to {host}:{port} ({shown(os_reason(error))}): {advice}")

    def disconnected(self, error: Exception, *, https: bool) -> SourceUnreachable:
        """Return the error of a connection that ended before an answer."""
        doubt = "does it want a client certificate, or another one" if https else "is this port https"
        return SourceUnreachable(f"the connection ended before an answer ({shown(error)}): {self.ended}, or {doubt}?")

    def cut_short(self) -> SourceUnreachable:
        """Return the error of a connection that ended in the middle of an answer."""
        return SourceUnreachable(f"the connection ended in the middle of the answer: {self.ended}?")

    def refusal(self, status: int, url: str, location: str | None, reason: str | None, hint: str) -> SourceError:
        """
        Return the error of a status other than 200.

        Args:
            status: The status of the answer.
            url: The address that was asked.
            location: The target of a redirect.
            reason: The error that the body of the answer names.
            hint: Advice on what to check.

        """
        if status in _DENIED:
            return SourceDenied(f"HTTP {status}: {self.name} refuses these credentials; {self.login}")
        if status in _REDIRECTS:
            place = _public(url, location)
            return SourceUnreadable(
                f"HTTP {status}: redirects to {place}; redirects are not followed, configure the final url"
            )
        if reason is not None:
            return SourceUnreadable(f"HTTP {status}: {self.name} says: {reason}")
        if status == _NOT_FOUND:
            return SourceUnreadable(f"HTTP 404: nothing at this path; {hint}")
        return SourceUnreadable(f"HTTP {status} instead of 200; {hint}")


AGENT: Final = Peer()


def too_long(max_bytes: int, hint: str) -> AnswerTooLong:
    """Return the error of an answer that is longer than ``max_bytes``."""
    return AnswerTooLong(f"the answer is longer than {max_bytes / MEBIBYTE:g} MiB (max_answer_bytes); {hint}")


def no_http(hint: str) -> SourceUnreadable:
    """Return the error of an answer that is not HTTP."""
    return SourceUnreadable(f"this is not valid HTTP; {hint}")


def _public(url: str, location: str | None) -> str:
    """Return the target of a redirect, without the parts of a URL that may be secret."""
    try:
        parts = urlsplit(urljoin(url, location or ""))
        public = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
    except ValueError:
        location = None
    return "an invalid address" if location is None else shown(public)


class Unpacker:
    """
    Unpacks the pieces of one body.

    zlib is called piece by piece and with a bound, so that a small answer cannot become a large one; at the end it
    checks that the body is complete, since half an answer must not pass for a whole one.

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
        """The unpacker of the present member: a body in gzip format may be several members, one after the other."""
        self._begun = False
        """True if a piece was unpacked."""

    def unpacked(self, piece: bytes, max_bytes: int) -> tuple[bytes, bytes]:
        """
        Return at most ``max_bytes`` + 1 bytes of the content of a piece, and the rest of the piece.

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
                # what the bound left packed, or else what stands behind the member
                piece = self._member.unconsumed_tail or self._member.unused_data
        except zlib.error as error:
            raise SourceUnreadable(
                f"the answer says it is compressed, but cannot be unpacked ({shown(error)})"
            ) from None
        self._begun = True
        return bytes(content), piece

    def check_complete(self) -> None:
        """Raise ``SourceUnreachable`` when the body ended too early."""
        if self._begun and not self._member.eof:
            raise SourceUnreachable(
                "the answer ended in the middle of what is compressed: is the node shutting down, or does a proxy "
                "cut it?"
            )
