"""Reachability of a cluster and its reasons are judged by its sockets, its answers and the library's log."""

import logging
import socket
import struct
from contextlib import nullcontext

import pytest

from quotascope.clients import (
    AdminUnreachable,
    AuthenticationFailed,
    ClientError,
    Connection,
    InvalidConnection,
    Sasl,
    SaslMechanism,
    Secret,
    SecurityProtocol,
    Tls,
    TlsFailed,
)
from quotascope.clients.diagnosis import diagnose
from quotascope.clients.library_log import LibraryLog
from quotascope.clients.reach import check_reachable

from .servers import Behavior, answering, closed_port, server, silent


def unsecured(*servers: str, tls: bool = False, seconds: float = 5.0) -> Connection:
    protocol = SecurityProtocol.SSL if tls else SecurityProtocol.PLAINTEXT
    return Connection(bootstrap_servers=servers, protocol=protocol, timeout_seconds=seconds, tls=Tls(verify=False))


def test_one_server_that_listens_is_enough() -> None:
    """Dead servers before a living one do no harm."""
    with server(silent) as living:
        check_reachable(unsecured(closed_port(), living))


def test_each_server_reports_its_reason() -> None:
    """The error names every server with its own reason when none can be reached."""
    first_port, second = closed_port(), closed_port()
    with pytest.raises(AdminUnreachable) as caught:
        check_reachable(unsecured(first_port, second))
    assert str(caught.value) == (
        f"cannot reach Kafka at {first_port}, {second}: {first_port}: connection refused; {second}: connection refused"
    )


@pytest.mark.parametrize("host", ["two..dots", "x" * 70])
def test_a_name_that_cannot_be_one_is_unknown(host: str) -> None:
    """Python's codec errors for impossible host names are no traceback."""
    with pytest.raises(AdminUnreachable, match="the host name is not known"):
        check_reachable(unsecured(f"{host}:9092"))


def test_an_unknown_name_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The resolver's answer is reported in plain words."""

    def resolve(*_: object, **__: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with pytest.raises(AdminUnreachable, match="at broker-1:9092: the host name is not known"):
        check_reachable(unsecured("broker-1:9092"))


@pytest.mark.parametrize("address", ["broker", ":9092", "broker:", "broker:http", "broker:99999", "broker:²"])
def test_an_address_is_host_and_port(address: str) -> None:
    """Any other text is refused with the address as it was written."""
    with pytest.raises(InvalidConnection, match="a bootstrap server is HOST:PORT"):
        check_reachable(unsecured(address))


@pytest.mark.parametrize(
    ("behavior", "words", "seconds"),
    [
        (answering(b""), "is this a TLS listener", 5),
        (answering(b"HTTP/1.1 400\r\n\r\n"), "is this a TLS listener", 5),
        (silent, "no answer to the TLS handshake", 0.1),
    ],
    ids=["closes", "plain", "silent"],
)
def test_a_server_without_tls_is_suspected(behavior: Behavior, words: str, seconds: float) -> None:
    """A server that closes, talks plainly or does not answer during the handshake brings the question for TLS."""
    with server(behavior) as address, pytest.raises(TlsFailed, match=words):
        check_reachable(unsecured(address, tls=True, seconds=seconds))


COMPLAINT = "socket disconnected"
SCRAM, PLAIN = SaslMechanism.SCRAM_SHA_256, SaslMechanism.PLAIN


def sized(body: bytes) -> bytes:
    """Return a message of Kafka's protocol: its size and its body."""
    return struct.pack(">i", len(body)) + body


def handshake_answer(code: int, *mechanisms: str) -> bytes:
    names = b"".join(struct.pack(">h", len(name)) + name.encode() for name in mechanisms)
    return sized(struct.pack(">ihi", 0, code, len(mechanisms)) + names)


def verdict(code: int, words: bytes) -> bytes:
    return sized(struct.pack(">ihh", 1, code, len(words)) + words + bytes(4))


class Plain:
    """The client's part of PLAIN (RFC 4616), with any other name."""

    done = False

    def auth_bytes(self) -> bytes:
        return b"\0alice\0hunter2"

    def receive(self, _: bytes) -> None:
        self.done = True

    def is_done(self) -> bool:
        return self.done


def diagnosed(address: str, mechanism: SaslMechanism) -> ClientError:
    sasl = Sasl(mechanism=mechanism, username="alice", password=Secret("hunter2"))
    connection = Connection(
        bootstrap_servers=(address,), protocol=SecurityProtocol.SASL_PLAINTEXT, sasl=sasl, timeout_seconds=2
    )
    return diagnose(connection, COMPLAINT, lambda _, __: Plain())


@pytest.mark.parametrize(
    ("mechanism", "answers", "reason"),
    [
        (SCRAM, [handshake_answer(33, "PLAIN", "OAUTHBEARER")], "the listener offers OAUTHBEARER, PLAIN"),
        (SCRAM, [handshake_answer(33)], "the listener offers no mechanism"),
        (SCRAM, [handshake_answer(34)], "the listener does not use SASL"),
        (PLAIN, [handshake_answer(0, "PLAIN"), verdict(58, b"Invalid username")], "Invalid username"),
    ],
)
def test_the_broker_reports_why_it_refused(mechanism: SaslMechanism, answers: list[bytes], reason: str) -> None:
    """
    A handshake without credentials distinguishes a wrong mechanism from a wrong password.

    Only the broker says that a password is wrong: by error 58 of SaslAuthenticate (KIP-152), asked again.
    """
    with server(answering(*answers)) as address:
        error = diagnosed(address, mechanism)
    assert isinstance(error, AuthenticationFailed)
    assert reason in str(error)
    assert "hunter2" not in str(error)


@pytest.mark.parametrize(
    ("mechanism", "answers"),
    [
        (PLAIN, [handshake_answer(0, "PLAIN")]),
        (SaslMechanism.SCRAM_SHA_512, [handshake_answer(0, "SCRAM-SHA-512")]),
        (PLAIN, [handshake_answer(0, "PLAIN"), verdict(0, b"")]),
        (SCRAM, [b""]),
        (SCRAM, [b"\0\0"]),
        (SCRAM, [b"HTTP/1.1 400 Bad Request\r\n\r\n"]),
        (SCRAM, [struct.pack(">i", 2) + b"ab"]),
        (SCRAM, [handshake_answer(33, "PLAIN").replace(b"PLAIN", b"\xff\xfe\xff\xfe\xff")]),
        (SCRAM, [struct.pack(">iihih", 12, 0, 33, 2_000_000_000, -2)]),
        (SCRAM, None),
    ],
    ids=["stops", "stops, too", "accepts", "empty", "short", "HTTP", "too short", "no text", "too many", "gone"],
)
def test_what_is_no_refusal_is_unreachable(mechanism: SaslMechanism, answers: list[bytes] | None) -> None:
    """
    A failure that is no refusal is reported as unreachable, and the library's log stays silent.

    Its logger and its children are silent, the first exception is the cause, and connecting again adds no second
    handler. A server that went away between the failure and the question is unreachable, too.
    """
    with nullcontext(closed_port()) if answers is None else server(answering(*answers)) as address:
        error = diagnosed(address, mechanism)
    assert isinstance(error, AdminUnreachable)
    assert COMPLAINT in str(error)
    assert ("the login is accepted" in str(error)) == (len(answers or ()) == 2)
    assert "hunter2" not in str(error)


def test_another_protocol_is_suspected_without_sasl() -> None:
    """A listener that hangs up on a plain client is suspected of TLS, SASL or a quota of connections."""
    error = diagnose(unsecured("broker-1:9092"), COMPLAINT, lambda _, __: Plain())
    assert "does not talk PLAINTEXT on this port, limits new connections" in str(error)


def test_the_librarys_log_is_kept_quiet_and_remembered(caplog: pytest.LogCaptureFixture) -> None:
    """
    The library's logger and its children are silent; the first exception is the cause.

    Connecting again adds no second handler.
    """
    caplog.set_level(logging.DEBUG)
    LibraryLog("noisy").install()
    log = LibraryLog("noisy")
    log.install()
    assert logging.getLogger("noisy").handlers == [log]
    logger = logging.getLogger("noisy.client")
    logger.debug("configuration: password=hunter2, %s", ValueError("below the level"))
    logger.warning("no exception in %s", "this")
    logger.warning("without arguments")
    assert log.complaints == []
    cause, timeout = ConnectionError("refused"), TimeoutError()
    logger.warning("attempt to %s failed: %s", "broker-1", cause)
    logger.error("gave up: %s, %s", timeout, cause)
    assert log.complaints == [cause, timeout]
    assert not caplog.records
