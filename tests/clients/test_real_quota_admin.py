"""The Admin API of a real broker, by every protocol and mechanism."""

import dataclasses
import logging
import shlex
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing
from math import inf
from pathlib import Path

import pytest
from tests.cluster.certificates import make_certificates
from tests.cluster.cluster import Cluster, Layout, running
from tests.cluster.quotas import Quotas
from tests.cluster.tools import run_as_printed, run_tool
from tests.cluster.users import USERS

from quotascope.clients import (
    AdminRequestFailed,
    AdminUnreachable,
    AuthenticationFailed,
    ClientError,
    ConfiguredQuota,
    Connection,
    PermissionMissing,
    QuotaAdmin,
    QuotaChange,
    Sasl,
    SaslMechanism,
    Secret,
    SecurityProtocol,
    Tls,
    TlsFailed,
    open_quota_admin,
)
from quotascope.metrics.kafka.release import KafkaRelease

from .real import settings_of

pytestmark = pytest.mark.real
WITH_PASSWORD = SaslMechanism.PLAIN, SaslMechanism.SCRAM_SHA_256, SaslMechanism.SCRAM_SHA_512
"""The others: test_real_logins.py."""


@pytest.mark.parametrize("mechanism", WITH_PASSWORD)
@pytest.mark.parametrize("protocol", SecurityProtocol)
def test_reads_everything_by_every_protocol_and_mechanism(
    kafka: Cluster, quotas: Quotas, protocol: SecurityProtocol, mechanism: SaslMechanism
) -> None:
    """Quotas, cluster, settings and the active controller come the same way through every listener."""
    quotas.set(({"user": "svc:team a", "client-id": None}, {"producer_byte_rate": 1024.0}))
    with closing(open_quota_admin(kafka.connection(protocol, "svc:team a", mechanism))) as admin:
        assert admin.describe_quotas() == (
            ConfiguredQuota(entity={"user": "svc:team a", "client-id": None}, key="producer_byte_rate", value=1024.0),
        )
        assert [node.node_id for node in admin.describe_cluster().nodes] == [1]
        assert settings_of(admin).num_io_threads == 8
        assert isinstance(admin.describe_all_settings([7], inf)[7], AdminRequestFailed)
        assert admin.describe_quorum_leader() == 1
        assert admin.describe_release() == KafkaRelease(4, 3)


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
    """The error names user and mechanism in the broker's words. Neither error, traceback nor log holds the password."""
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
    """Each failure of TLS is explained, although the listener closes the connection without a reason for most."""
    certificates = make_certificates(tmp_path)
    tls = Tls(
        ca_file=kafka.certificates.ca if authority else None,
        cert_file=certificates.client if certificate else None,
        key_file=certificates.client_key if certificate else None,
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


PAGE = Path(__file__).parents[2] / "docs" / "start" / "permissions.md"
CHANGE = QuotaChange(entity={"user": "zoe"}, key="producer_byte_rate", value=None)
"""Takes away what no one has: it needs the permission, and leaves nothing behind."""
CALLS: dict[str, Callable[[QuotaAdmin], object]] = {
    "describe_quotas": lambda admin: admin.describe_quotas(),
    "describe_all_settings": settings_of,
    "describe_quorum_leader": lambda admin: admin.describe_quorum_leader(),
    "alter_quotas": lambda admin: admin.alter_quotas([CHANGE]),
}

OPENED = {
    "Describe": {"describe_quorum_leader"},
    "DescribeConfigs": {"describe_quotas", "describe_all_settings"},
    "AlterConfigs": {
        "describe_quotas",
        "describe_all_settings",
        "alter_quotas",
    },  # implies DescribeConfigs
}
"""The calls that each operation on the cluster permits."""


@pytest.fixture
def mallory(guarded_kafka: Cluster) -> Iterator[QuotaAdmin]:
    """The Admin API as a user who has no rights at all."""
    settings = guarded_kafka.connection(SecurityProtocol.SASL_PLAINTEXT, "mallory")
    with closing(open_quota_admin(settings)) as admin:
        yield admin


def missing(admin: QuotaAdmin) -> dict[str, PermissionMissing]:
    """Return the calls that are not permitted, each with its error."""
    refused = {}
    for name, call in CALLS.items():
        try:
            call(admin)
        except PermissionMissing as error:
            refused[name] = error
    return refused


def test_the_cluster_is_described_to_every_user(mallory: QuotaAdmin) -> None:
    """DescribeCluster needs no ACL, so that a missing one elsewhere can be reported with the brokers' names."""
    assert [node.node_id for node in mallory.describe_cluster().nodes] == [1]


def test_the_advice_grants_what_is_missing(guarded_kafka: Cluster, mallory: QuotaAdmin, tmp_path: Path) -> None:
    """Each command that an error advises, run as printed by an administrator, permits the call that failed."""
    settings = tmp_path / "admin.properties"
    login = f'username="admin" password="{USERS["admin"]}"'
    settings.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f"sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required {login};\n"
    )
    refused = missing(mallory)
    assert refused.keys() == CALLS.keys()
    for operation, opened in OPENED.items():
        grant = {error.grant for error in refused.values() if error.operation == operation}
        script, *words = shlex.split(grant.pop())
        assert script == "kafka-acls.sh"
        run_as_printed(script, *(str(settings) if word == "admin.properties" else word for word in words))
        acl = words[words.index("--add") + 1 :]
        assert missing(mallory).keys() == CALLS.keys() - opened
        run_tool(guarded_kafka, script, "--remove", "--force", *acl)
        assert missing(mallory).keys() == CALLS.keys()


def test_the_page_reports_the_same(mallory: QuotaAdmin) -> None:
    """docs/start/permissions.md has the command of each permission, those for reading first, that for changes apart."""
    reading, heading, changing = PAGE.read_text().partition("## Changing quotas")
    assert heading
    refused = missing(mallory)
    assert refused.keys() == CALLS.keys()
    for name, error in refused.items():
        reported = error.grant.partition(" --add ")[2]
        assert (reported.replace("mallory", "quotascope") in reading) == (name != "alter_quotas")
        assert (reported.replace("mallory", "operator") in changing) == (name == "alter_quotas")
