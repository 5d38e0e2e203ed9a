"""What a real broker does to those who come wrongly, and what we say then."""

import dataclasses
import logging
import traceback
from contextlib import closing
from pathlib import Path

import pytest
from tests.cluster.certificates import make_certificates
from tests.cluster.cluster import Cluster, Layout, running

from quotascope.clients import (
    AdminUnreachable,
    AuthenticationFailed,
    ClientError,
    Connection,
    Sasl,
    SaslMechanism,
    Secret,
    SecurityProtocol,
    Tls,
    TlsFailed,
    open_quota_admin,
)

pytestmark = pytest.mark.real

PASSWORD = "correct-horse-battery"


def failure(connection: Connection) -> ClientError:
    with (
        closing(open_quota_admin(connection)) as admin,
        pytest.raises(ClientError) as caught,
    ):
        admin.describe_quotas()
    return caught.value


def wrong_password(connection: Connection) -> Connection:
    assert connection.sasl is not None
    return dataclasses.replace(connection, sasl=dataclasses.replace(connection.sasl, password=Secret(PASSWORD)))


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("protocol", [SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL])
def test_a_wrong_password_is_reported_and_never_shown(
    kafka: Cluster, protocol: SecurityProtocol, mechanism: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The message names user and mechanism in the broker's words; neither it, nor its traceback, nor the log holds the password."""
    caplog.set_level(logging.DEBUG)
    error = failure(wrong_password(kafka.connection(protocol, "alice", SaslMechanism(mechanism))))
    assert isinstance(error, AuthenticationFailed)
    words = (
        "Authentication failed: Invalid username or password"
        if mechanism == SaslMechanism.PLAIN
        else f"Authentication failed during authentication due to invalid credentials with SASL mechanism {mechanism}"
    )
    assert str(error) == f"Kafka refused user 'alice' by SASL/{mechanism}: {words}"
    assert PASSWORD not in "".join(traceback.format_exception(error)) + caplog.text


def test_sasl_where_there_is_none_is_reported(kafka: Cluster) -> None:
    """A plaintext listener answers a SASL client with an error of its own."""
    sasl = Sasl(username="alice", password=Secret(PASSWORD))
    connection = Connection(bootstrap_servers=(kafka.admin,), protocol=SecurityProtocol.SASL_PLAINTEXT, sasl=sasl)
    assert str(failure(connection)).endswith("the listener does not use SASL")


@pytest.mark.parametrize("listener", ["sasl", "ssl", "sasl_ssl"])
def test_a_plain_client_at_another_listener_is_reported(kafka: Cluster, listener: str) -> None:
    """Listeners that want SASL or TLS hang up on a client that has neither."""
    error = failure(Connection(bootstrap_servers=(getattr(kafka, listener),)))
    assert isinstance(error, AdminUnreachable)
    assert "does not talk PLAINTEXT on this port" in str(error)


@pytest.mark.parametrize(
    ("listener", "authority", "certificate", "words"),
    [
        # closes the connection of a client that starts a handshake
        ("admin", True, False, "is this a TLS listener?"),
        # we refuse a certificate of an unknown authority
        ("ssl", False, False, "its certificate is not trusted"),
        # a listener that wants a client certificate ends the session after the handshake
        ("ssl", True, False, "it may want a client certificate"),
        ("ssl", True, True, "it may want a client certificate, or another one"),
    ],
    ids=["no TLS", "unknown authority", "no certificate", "untrusted certificate"],
)
def test_failures_of_tls_are_explained(
    kafka: Cluster, tmp_path: Path, listener: str, words: str, *, authority: bool, certificate: bool
) -> None:
    """Each by what the listener does, which is a closed connection for most of them."""
    other = make_certificates(tmp_path)
    tls = Tls(
        ca_file=kafka.certificates.ca if authority else None,
        cert_file=other.client if certificate else None,
        key_file=other.client_key if certificate else None,
    )
    servers = (getattr(kafka, listener),)
    error = failure(Connection(bootstrap_servers=servers, protocol=SecurityProtocol.SSL, tls=tls))
    assert isinstance(error, TlsFailed)
    assert words in str(error)


def test_a_client_follows_a_broker_that_restarts(tmp_path: Path) -> None:
    """A dead broker is unreachable at once, and the same client is back with the broker."""
    with (
        running(Layout.COMBINED, tmp_path / "cluster") as cluster,
        closing(open_quota_admin(cluster.connection())) as admin,
    ):
        node = cluster.nodes[1]
        assert admin.describe_quorum_leader() == 1
        node.kill()
        with pytest.raises(AdminUnreachable, match="connection refused"):
            admin.describe_quotas()
        node.start()
        node.wait_until_ready()
        assert admin.describe_quotas() == ()
