import socket

import pytest

from quotascope.clients import (
    AdminUnreachable,
    Connection,
    InvalidConnection,
    SecurityProtocol,
    Tls,
    TlsFailed,
)
from quotascope.clients.reach import check_reachable

from .servers import answering, closed_port, server, silent


def connection(*servers: str, tls: bool = False, seconds: float = 5.0) -> Connection:
    """Settings without SASL."""
    protocol = SecurityProtocol.SSL if tls else SecurityProtocol.PLAINTEXT
    return Connection(
        bootstrap_servers=servers,
        protocol=protocol,
        timeout_seconds=seconds,
        tls=Tls(verify=False),
    )


def test_one_server_that_listens_is_enough() -> None:
    """Dead servers before a living one do no harm."""
    with server(silent) as living:
        check_reachable(connection(closed_port(), living))


def test_each_server_tells_its_reason() -> None:
    """When none can be reached, every server is named with what it did."""
    first, second = closed_port(), closed_port()
    with pytest.raises(AdminUnreachable) as caught:
        check_reachable(connection(first, second))
    assert str(caught.value) == (
        f"cannot reach Kafka at {first}, {second}: {first}: connection refused; {second}: connection refused"
    )


@pytest.mark.parametrize("host", ["two..dots", "x" * 70])
def test_a_name_that_cannot_be_one_is_unknown(host: str) -> None:
    """Python's codec errors for impossible host names are no traceback."""
    with pytest.raises(AdminUnreachable, match="the host name is not known"):
        check_reachable(connection(f"{host}:9092"))


def test_an_unknown_name_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The resolver's answer is told in plain words."""

    def resolve(*_: object, **__: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with pytest.raises(
        AdminUnreachable, match="broker-1:9092: the host name is not known"
    ):
        check_reachable(connection("broker-1:9092"))


@pytest.mark.parametrize(
    "address", ["broker", ":9092", "broker:", "broker:http", "broker:99999", "broker:²"]
)
def test_an_address_is_host_and_port(address: str) -> None:
    """Anything else is refused with the address as it was given."""
    with pytest.raises(InvalidConnection, match="a bootstrap server is HOST:PORT"):
        check_reachable(connection(address))


def test_a_server_without_tls_is_suspected() -> None:
    """A server that closes or talks plainly during the handshake brings the question whether it speaks TLS."""
    with (
        server(answering(b"")) as closing,
        pytest.raises(TlsFailed, match="is this a TLS listener"),
    ):
        check_reachable(connection(closing, tls=True))
    with (
        server(answering(b"HTTP/1.1 400\r\n\r\n")) as plain,
        pytest.raises(TlsFailed, match="is this a TLS listener"),
    ):
        check_reachable(connection(plain, tls=True))


def test_a_silent_server_is_given_up() -> None:
    """A handshake that is never answered ends with the timeout."""
    with (
        server(silent) as quiet,
        pytest.raises(TlsFailed, match="no answer to the TLS handshake"),
    ):
        check_reachable(connection(quiet, tls=True, seconds=0.1))
