"""Sources of tokens (an issuer, a file, a command and AWS's signer) put no secret into a message."""

import base64
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cluster.certificates import Certificates, make_certificates
from tests.cluster.logins import CLIENT_ID, CLIENT_SECRET, SCOPE, Issuer, issuer

from quotascope.clients import (
    Connection,
    CredentialsUnavailable,
    InvalidConnection,
    Kerberos,
    LibraryMissing,
    Sasl,
    SaslMechanism,
    Secret,
    SecurityProtocol,
    Tls,
    open_quota_admin,
)
from quotascope.clients.login import ClientCredentials, MskIam, Token, TokenCommand, TokenFile, Tokens

LONG = "x" * 100_000


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Return certificates of an authority that only some trust."""
    return make_certificates(tmp_path_factory.mktemp("issuer"))


@pytest.fixture(scope="module")
def running(certificates: Certificates) -> Iterator[Issuer]:
    with issuer(certificates) as server:
        yield server


@pytest.fixture
def credentials(running: Issuer, certificates: Certificates) -> ClientCredentials:
    """Return the credentials that the issuer knows."""
    running.answer = None
    return ClientCredentials(
        url=f"{running.token_url}?tenant=hunter2",
        client_id=CLIENT_ID,
        client_secret=Secret(CLIENT_SECRET),
        scope=SCOPE,
        tls=Tls(ca_file=certificates.ca),
    )


def test_an_issuer_gives_a_token(running: Issuer, credentials: ClientCredentials) -> None:
    """
    The client id and its secret go out encoded as in RFC 6749, the scope only if one is set.

    The token comes with its lifetime.
    """
    token = credentials.fetch(5)
    assert token.value.reveal().count(".") == 2
    assert token.expires_at == pytest.approx(time.time() + 300, abs=60)
    replace(credentials, scope=None).fetch(5)
    assert running.requests[-2:] == [
        {"grant_type": ["client_credentials"], "scope": [SCOPE]},
        {"grant_type": ["client_credentials"]},
    ]


@pytest.mark.parametrize(
    ("status", "headers", "body", "words"),
    [
        (
            401,
            {},
            b'{"error": "invalid_client", "error_description": "s3cret: +/\xc3\xa9"}',
            "HTTP 401 (invalid_client: ****): check the client id",
        ),
        (400, {}, b'{"error": ["invalid"], "error_description": 4}', "HTTP 400: check"),
        (500, {}, LONG.encode(), "HTTP 500: check"),
        (302, {"Location": "https://127.0.0.1:1/elsewhere"}, b"", "HTTP 302: check"),
        (200, {}, b"<html>login</html>", "no access_token: is this the token endpoint?"),
        (200, {}, b"[" * 60_000, "no access_token"),
        (200, {}, b'{"access_token": 5}', "no access_token"),
        (200, {}, json.dumps({"access_token": "hunter2\x01auth=x"}).encode(), "14 characters that are no token"),
        (200, {}, json.dumps({"access_token": LONG}).encode(), "no access_token"),
        (200, {}, b'{"access_token": "hunter2", "expires_in": "-5"}', None),
        (200, {}, b'{"access_token": "hunter2", "expires_in": 1e999}', None),
    ]
)  # fmt: skip
def test_other_answers_of_an_issuer(
    running: Issuer,
    credentials: ClientCredentials,
    status: int,
    headers: dict[str, str],
    body: bytes,
    words: str | None,
) -> None:
    """
    The message about an answer without a token names the endpoint, never the secret, the answer or the query.

    A hostile lifetime is no lifetime.
    """
    running.answer = status, headers, body
    if words is None:
        assert credentials.fetch(5).expires_at is None
        return
    with pytest.raises(CredentialsUnavailable) as caught:
        credentials.fetch(5)
    assert f"the token endpoint {running.token_url}: " in str(caught.value)
    assert words in str(caught.value)
    assert not any(word in str(caught.value) for word in ("s3cret", "hunter2", LONG))


def test_an_issuer_that_cannot_be_reached(running: Issuer, credentials: ClientCredentials) -> None:
    """An unreachable issuer is an error with its reason: no listener, an untrusted certificate, an unknown name."""
    for changed, words in (
        (replace(credentials, url="http://127.0.0.1:1/t"), "connection refused"),
        (replace(credentials, tls=Tls()), "its certificate is not trusted"),
        (replace(credentials, url="https://a..b/t"), "the host name is not known"),
        (replace(credentials, client_secret=Secret("hunter2")), "no such client"),
    ):
        running.answer = None
        with pytest.raises(CredentialsUnavailable, match=words):
            changed.fetch(5)


@dataclass
class Source:
    """A source that gives its tokens in turn and then fails, on a clock of its own."""

    ends: Sequence[float | None]
    now: float = 1_000.0
    keeps: bool = True
    origin: str = "a test"
    given: list[float | None] = field(default_factory=list)

    def fetch(self, seconds: float) -> Token:
        """Return the next token, named by its number."""
        assert seconds == 5
        if len(self.given) == len(self.ends):
            raise CredentialsUnavailable(self.origin, "the issuer is down")
        self.given.append(self.ends[len(self.given)])
        return Token(value=Secret(str(len(self.given))), expires_at=self.given[-1])

    def read(self, tokens: Tokens, now: float) -> str:
        """Return the token at a time."""
        self.now = now
        return tokens.current(5).reveal()


def test_a_token_is_renewed_before_it_expires() -> None:
    """
    A token is renewed after four fifths of its life.

    While the issuer is down the rest of it is used, but an expired token is never sent.
    """
    source = Source(ends=[1_100.0, 1_200.0])
    tokens = Tokens(source, lambda: source.now)
    times = (1_000, 1_079, 1_080, 1_175, 1_177, 1_199)
    assert [source.read(tokens, moment) for moment in times] == ["1", "1", "2", "2", "2", "2"]
    with pytest.raises(CredentialsUnavailable, match="a test: the issuer is down"):
        source.read(tokens, 1_200)
    ended = Source(ends=[1_000.0])
    with pytest.raises(CredentialsUnavailable, match="expired at 1970-01-01T00:16:40Z"):
        ended.read(Tokens(ended, lambda: ended.now), 1_000)


@pytest.mark.parametrize(("ends", "keeps"), [((1_100.0, 1_200.0), False), ((None, None), True)])
def test_a_token_is_asked_for_again(ends: tuple[float | None, ...], *, keeps: bool) -> None:
    """A new token is fetched if another thread renewed it, its expiry is unknown, or a broker refused it."""
    source = Source(ends=ends, keeps=keeps)
    tokens = Tokens(source, lambda: source.now)
    assert [source.read(tokens, 1_000), source.read(tokens, 1_001)] == ["1", "2"]
    refused = Source(ends=[1_100.0, 1_100.0])
    tokens = Tokens(refused, lambda: refused.now)
    assert refused.read(tokens, 1_000) == "1"
    assert tokens.refused() == ""
    assert refused.read(tokens, 1_000) == "2"


def test_a_token_file_is_read_for_each_login(tmp_path: Path) -> None:
    """
    A replaced file counts at once; the token's own claim is its expiry.

    A missing or wrong file is named, its content is not shown.
    """
    path = tmp_path / "token"
    tokens = Tokens(TokenFile(path=path))
    path.write_text("first\n")
    assert tokens.current(5).reveal() == "first"
    claims = base64.urlsafe_b64encode(b'{"exp": 1000, "aud": ["a", "b"]}').decode()
    path.write_text(f"head.{claims.rstrip('=')}.signature")
    with pytest.raises(CredentialsUnavailable, match="expired at 1970"):
        tokens.current(5)
    wrong = {
        b"": "no token",
        b"\xff\xfe": "no token",
        b"hunter2 hunter2": "no token",
        LONG.encode(): "larger than 64 KiB",
    }
    for content, reason in wrong.items():
        path.write_bytes(content)
        with pytest.raises(CredentialsUnavailable, match=reason) as caught:
            tokens.current(5)
        assert "hunter2" not in str(caught.value)
    path.unlink()
    with pytest.raises(CredentialsUnavailable, match=f"{path}: no such file"):
        tokens.current(5)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@given(
    content=st.binary(max_size=200)
    | st.dictionaries(st.sampled_from(["exp", "iss", "aud", "sub"]), _JSON).map(
        lambda claims: b".".join(
            base64.urlsafe_b64encode(part).rstrip(b"=") for part in (b"head", json.dumps(claims).encode(), b"signature")
        )
    )
)
def test_whatever_is_in_a_token(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    """A file with any content gives a token or a named error; hostile claims become a short printable line."""
    path = tmp_path_factory.getbasetemp() / "hostile-token"
    path.write_bytes(content)
    tokens = Tokens(TokenFile(path=path))
    message = ""
    try:
        tokens.current(5)
    except CredentialsUnavailable as error:
        message = str(error)
    message = message or tokens.refused()
    assert message.isprintable()
    assert len(message) < 800


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("print('good-token')", None),
        ("import sys; sys.exit(f'{\"x\" * 10**6}\\n\\x1b')", "exit code 1: x"),
        ("import sys; sys.exit(3)", "exit code 3: nothing on standard error"),
        ("print('hunter2 hunter2')", "15 characters that are no token"),
        ("print('x' * 10**7)", "no token"),
        ("pass", "gave nothing, which is no token"),
        ("import subprocess; subprocess.run(['sleep', '600'])", "has not ended within 1 s"),
        ("while True: print('x' * 10**5)", "has not ended within 1 s"),
        ("import os; os.close(1); os.close(2)\nimport time; time.sleep(600)", "has not ended within 1 s"),
    ]
)  # fmt: skip
def test_a_command_prints_a_token(code: str, words: str | None) -> None:
    """A command is bounded in time and output, and its arguments, which may be secret, are not shown."""
    command = TokenCommand(arguments=(sys.executable, "-c", code, "hunter2"))
    if words is None:
        assert command.fetch(30).value.reveal() == "good-token"
        return
    with pytest.raises(CredentialsUnavailable) as caught:
        command.fetch(1 if "within" in words else 30)
    message = str(caught.value)
    assert message.startswith(f"cannot log in: the token command {sys.executable}: ")
    assert words in message
    assert "hunter2" not in message
    assert message.isprintable()
    assert len(message) < 800


@pytest.mark.parametrize("name", ["/nowhere/kafka-token", "nul\0"])
def test_a_command_that_cannot_be_run(name: str) -> None:
    """A command that cannot be run is named in the error."""
    with pytest.raises(CredentialsUnavailable, match=r"token command .*cannot be run"):
        TokenCommand(arguments=(name,)).fetch(5)


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """An environment without any account of AWS."""
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    return monkeypatch


def test_the_signer_makes_a_token_of_aws_credentials(aws: pytest.MonkeyPatch) -> None:
    """
    The token is a signed address of the region's Kafka (SigV4) that expires in 15 minutes.

    Only MSK can verify it, so this test checks its parts.
    """
    aws.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    aws.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
    aws.setenv("AWS_REGION", "us-east-1")
    for source, region in ((MskIam(), "us-east-1"), (MskIam(region="eu-west-1"), "eu-west-1")):
        token = source.fetch(5)
        text = token.value.reveal()
        url = urlsplit(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode())
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        assert url.netloc == f"kafka.{region}.amazonaws.com"
        assert (query["Action"], query["X-Amz-Algorithm"]) == ("kafka-cluster:Connect", "AWS4-HMAC-SHA256")
        scope = f"AKIAEXAMPLE/{query['X-Amz-Date'][:8]}/{region}/kafka-cluster/aws4_request"
        assert (query["X-Amz-Credential"], query["X-Amz-Expires"]) == (scope, "900")
        assert len(query["X-Amz-Signature"]) == 64
        assert "hunter2" not in str(query)
        assert token.expires_at == pytest.approx(time.time() + 900, abs=60)


def test_what_aws_lacks_is_named(aws: pytest.MonkeyPatch) -> None:
    """Missing credentials, a missing region and an unknown profile of AWS are named."""
    for source, environ, words in (
        (MskIam(), {}, "AWS IAM: no region: set it, or AWS_REGION"),
        (MskIam(region="eu-west-1"), {}, "AWS IAM: no credentials: set AWS_PROFILE"),
        (MskIam(), {"AWS_PROFILE": "none"}, "AWS IAM: ProfileNotFound: "),
    ):
        for name, value in environ.items():
            aws.setenv(name, value)
        with pytest.raises(CredentialsUnavailable, match=words):
            source.fetch(5)


@pytest.mark.parametrize(
    ("mechanism", "module", "login", "words"),
    [
        (SaslMechanism.GSSAPI, "gssapi", {"kerberos": Kerberos()}, ".[kerberos]"),
        (SaslMechanism.AWS_MSK_IAM, "aws_msk_iam_sasl_signer", {"tokens": Tokens(MskIam())}, ".[msk]"),
    ]
)  # fmt: skip
def test_a_missing_library_is_named(
    monkeypatch: pytest.MonkeyPatch, mechanism: SaslMechanism, module: str, login: dict[str, Any], words: str
) -> None:
    """A missing library is named before a connection, with the command that installs it."""
    monkeypatch.setitem(sys.modules, module, None)
    connection = Connection(
        bootstrap_servers=("broker-1:9092",),
        protocol=SecurityProtocol.SASL_SSL,
        sasl=Sasl(mechanism=mechanism, **login),
    )
    with pytest.raises(LibraryMissing) as caught:
        open_quota_admin(connection)
    assert str(caught.value).endswith(f"in a clone of quotascope: pip install '{words}'")


@pytest.mark.parametrize("mechanism", SaslMechanism)
def test_a_login_lacks_nothing(mechanism: SaslMechanism) -> None:
    """A login without a setting that its mechanism needs is refused, as are tokens of AWS without TLS."""
    with pytest.raises(InvalidConnection, match=f"SASL/{mechanism} needs "):
        Sasl(mechanism=mechanism)
    aws = Sasl(mechanism=SaslMechanism.AWS_MSK_IAM, tokens=Tokens(MskIam()))
    with pytest.raises(InvalidConnection, match="AWS_MSK_IAM needs SASL_SSL"):
        Connection(bootstrap_servers=("broker-1:9098",), protocol=SecurityProtocol.SASL_PLAINTEXT, sasl=aws)
