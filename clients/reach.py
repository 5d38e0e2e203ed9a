"""
Reachability of a server, and the reason when it cannot be reached.

Client libraries retry until their time is over and then say "timeout". This says "connection refused" at once.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import time

from .errors import AdminUnreachable, InvalidConnection, TlsFailed
from .security import Connection

_VERDICT_SECONDS = 1.0
_LAST_PORT = 65_535


def check_reachable(connection: Connection) -> None:
    """
    Try the servers in turn until one accepts a connection (and TLS, if the protocol uses it).

    Raises `AdminUnreachable` with each server's reason when none does, `TlsFailed` when it is TLS that failed.
    """
    open_first(connection)[0].close()


def open_first(connection: Connection) -> tuple[socket.socket, str]:
    """Return a connection to the first server that accepts one, and its host. Raises as `check_reachable` does."""
    deadline = time.monotonic() + connection.timeout_seconds
    failures: list[AdminUnreachable] = []
    for server in connection.bootstrap_servers:
        seconds = max(0.1, deadline - time.monotonic())
        try:
            return open_socket(server, connection, seconds), _host_and_port(server)[0]
        except AdminUnreachable as failure:
            failures.append(failure)
    raise combined(connection, failures)


def combined(connection: Connection, failures: list[AdminUnreachable]) -> AdminUnreachable:
    """Combine the failures of several servers into one error with the reason of each."""
    kind = TlsFailed if any(isinstance(failure, TlsFailed) for failure in failures) else AdminUnreachable
    if len(failures) == 1:
        return failures[0]
    return kind(connection.bootstrap_servers, "; ".join(f"{f.servers[0]}: {f.reason}" for f in failures))


def refusal(connection: Connection) -> str | None:
    """
    Return the reason why a server ends the connection, or None when it does not.

    A server that wants a client certificate says so only after the handshake (TLS 1.3).
    """
    with contextlib.suppress(AdminUnreachable), open_first(connection)[0] as opened:
        opened.settimeout(_VERDICT_SECONDS)
        try:
            opened.recv(1)
        except ssl.SSLError as error:
            return refused_by_server(error)
        except OSError:
            return None
    return None


def open_socket(server: str, connection: Connection, seconds: float) -> socket.socket:
    """
    Return a connection to one server, encrypted if the protocol uses TLS.

    Raises `AdminUnreachable` or `TlsFailed`.
    """
    host, port = _host_and_port(server)
    try:
        plain = socket.create_connection((host, port), timeout=seconds)
    except (
        OSError,
        UnicodeError,
    ) as error:  # UnicodeError: a name that cannot be one, such as "a..b"
        raise AdminUnreachable([server], network_reason(error)) from error
    if not connection.protocol.uses_tls:
        return plain
    try:
        return connection.tls.context().wrap_socket(plain, server_hostname=host)
    except OSError as error:
        raise TlsFailed([server], _tls_reason(error)) from error
    except BaseException:
        plain.close()
        raise


def _host_and_port(server: str) -> tuple[str, int]:
    host, _, port = server.rpartition(":")
    if not (host and port.isascii() and port.isdigit() and int(port) <= _LAST_PORT):
        raise InvalidConnection(f"a bootstrap server is HOST:PORT, not {server!r}")
    return host.removeprefix("[").removesuffix("]"), int(port)


def network_reason(error: OSError | UnicodeError) -> str:
    """Return the reason of a failed connection in a few words."""
    if isinstance(error, socket.gaierror | UnicodeError):
        return "the host name is not known"
    if isinstance(error, TimeoutError):
        return "no answer to the connection attempt"
    return (error.strerror or str(error)).lower()


def _tls_reason(error: OSError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    if isinstance(error, TimeoutError):
        return "no answer to the TLS handshake: is this a TLS listener?"
    if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError):
        return f"no TLS session: {error.reason or error}; is this a TLS listener?"
    return "the connection ended during the TLS handshake: is this a TLS listener?"


def refused_by_server(error: ssl.SSLError) -> str:
    """Explain why the server ended a TLS session that this client had accepted."""
    return f"the server ended the TLS session ({error.reason}): it may want a client certificate, or another one"
