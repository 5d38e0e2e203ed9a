"""
Services of logins without passwords: an issuer of tokens, and a Kerberos realm. Both on loopback, as any user.

The issuer signs real JWTs, which a broker checks by its keys (`BrokerJwtValidator`); the realm is a KDC of MIT
Kerberos.
"""

import base64
import contextlib
import json
import os
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, unquote_plus

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from tests.servers import Handler, served

from .certificates import Certificates
from .ports import free_port

CLIENT_ID: Final = "quotascope"
CLIENT_SECRET: Final = "s3cret: +/é"
SCOPE: Final = "kafka"
AUDIENCE: Final = "kafka-brokers"
REALM: Final = "QUOTASCOPE.TEST"
PRINCIPAL: Final = "quotascope"
_LISTENERS: Final = ("sasl", "sasltls")
_KEY_ID: Final = "key-1"


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@dataclass
class Issuer:
    """Issuer that gives tokens for its client id and secret at `token_url` (TLS). Its public keys are at `keys_url`."""

    token_url: str = ""
    keys_url: str = ""
    lifetime_seconds: float = 300.0
    """Lifetime of the next tokens."""
    audience: str = AUDIENCE
    """Audience of the next tokens."""
    issued: int = 0
    answer: tuple[int, dict[str, str], bytes] | None = None
    """Status, headers and body instead of a token."""
    requests: list[Mapping[str, list[str]]] = field(default_factory=list)
    _key: rsa.RSAPrivateKey = field(default_factory=lambda: rsa.generate_private_key(65_537, 2048))

    def token(self, *, forged: bool = False) -> str:
        """Return a token for `User:quotascope`; a forged one is signed by another key."""
        now = time.time()
        claims = {
            "iss": "https://issuer.test",
            "sub": CLIENT_ID,
            "aud": self.audience,
            "scope": SCOPE,
            "iat": int(now),
            "exp": now + self.lifetime_seconds,
            "jti": str(self.issued),
        }
        head = {"alg": "RS256", "typ": "JWT", "kid": _KEY_ID}
        text = ".".join(_encoded(json.dumps(part).encode()) for part in (head, claims))
        key = rsa.generate_private_key(65_537, 2048) if forged else self._key
        signature = key.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256())
        self.issued += 1
        return f"{text}.{_encoded(signature)}"

    def keys(self) -> bytes:
        """The public key as a set of JSON web keys (RFC 7517)."""
        numbers = self._key.public_key().public_numbers()
        key = {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": _KEY_ID} | {
            name: _encoded(number.to_bytes((number.bit_length() + 7) // 8))
            for name, number in (("n", numbers.n), ("e", numbers.e))
        }
        return json.dumps({"keys": [key]}).encode()

    def granted(self, authorization: str, form: str) -> bytes | None:
        """The answer to a request for a token; None for another client."""
        self.requests.append(parse_qs(form))
        login = base64.b64decode(authorization.removeprefix("Basic ")).decode()
        if [*map(unquote_plus, login.split(":"))] != [CLIENT_ID, CLIENT_SECRET]:
            return None
        granted: dict[str, Any] = {"access_token": self.token(), "token_type": "Bearer"}
        return json.dumps(granted | {"expires_in": self.lifetime_seconds}).encode()


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore a client that does not trust the certificate."""


@contextlib.contextmanager
def issuer(certificates: Certificates) -> Iterator[Issuer]:
    """Yield a running issuer; its certificate is for 127.0.0.1, by the authority of the cluster."""
    token_issuer = Issuer()

    class Answering(Handler):
        def do_GET(self) -> None:  # noqa: N802 - the library's name
            self.answer(200, token_issuer.keys())

        def do_POST(self) -> None:  # noqa: N802 - the library's name
            body = token_issuer.granted(self.headers["Authorization"], self.body().decode())
            if token_issuer.answer is not None:
                status, headers, body = token_issuer.answer
                self.answer(status, body, **headers)
            elif body is None:
                error = {"error": "invalid_client", "error_description": "no such client"}
                self.answer(401, json.dumps(error).encode())
            else:
                self.answer(200, body)

    servers = [_Server(("127.0.0.1", 0), Answering) for _ in range(2)]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.server, certificates.server_key)
    servers[0].socket = context.wrap_socket(servers[0].socket, server_side=True)
    token_issuer.token_url = f"https://127.0.0.1:{servers[0].server_port}/token"
    token_issuer.keys_url = f"http://127.0.0.1:{servers[1].server_port}/keys"
    with served(servers[0]), served(servers[1]):
        yield token_issuer


@dataclass(frozen=True, slots=True, kw_only=True)
class Realm:
    """A Kerberos realm with a principal for us and one for brokers at 127.0.0.1."""

    config: Path
    """Path of its `krb5.conf`, for brokers and for `KRB5_CONFIG`."""
    keytab: Path
    """The key of `PRINCIPAL`."""
    broker_keytab: Path


@contextlib.contextmanager
def realm(folder: Path) -> Iterator[Realm]:
    """A running KDC, on a port of loopback only."""
    folder.mkdir()
    port = free_port()
    address = f"127.0.0.1:{port}"
    kerberos = Realm(
        config=folder / "krb5.conf", keytab=folder / "client.keytab", broker_keytab=folder / "broker.keytab"
    )
    kerberos.config.write_text(
        f"[libdefaults]\ndefault_realm = {REALM}\ndns_lookup_kdc = false\ndns_canonicalize_hostname = false\n"
        f"rdns = false\nudp_preference_limit = 1\n[realms]\n{REALM} = {{\nkdc = {address}\n}}\n"
    )
    (folder / "kdc.conf").write_text(
        f"[realms]\n{REALM} = {{\nkdc_listen = {address}\nkdc_tcp_listen = {address}\ndatabase_name = {folder}/db\n"
        f"key_stash_file = {folder}/stash\nacl_file = {folder}/acl\n}}\n[logging]\nkdc = FILE:{folder}/kdc.log\n"
    )
    environ = {
        **os.environ,
        "PATH": f"{os.environ['PATH']}:/usr/sbin",
        "KRB5_CONFIG": str(kerberos.config),
        "KRB5_KDC_PROFILE": str(folder / "kdc.conf"),
    }

    def run(*command: str) -> None:
        subprocess.run(command, env=environ, check=True, capture_output=True)

    run("kdb5_util", "create", "-W", "-s", "-P", "master")
    for principal, keytab in ((PRINCIPAL, kerberos.keytab), ("kafka/127.0.0.1", kerberos.broker_keytab)):
        run("kadmin.local", "-q", f"addprinc -randkey {principal}")
        run("kadmin.local", "-q", f"ktadd -k {keytab} -norandkey {principal}")
    with subprocess.Popen(["krb5kdc", "-n"], env=environ) as process:
        try:
            _await(port)
            yield kerberos
        finally:
            process.terminate()


def _await(port: int) -> None:
    """Wait until something listens there; at most ten seconds."""
    for _ in range(200):
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port)).close()
            return
        time.sleep(0.05)
    raise TimeoutError(port)


def settings(keys: Issuer, tickets: Realm) -> dict[str, str]:
    """Return settings with which both SASL listeners accept tokens and tickets; sessions end with a token (KIP-368)."""
    oauth = "org.apache.kafka.common.security.oauthbearer"
    kerberos = (
        "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true isInitiator=false "
        f'keyTab="{tickets.broker_keytab}" principal="kafka/127.0.0.1@{REALM}";'
    )
    values = {
        "sasl.oauthbearer.jwks.endpoint.url": keys.keys_url,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "sasl.kerberos.service.name": "kafka",
    }
    for listener in _LISTENERS:
        prefix = f"listener.name.{listener}"
        values |= {
            f"{prefix}.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER,GSSAPI",
            f"{prefix}.oauthbearer.sasl.jaas.config": f"{oauth}.OAuthBearerLoginModule required;",
            f"{prefix}.oauthbearer.sasl.server.callback.handler.class": f"{oauth}.OAuthBearerValidatorCallbackHandler",
            f"{prefix}.oauthbearer.connections.max.reauth.ms": "3600000",
            f"{prefix}.gssapi.sasl.jaas.config": kerberos,
        }
    return values


def jvm(keys: Issuer, tickets: Realm) -> tuple[str, ...]:
    return (
        f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={keys.keys_url}",
        f"-Djava.security.krb5.conf={tickets.config}",
    )
