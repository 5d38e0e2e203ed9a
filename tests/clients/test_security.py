"""Settings of a connection, and the texts of errors."""

import dataclasses
import pickle
import shlex
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)
from tests.cluster.certificates import Certificates, make_certificates

from quotascope.clients import (
    AdminRequestFailed,
    AdminTimeout,
    AdminUnreachable,
    AuthenticationFailed,
    ClientError,
    Connection,
    CredentialsUnavailable,
    InvalidConnection,
    LibraryMissing,
    MutationThrottled,
    PermissionMissing,
    Sasl,
    SaslMechanism,
    Secret,
    SecurityProtocol,
    Tls,
    TlsFailed,
    UnsupportedByLibrary,
    errors,
)
from quotascope.clients.throttled_admin import outcomes, paced_futures

SERVERS = ("broker-1:9092",)
SASL = Sasl(username="alice", password=Secret("hunter2"))


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


def test_a_password_is_never_shown_by_accident() -> None:
    """Neither repr, str nor formatting shows a password, at any depth."""
    connection = Connection(
        bootstrap_servers=SERVERS,
        protocol=SecurityProtocol.SASL_SSL,
        sasl=SASL,
        tls=Tls(key_password=Secret("hunter2")),
    )
    texts = f"{connection} {connection!r} {SASL.password} {SASL.password!r:>20} {dataclasses.asdict(connection)}"
    assert "hunter2" not in texts
    assert SASL.password.reveal() == "hunter2"


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"protocol": SecurityProtocol.SASL_PLAINTEXT}, "SASL_PLAINTEXT needs a SASL login"),
        ({"protocol": SecurityProtocol.SASL_SSL}, "SASL_SSL needs a SASL login"),
        ({"protocol": SecurityProtocol.PLAINTEXT, "sasl": SASL}, "a SASL login has no effect with PLAINTEXT"),
        ({"protocol": SecurityProtocol.SSL, "sasl": SASL}, "a SASL login has no effect with SSL"),
        ({"bootstrap_servers": ()}, "no bootstrap server"),
    ],
)
def test_settings_that_do_not_fit_are_refused(changed: dict[str, Any], words: str) -> None:
    """Missing credentials, credentials that would not be sent and a missing address are refused before a connection."""
    with pytest.raises(InvalidConnection, match=words):
        Connection(**{"bootstrap_servers": SERVERS, **changed})


def test_values_are_those_of_kafka() -> None:
    """Protocols and mechanisms are written as in Kafka's configuration."""
    assert [*SecurityProtocol] == ["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
    assert [*SaslMechanism] == [
        "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "AWS_MSK_IAM", "GSSAPI",
    ]  # fmt: skip


def test_a_missing_authority_is_named(tmp_path: Path) -> None:
    """A CA file that is not there is reported by its path."""
    with pytest.raises(InvalidConnection, match=r"the CA file .*ca\.pem cannot be used: .*No such file"):
        Tls(ca_file=tmp_path / "ca.pem").context()


def test_a_key_that_does_not_fit_is_named(certificates: Certificates) -> None:
    """Certificate and key of different owners are reported by their paths."""
    tls = Tls(cert_file=certificates.client, key_file=certificates.server_key)
    with pytest.raises(InvalidConnection, match=r"client\.pem with .*server\.key cannot be used"):
        tls.context()


def test_an_encrypted_key_needs_its_password(certificates: Certificates, tmp_path: Path) -> None:
    """The right password opens an encrypted key; without one, no prompt asks for it on the terminal."""
    key = load_pem_private_key(certificates.client_key.read_bytes(), password=None)
    encrypted = tmp_path / "client.key"
    scheme = BestAvailableEncryption(b"hunter2")
    encrypted.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, scheme))
    tls = Tls(ca_file=certificates.ca, cert_file=certificates.client, key_file=encrypted)
    dataclasses.replace(tls, key_password=Secret("hunter2")).context()
    for password in (None, Secret("wrong")):
        with pytest.raises(InvalidConnection, match="cannot be used") as caught:
            dataclasses.replace(tls, key_password=password).context()
        assert "wrong" not in str(caught.value)


HOSTILE = "x" * 20_000 + "\n\x1b[31m<script>\r\u2028"


@pytest.mark.parametrize(
    "error",
    [
        AdminRequestFailed("AlterClientQuotas", 42, HOSTILE),
        MutationThrottled("CreateTopics", 1_000, HOSTILE),
        outcomes.QuotaExceeded("CreateTopics", 1_000, HOSTILE),
        paced_futures.QuotaExceeded("CreateTopics", 1_000, HOSTILE),
        AdminUnreachable(["broker-1:9092"], HOSTILE),
        AuthenticationFailed(HOSTILE, "PLAIN", HOSTILE),
        CredentialsUnavailable(HOSTILE, HOSTILE),
        PermissionMissing(request="DescribeQuorum", operation="Describe", username=HOSTILE),
    ],
)
def test_messages_are_short_lines_of_printable_text(error: ClientError) -> None:
    """An error's text from outside is one short printable line in messages; another process gets the whole error."""
    assert str(error).isprintable()
    assert len(str(error)) < 800
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))


@pytest.mark.parametrize(
    ("username", "topic", "words"),
    [
        ("a; rm -rf /", None, ["--allow-principal", "User:a; rm -rf /", "--operation", "Describe", "--cluster"]),
        ("me", "a b", ["--allow-principal", "User:me", "--operation", "Describe", "--topic", "a b"]),
        (None, None, ["--allow-principal", "User:…", "--operation", "Describe", "--cluster"]),
    ],
)
def test_a_grant_is_safe_to_paste(username: str | None, topic: str | None, words: list[str]) -> None:
    """
    Names cannot smuggle a command into the advice.

    A principal that comes from a certificate is for the reader to fill in.
    """
    error = PermissionMissing(request="DescribeQuorum", operation="Describe", username=username, topic=topic)
    assert shlex.split(error.grant) == ["kafka-acls.sh", "--add", *words]


def test_the_tree_is_the_one_drawn() -> None:
    """Every class of the drawing exists, is exported and descends as drawn."""
    flat = {
        AdminRequestFailed, AdminTimeout, AdminUnreachable, AuthenticationFailed, CredentialsUnavailable,
        InvalidConnection,
        LibraryMissing, PermissionMissing, UnsupportedByLibrary,
    }  # fmt: skip
    assert all(error.__base__ is ClientError for error in flat)
    assert TlsFailed.__base__ is AdminUnreachable
    assert MutationThrottled.__base__ is AdminRequestFailed
    assert errors.__doc__ is not None
    assert all(error.__name__ in errors.__doc__ for error in {*flat, TlsFailed, MutationThrottled, ClientError})
