"""Logins by token and by ticket at a real broker: an issuer's JWTs, which it verifies, and tickets of a KDC."""

import dataclasses
import logging
import traceback
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.cluster.fixtures import LoginKafka
from tests.cluster.logins import CLIENT_ID, CLIENT_SECRET, SCOPE
from tests.integration.agent import ask
from tests.integration.eventually import eventually

from quotascope.clients import (
    ClientError,
    Connection,
    Kerberos,
    Sasl,
    SaslMechanism,
    Secret,
    SecurityProtocol,
    Tls,
    open_quota_admin,
)
from quotascope.clients.login import ClientCredentials, MskIam, TokenCommand, TokenFile, Tokens, TokenSource

from .real import settings_of

pytestmark = pytest.mark.real

BOTH = pytest.mark.parametrize("protocol", [SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL])


def connection(
    kafka: LoginKafka, login: TokenSource | Kerberos, protocol: SecurityProtocol = SecurityProtocol.SASL_PLAINTEXT
) -> Connection:
    """Return a connection to the listener that takes every login."""
    if isinstance(login, Kerberos):
        sasl = Sasl(mechanism=SaslMechanism.GSSAPI, kerberos=login)
    else:
        aws = isinstance(login, MskIam)
        mechanism = SaslMechanism.AWS_MSK_IAM if aws else SaslMechanism.OAUTHBEARER
        sasl = Sasl(mechanism=mechanism, tokens=Tokens(login))
    return dataclasses.replace(kafka.cluster.connection(protocol), sasl=sasl)


def credentials(kafka: LoginKafka) -> ClientCredentials:
    return ClientCredentials(
        url=kafka.issuer.token_url,
        client_id=CLIENT_ID,
        client_secret=Secret(CLIENT_SECRET),
        scope=SCOPE,
        tls=Tls(ca_file=kafka.issuer_ca),
    )


def refusal(connection: Connection) -> str:
    """Return the error of the first call; assert that neither it nor its traceback has a part of a token."""
    with (
        closing(open_quota_admin(connection)) as admin,
        pytest.raises(ClientError) as caught,
    ):
        admin.describe_quotas()
    assert "eyJ" not in "".join(traceback.format_exception(caught.value))
    return str(caught.value)


@pytest.fixture
def tickets(login_kafka: LoginKafka, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the realm's configuration, without a ticket."""
    monkeypatch.setenv("KRB5_CONFIG", str(login_kafka.realm.config))
    monkeypatch.setenv("KRB5CCNAME", "MEMORY:nothing")
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", "")  # which a keytab sets: it is put back
    monkeypatch.delenv("KRB5_CLIENT_KTNAME")


@pytest.fixture
def token_file(login_kafka: LoginKafka, tmp_path: Path) -> Path:
    """A file with a token that the broker takes."""
    path = tmp_path / "token"
    path.write_text(login_kafka.issuer.token() + "\n")
    return path


@BOTH
@pytest.mark.usefixtures("tickets")
def test_the_rights_are_those_of_the_token_or_ticket(
    login_kafka: LoginKafka, token_file: Path, protocol: SecurityProtocol, caplog: pytest.LogCaptureFixture
) -> None:
    """Each login is the user of its token or ticket, who alone may read quotas, and leaves no token in the log."""
    caplog.set_level(logging.DEBUG)
    for login in (
        credentials(login_kafka),
        TokenFile(path=token_file),
        TokenCommand(arguments=("cat", str(token_file))),
        Kerberos(keytab=login_kafka.realm.keytab),
    ):
        to_broker = connection(login_kafka, login, protocol)
        with closing(open_quota_admin(to_broker)) as admin:
            assert admin.describe_quotas() == ()
            assert settings_of(admin).num_io_threads == 8
    assert login_kafka.issuer.requests[-1] == {"grant_type": ["client_credentials"], "scope": [SCOPE]}
    assert "eyJ" not in caplog.text
    assert CLIENT_SECRET not in caplog.text


@pytest.mark.usefixtures("tickets")
def test_what_the_broker_refuses_is_named(
    login_kafka: LoginKafka, token_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Each refusal of a broker is named, with the claims of a forged or foreign token.

    A token for MSK alone, a ticket for another service and a listener without the mechanism are named, too.
    """
    issuer, login = login_kafka.issuer, TokenFile(path=token_file)
    to_broker = connection(login_kafka, login)
    claims = "the broker has to accept its iss https://issuer.test, aud {}, sub quotascope, scope kafka)"
    refused = f"Kafka refused the token of the token file {token_file} by SASL/OAUTHBEARER: "
    token_file.write_text(issuer.token(forged=True))
    message = refusal(to_broker)
    assert message.startswith(f'{refused}{{"status":"invalid_token"}}')
    assert message.endswith(claims.format("kafka-brokers"))
    issuer.audience = "somebody-else"
    try:
        token_file.write_text(issuer.token())
    finally:
        issuer.audience = "kafka-brokers"
    assert refusal(to_broker).endswith(claims.format("somebody-else"))
    elsewhere = dataclasses.replace(to_broker, bootstrap_servers=(login_kafka.cluster.admin,))
    assert refusal(elsewhere) == f"{refused}the listener does not use SASL"
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "example")
    signed = connection(login_kafka, MskIam(region="eu-west-1"), SecurityProtocol.SASL_SSL)
    message = 'Kafka refused the token of AWS IAM by SASL/AWS_MSK_IAM: {"status":"invalid_token"}'
    assert refusal(signed) == message
    keytab = login_kafka.realm.keytab
    kerberos = Kerberos(keytab=keytab, service_name="other")
    message = refusal(connection(login_kafka, kerberos))
    assert "Kerberos: Server not found in Kerberos database: check" in message


@pytest.mark.usefixtures("tickets")
def test_a_missing_ticket_is_named(login_kafka: LoginKafka) -> None:
    """A login by Kerberos without a ticket or a keytab is refused with a message that names them."""
    message = refusal(connection(login_kafka, Kerberos()))
    assert message.startswith("cannot log in: Kerberos: No Kerberos credentials available")


@pytest.fixture
def short_tokens(login_kafka: LoginKafka) -> Iterator[None]:
    login_kafka.issuer.lifetime_seconds = 5
    yield
    login_kafka.issuer.lifetime_seconds = 300


@pytest.mark.slow
@pytest.mark.usefixtures("short_tokens")
def test_a_session_outlives_its_token(login_kafka: LoginKafka) -> None:
    """A session outlives its token: a fresh one is sent on the same connection before it expires (KIP-368)."""
    url = login_kafka.cluster.nodes[1].agents.jolokia
    bean = "kafka.server:type=socket-server-metrics,listener=SASL,networkProcessor=*"

    def renewed() -> float:
        (item,) = ask(url, [{"type": "read", "mbean": bean}])
        name = "successful-reauthentication-total"
        return float(sum(value.get(name, 0) for value in item["value"].values()))

    renewed_before, issued = renewed(), login_kafka.issuer.issued
    to_broker = connection(login_kafka, credentials(login_kafka))

    def again() -> None:
        admin.describe_quotas()
        assert renewed() >= renewed_before + 2
        assert login_kafka.issuer.issued >= issued + 2

    with closing(open_quota_admin(to_broker)) as admin:
        eventually(again)
