"""
Diagnosis of a cluster that can be reached and refuses the login.

kafka-python says "socket disconnected" or "timeout" for a wrong password, a mechanism that is off, a missing client
certificate, a listener of another protocol and a broker that stops alike. This connects to the server again, and
distinguishes them. Only the broker's own answer (error 58 of SaslAuthenticate, KIP-152) is a wrong password: a
connection that ends does not show it.
"""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Callable
from typing import Protocol

from quotascope.metrics.kafka.protocol import ApiKey, ErrorCode

from .errors import AdminUnreachable, AuthenticationFailed, ClientError, TlsFailed
from .reach import open_first, refusal, refused_by_server
from .security import Connection, Sasl

_VERSION = 1
_MOST_BYTES = 10_000


class Exchange(Protocol):
    """
    The client's part of a SASL mechanism.

    Its methods raise ``ValueError`` or ``LookupError`` for what makes no sense.
    """

    def auth_bytes(self) -> bytes:
        """Return the bytes to send next."""
        ...

    def receive(self, auth_bytes: bytes) -> object:
        """Process the server's answer."""
        ...

    def is_done(self) -> bool:
        """Return whether the exchange is complete."""
        ...


def diagnose(connection: Connection, complaint: str, exchange: Callable[[Sasl, str], Exchange]) -> ClientError:
    """
    Return an error that states why the login failed.

    Args:
        connection: the way to the cluster, on which the same credentials are sent once more.
        complaint: what the library said.
        exchange: begins the connection's SASL mechanism with a host.

    """
    if connection.sasl is None:
        if connection.protocol.uses_tls and (reason := refusal(connection)) is not None:
            return TlsFailed(connection.bootstrap_servers, reason)
        hint = (
            f"the server does not talk {connection.protocol} on this port, limits new connections, "
            f"or went away ({complaint})"
        )
        return AdminUnreachable(connection.bootstrap_servers, hint)
    try:
        reported = _log_in_again(connection, connection.sasl, exchange)
    except ssl.SSLError as error:
        return TlsFailed(connection.bootstrap_servers, refused_by_server(error))
    except (OSError, LookupError, ValueError, struct.error, ClientError):
        hint = f"the connection ended before authentication ({complaint})"
        return AdminUnreachable(connection.bootstrap_servers, hint)
    if reported is None:
        hint = (
            f"the connection ended ({complaint}); the login is accepted: the broker may have been starting or stopping"
        )
        return AdminUnreachable(connection.bootstrap_servers, hint)
    sasl = connection.sasl
    return AuthenticationFailed(sasl.username, sasl.mechanism, reported, sasl.credential)


def _log_in_again(connection: Connection, sasl: Sasl, exchange: Callable[[Sasl, str], Exchange]) -> str | None:
    """
    Log in again, and return the broker's reason for a refusal, None if it accepts the credentials.

    Raises connection errors.
    """
    opened, host = open_first(connection)
    with opened:
        code, offered = _handshake(opened, connection, sasl)
        if code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            return f"the listener offers {', '.join(offered) or 'no mechanism'}"
        if code == ErrorCode.ILLEGAL_SASL_STATE:
            return "the listener does not use SASL"
        steps = exchange(sasl, host)
        while not steps.is_done():
            code, message, answer = _authenticate(opened, connection, steps.auth_bytes())
            if code != ErrorCode.NONE:
                reason = message or f"error {code}"
                claims = sasl.tokens.refused() if sasl.tokens else ""
                return f"{reason} (the broker has to accept its {claims})" if claims else reason
            steps.receive(answer)
    return None


def _handshake(opened: socket.socket, connection: Connection, sasl: Sasl) -> tuple[int, list[str]]:
    """Return error code and offered mechanisms of a SaslHandshake, which comes before any credentials."""
    header = struct.pack(">hhi", ApiKey.SASL_HANDSHAKE, _VERSION, 0)
    request = header + _text(connection.client_id) + _text(sasl.mechanism.on_the_wire)
    return _mechanisms(_answer(opened, request))


def _authenticate(opened: socket.socket, connection: Connection, token: bytes) -> tuple[int, str, bytes]:
    """Return error code, message and bytes of the answer to a SaslAuthenticate version 0."""
    header = struct.pack(">hhi", ApiKey.SASL_AUTHENTICATE, 0, 1) + _text(connection.client_id)
    answer = _answer(opened, header + struct.pack(">i", len(token)) + token)
    code, length = struct.unpack_from(">hh", answer, 4)
    end = 8 + max(0, length)
    message = answer[8:end].decode("utf-8", "replace")
    (size,) = struct.unpack_from(">i", answer, end)
    return code, message, answer[end + 4 : end + 4 + max(0, size)]


def _answer(opened: socket.socket, request: bytes) -> bytes:
    opened.sendall(struct.pack(">i", len(request)) + request)
    (size,) = struct.unpack(">i", _exactly(opened.recv, 4))
    return _exactly(opened.recv, min(size, _MOST_BYTES))


def _mechanisms(answer: bytes) -> tuple[int, list[str]]:
    code, count = struct.unpack_from(">hi", answer, 4)
    mechanisms = []
    position = 10
    for _ in range(count):
        (length,) = struct.unpack_from(">H", answer, position)
        mechanisms.append(answer[position + 2 : position + 2 + length].decode())
        position += 2 + length
    return code, sorted(mechanisms)


def _exactly(receive: Callable[[int], bytes], size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = receive(size - len(data))
        if not part:
            raise ConnectionError("closed")
        data += part
    return data


def _text(value: str) -> bytes:
    data = value.encode()
    return struct.pack(">h", len(data)) + data
