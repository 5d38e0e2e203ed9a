"""
Why a cluster that can be reached did not let us in.

kafka-python says "socket disconnected" or "timeout" for a wrong password, a mechanism that is off, a missing client certificate
and a listener of another protocol alike. This asks the server again, without the password, and tells them apart.
"""

from __future__ import annotations

import ssl
import struct
from collections.abc import Callable

from .errors import AdminUnreachable, AuthenticationFailed, ClientError, TlsFailed
from .reach import open_first, refusal, refused_by_server
from .security import Connection, Sasl

_HANDSHAKE = 17
_VERSION = 1
_UNSUPPORTED_MECHANISM = 33
_ILLEGAL_STATE = 34


def diagnose(connection: Connection, complaint: str) -> ClientError:
    """The error that says what most likely keeps us out; `complaint` is what the library said."""
    if connection.sasl is None:
        if connection.protocol.uses_tls and (reason := refusal(connection)) is not None:
            return TlsFailed(connection.bootstrap_servers, reason)
        hint = f"the server does not talk {connection.protocol} on this port, or went away ({complaint})"
        return AdminUnreachable(connection.bootstrap_servers, hint)
    try:
        code, offered = _handshake(connection, connection.sasl)
    except ssl.SSLError as error:
        return TlsFailed(connection.bootstrap_servers, refused_by_server(error))
    except (OSError, ValueError, struct.error, ClientError):
        hint = f"the connection ended before authentication ({complaint})"
        return AdminUnreachable(connection.bootstrap_servers, hint)
    return AuthenticationFailed(
        connection.sasl.username, connection.sasl.mechanism, _sasl_reason(code, offered)
    )


def _sasl_reason(code: int, offered: list[str]) -> str:
    if code == _UNSUPPORTED_MECHANISM:
        return f"the listener offers {', '.join(offered) or 'no mechanism'}"
    if code == _ILLEGAL_STATE:
        return "the listener does not use SASL"
    return "it closed the connection, as it does for a wrong user name or password"


def _handshake(connection: Connection, sasl: Sasl) -> tuple[int, list[str]]:
    """Error code and offered mechanisms of a SaslHandshake, which goes before any credentials."""
    header = struct.pack(">hhi", _HANDSHAKE, _VERSION, 0)
    request = header + _text(connection.client_id) + _text(sasl.mechanism)
    with open_first(connection) as opened:
        opened.sendall(struct.pack(">i", len(request)) + request)
        (size,) = struct.unpack(">i", _exactly(opened.recv, 4))
        return _parse(_exactly(opened.recv, min(size, 10_000)))


def _parse(answer: bytes) -> tuple[int, list[str]]:
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
