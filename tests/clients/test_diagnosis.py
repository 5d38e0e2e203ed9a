import socket
import struct
from dataclasses import replace

import pytest

from quotascope.clients import (
    AdminUnreachable,
    AuthenticationFailed,
    Connection,
    Sasl,
    SaslMechanism,
    Secret,
    SecurityProtocol,
)
from quotascope.clients.diagnosis import diagnose

from .servers import Behavior, answering, closed_port, server

COMPLAINT = "socket disconnected"


def handshake_answer(code: int, *mechanisms: str) -> bytes:
    """A SaslHandshake response version 1."""
    names = b"".join(
        struct.pack(">h", len(name)) + name.encode() for name in mechanisms
    )
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


def begun(_: Sasl) -> Plain:
    """The mechanism, at its beginning."""
    return Plain()


def connection(
    address: str, mechanism: SaslMechanism = SaslMechanism.SCRAM_SHA_256
) -> Connection:
    """Settings of alice."""
    sasl = Sasl(
        mechanism=mechanism,
        username="alice",
        password=Secret("hunter2"),
    )
    return Connection(
        bootstrap_servers=(address,),
        protocol=SecurityProtocol.SASL_PLAINTEXT,
        sasl=sasl,
        timeout_seconds=2,
    )


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (handshake_answer(33, "PLAIN", "OAUTHBEARER"), "the listener offers OAUTHBEARER, PLAIN"),
        (handshake_answer(33), "the listener offers no mechanism"),
        (handshake_answer(34), "the listener does not use SASL"),
    ],
)  # fmt: skip
def test_the_broker_tells_why_it_refused(answer: bytes, reason: str) -> None:
    """A handshake without credentials tells a wrong mechanism from a wrong password."""
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


@pytest.mark.parametrize("mechanism", SaslMechanism)
def test_a_broker_that_goes_away_has_refused_nobody(mechanism: SaslMechanism) -> None:
    """It offers the mechanism, then stops before it has looked at the password: that says nothing of the password."""
    with server(in_turn(handshake_answer(0, mechanism))) as address:
        error = diagnose(connection(address, mechanism), COMPLAINT, begun)
    assert isinstance(error, AdminUnreachable)
    assert COMPLAINT in str(error)


@pytest.mark.parametrize(
    ("code", "kind", "reason"),
    [
        (58, AuthenticationFailed, "Invalid username"),
        (0, AdminUnreachable, "the user and the password are accepted"),
    ],
)
def test_only_the_broker_says_that_a_password_is_wrong(
    code: int, kind: type[Exception], reason: str
) -> None:
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
    """Nonsense instead of an answer is told with what the library said."""
    with server(answering(answer)) as address:
        error = diagnose(connection(address), COMPLAINT, begun)
    assert isinstance(error, AdminUnreachable)
    assert COMPLAINT in str(error)


def test_the_first_server_may_be_down() -> None:
    """The one that answers tells what is wrong."""
    with server(answering(handshake_answer(33, "PLAIN"))) as living:
        several = replace(connection(living), bootstrap_servers=(closed_port(), living))
        assert "the listener offers PLAIN" in str(diagnose(several, COMPLAINT, begun))


def test_a_server_that_went_away_is_unreachable() -> None:
    """Between the failure and the question the server may be gone."""
    error = diagnose(connection(closed_port()), COMPLAINT, begun)
    assert isinstance(error, AdminUnreachable)


def test_another_protocol_is_suspected_without_sasl() -> None:
    """A listener that hangs up on a plain client probably wants TLS or SASL."""
    error = diagnose(Connection(bootstrap_servers=("broker-1:9092",)), COMPLAINT, begun)
    assert "does not talk PLAINTEXT on this port" in str(error)
