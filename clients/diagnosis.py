"""
Why a cluster that can be reached did not let us in.

kafka-python says "socket disconnected" or "timeout" for a wrong password, a mechanism that is off, a missing client certificate,
a listener of another protocol and a broker that stops alike. This asks the server again, and tells them apart. Only the
broker's own answer (error 58 of SaslAuthenticate, KIP-152) is a wrong password: a connection that ends says nothing of it.
"""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Callable

from .errors import AdminUnreachable, AuthenticationFailed, ClientError, TlsFailed
from .reach import open_first, refusal, refused_by_server
from .security import Connection, Sasl, SaslMechanism

_HANDSHAKE = 17
_VERSION = 1
_AUTHENTICATE = 36
_MOST_BYTES = 10_000
_UNSUPPORTED_MECHANISM = 33
_ILLEGAL_STATE = 34
_AUTHENTICATION_FAILED = 58


def diagnose(
    connection: Connection, complaint: str, refusal_told: str | None = None
) -> ClientError:
    """
    The error that says what keeps us out.

    Args:
        connection: how to ask again. The password goes over it as the library has sent it, for PLAIN only.
        complaint: what the library said.
        refusal_told: the broker's words when it answered the library that it refuses the credentials.

    """
    if connection.sasl is None:
        if connection.protocol.uses_tls and (reason := refusal(connection)) is not None:
            return TlsFailed(connection.bootstrap_servers, reason)
        hint = f"the server does not talk {connection.protocol} on this port, or went away ({complaint})"
        return AdminUnreachable(connection.bootstrap_servers, hint)
    if refusal_told is not None:
        return _refused(connection.sasl, refusal_told)
    try:
        return _asked_again(connection, connection.sasl, complaint)
    except ssl.SSLError as error:
        return TlsFailed(connection.bootstrap_servers, refused_by_server(error))
    except (OSError, ValueError, struct.error, ClientError):
        hint = f"the connection ended before authentication ({complaint})"
        return AdminUnreachable(connection.bootstrap_servers, hint)


def _asked_again(connection: Connection, sasl: Sasl, complaint: str) -> ClientError:
    with open_first(connection) as opened:
        code, offered = _handshake(opened, connection, sasl)
        if code == _UNSUPPORTED_MECHANISM:
            listed = ", ".join(offered) or "no mechanism"
            return _refused(sasl, f"the listener offers {listed}")
        if code == _ILLEGAL_STATE:
            return _refused(sasl, "the listener does not use SASL")
        if sasl.mechanism is SaslMechanism.PLAIN:
            code, message = _authenticate_plainly(opened, connection, sasl)
            if code == _AUTHENTICATION_FAILED:
                return _refused(sasl, message)
    return AdminUnreachable(
        connection.bootstrap_servers,
        f"the connection ended during authentication ({complaint}), and the broker does not say that the password is wrong: "
        "it may be stopping or overloaded",
    )


def _refused(sasl: Sasl, reason: str) -> AuthenticationFailed:
    return AuthenticationFailed(sasl.username, sasl.mechanism, reason)


def _handshake(
    opened: socket.socket, connection: Connection, sasl: Sasl
) -> tuple[int, list[str]]:
    """Error code and offered mechanisms of a SaslHandshake, which goes before any credentials."""
    header = struct.pack(">hhi", _HANDSHAKE, _VERSION, 0)
    request = header + _text(connection.client_id) + _text(sasl.mechanism)
    return _mechanisms(_answer(opened, request))


def _authenticate_plainly(
    opened: socket.socket, connection: Connection, sasl: Sasl
) -> tuple[int, str]:
    """Error code and message of a SaslAuthenticate version 0 by PLAIN (RFC 4616)."""
    token = f"\0{sasl.username}\0{sasl.password.reveal()}".encode()
    header = struct.pack(">hhi", _AUTHENTICATE, 0, 1) + _text(connection.client_id)
    answer = _answer(opened, header + struct.pack(">i", len(token)) + token)
    code, length = struct.unpack_from(">hh", answer, 4)
    message = answer[8 : 8 + max(0, length)].decode("utf-8", "replace")
    return code, message or "it gives no reason"


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
