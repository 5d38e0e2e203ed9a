"""Whether a cluster can be reached, and why not: by its sockets, its answers and the library's log."""

import logging
import socket
import struct

import pytest

from quotascope.clients import (
    AdminUnreachable,
    AuthenticationFailed,
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
    """Settings without SASL."""
    protocol = SecurityProtocol.SSL if tls else SecurityProtocol.PLAINTEXT
    return Connection(bootstrap_servers=servers, protocol=protocol, timeout_seconds=seconds, tls=Tls(verify=False))


def test_one_server_that_listens_is_enough() -> None:
    """Dead servers before a living one do no harm."""
    with server(silent) as living:
        check_reachable(unsecured(closed_port(), living))


def test_each_server_reports_its_reason() -> None:
    """When none can be reached, every server is named with what it did."""
    first, second = closed_port(), closed_port()
    with pytest.raises(AdminUnreachable) as caught:
        check_reachable(unsecured(first, second))
    assert str(caught.value) == (
        f"cannot reach Kafka at {first}, {second}: {first}: connection refused; {second}: connection refused"
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
    with pytest.raises(AdminUnreachable, match="broker-1:9092: the host name is not known"):
        check_reachable(unsecured("broker-1:9092"))


@pytest.mark.parametrize("address", ["broker", ":9092", "broker:", "broker:http", "broker:99999", "broker:²"])
def test_an_address_is_host_and_port(address: str) -> None:
    """Anything else is refused with the address as it was given."""
    with pytest.raises(InvalidConnection, match="a bootstrap server is HOST:PORT"):
        check_reachable(unsecured(address))


def test_a_server_without_tls_is_suspected() -> None:
    """A server that closes or talks plainly during the handshake brings the question whether it speaks TLS."""
    with (
        server(answering(b"")) as closing,
        pytest.raises(TlsFailed, match="is this a TLS listener"),
    ):
        check_reachable(unsecured(closing, tls=True))
    with (
        server(answering(b"HTTP/1.1 400\r\n\r\n")) as plain,
        pytest.raises(TlsFailed, match="is this a TLS listener"),
    ):
        check_reachable(unsecured(plain, tls=True))


def test_a_silent_server_is_given_up() -> None:
    """A handshake that is never answered ends with the timeout."""
    with (
        server(silent) as quiet,
        pytest.raises(TlsFailed, match="no answer to the TLS handshake"),
    ):
        check_reachable(unsecured(quiet, tls=True, seconds=0.1))


COMPLAINT = "socket disconnected"


def handshake_answer(code: int, *mechanisms: str) -> bytes:
    """A SaslHandshake response version 1."""
    names = b"".join(struct.pack(">h", len(name)) + name.encode() for name in mechanisms)
    body = struct.pack(">ihi", 0, code, len(mechanisms)) + names
    return struct.pack(">i", len(body)) + body


class Plain:
    """The client's part of PLAIN (RFC 4616), with any other name."""

    done = False

    def auth_bytes(self) -> bytes:
        """Both at once."""
        return b"\0alice\0hunter2"

    def receive(self, _: bytes) -> None:
        """Accepted."""
        self.done = True

    def is_done(self) -> bool:
        """Whether it was accepted."""
        return self.done


def begun(_: Sasl, __: str) -> Plain:
    """The mechanism, at its beginning."""
    return Plain()


def connection(address: str, mechanism: SaslMechanism = SaslMechanism.SCRAM_SHA_256) -> Connection:
    """Settings of alice."""
    sasl = Sasl(mechanism=mechanism, username="alice", password=Secret("hunter2"))
    return Connection(
        bootstrap_servers=(address,), protocol=SecurityProtocol.SASL_PLAINTEXT, sasl=sasl, timeout_seconds=2
    )


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (handshake_answer(33, "PLAIN", "OAUTHBEARER"), "the listener offers OAUTHBEARER, PLAIN"),
        (handshake_answer(33), "the listener offers no mechanism"),
        (handshake_answer(34), "the listener does not use SASL"),
    ]
)  # fmt: skip
def test_the_broker_reports_why_it_refused(answer: bytes, reason: str) -> None:
    """A handshake without credentials distinguishes a wrong mechanism from a wrong password."""
    with server(answering(answer)) as address:
        error = diagnose(connection(address), COMPLAINT, begun)
    assert isinstance(error, AuthenticationFailed)
    assert reason in str(error)
    assert "hunter2" not in str(error)


def sized(body: bytes) -> bytes:
    """As every message of Kafka's protocol goes over a connection."""
    return struct.pack(">i", len(body)) + body


def in_turn(*answers: bytes) -> Behavior:
    """Reads a request before each of these answers, then closes the connection."""

    def behave(opened: socket.socket) -> None:
        for answer in answers:
            opened.recv(1000)
            opened.sendall(answer)

    return behave


@pytest.mark.parametrize("mechanism", [SaslMechanism.PLAIN, SaslMechanism.SCRAM_SHA_512])
def test_a_broker_that_goes_away_has_refused_no_one(mechanism: SaslMechanism) -> None:
    """It offers the mechanism, then stops before it has looked at the password: that says nothing of the password."""
    with server(in_turn(handshake_answer(0, mechanism))) as address:
        error = diagnose(connection(address, mechanism), COMPLAINT, begun)
    assert isinstance(error, AdminUnreachable)
    assert COMPLAINT in str(error)


@pytest.mark.parametrize(
    ("code", "kind", "reason"),
    [
        (58, AuthenticationFailed, "Invalid username"),
        (0, AdminUnreachable, "the login is accepted"),
    ],
)
def test_only_the_broker_says_that_a_password_is_wrong(code: int, kind: type[Exception], reason: str) -> None:
    """Error 58 of SaslAuthenticate (KIP-152), asked again for PLAIN."""
    words = b"Invalid username"
    verdict = sized(struct.pack(">ihh", 1, code, len(words)) + words + bytes(4))
    answers = in_turn(handshake_answer(0, "PLAIN"), verdict)
    with server(answers) as address:
        error = diagnose(connection(address, SaslMechanism.PLAIN), COMPLAINT, begun)
    assert isinstance(error, kind)
    assert reason in str(error)
    assert "hunter2" not in str(error)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\0\0",
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        struct.pack(">i", 2) + b"ab",
        handshake_answer(33, "PLAIN").replace(b"PLAIN", b"\xff\xfe\xff\xfe\xff"),
        struct.pack(">iihih", 12, 0, 33, 2_000_000_000, -2),
    ],
)
def test_what_is_no_broker_is_unreachable(answer: bytes) -> None:
    """Nonsense instead of an answer is reported with what the library said."""
    with server(answering(answer)) as address:
        error = diagnose(connection(address), COMPLAINT, begun)
    assert isinstance(error, AdminUnreachable)
    assert COMPLAINT in str(error)


def test_a_server_that_went_away_is_unreachable() -> None:
    """Between the failure and the question the server may be gone."""
    error = diagnose(connection(closed_port()), COMPLAINT, begun)
    assert isinstance(error, AdminUnreachable)


def test_another_protocol_is_suspected_without_sasl() -> None:
    """A listener that hangs up on a plain client probably wants TLS or SASL."""
    error = diagnose(Connection(bootstrap_servers=("broker-1:9092",)), COMPLAINT, begun)
    assert "does not talk PLAINTEXT on this port" in str(error)


def test_nothing_of_the_library_reaches_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """Its logger and all below it are silent, whatever the level of the root."""
    caplog.set_level(logging.DEBUG)
    LibraryLog("noisy").install()
    logging.getLogger("noisy.client").debug("configuration: password=hunter2")
    logging.getLogger("noisy.client").error("Connection failed")
    assert not caplog.records


def test_the_first_exception_is_remembered() -> None:
    """The cause is the first that was logged; what follows from it comes after."""
    log = LibraryLog("noisy")
    log.install()
    logger = logging.getLogger("noisy.client")
    logger.warning("no exception in %s", "this")
    logger.warning("without arguments")
    assert log.complaints == []
    cause = ConnectionError("refused")
    logger.warning("attempt to %s failed: %s", "broker-1", cause)
    logger.error("gave up: %s", TimeoutError())
    assert log.complaints[0] is cause


def test_a_new_log_replaces_the_old() -> None:
    """Connecting again and again does not pile up handlers."""
    LibraryLog("noisy").install()
    last = LibraryLog("noisy")
    last.install()
    assert logging.getLogger("noisy").handlers == [last]
