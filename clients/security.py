"""Settings of a connection to a Kafka cluster: servers, protocol, credentials and trusted certificates."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Final, Protocol

from .errors import InvalidConnection
from .reading import content_of

_MOST_BYTES: Final = 1 << 20
"""Bound of a file of certificates; the file of all public authorities has a quarter of it."""


class SecurityProtocol(StrEnum):
    """Kafka's `security.protocol`."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def is_secured(self) -> bool:
        """True if clients need settings for TLS or a login."""
        return self is not SecurityProtocol.PLAINTEXT

    @property
    def uses_sasl(self) -> bool:
        """True if the client logs in by SASL."""
        return self in {SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL}

    @property
    def uses_tls(self) -> bool:
        """True if the connection is encrypted."""
        return self in {SecurityProtocol.SSL, SecurityProtocol.SASL_SSL}


class SaslMechanism(StrEnum):
    """Kafka's `sasl.mechanism`."""

    PLAIN = "PLAIN"
    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_512 = "SCRAM-SHA-512"
    OAUTHBEARER = "OAUTHBEARER"
    AWS_MSK_IAM = "AWS_MSK_IAM"
    """AWS's name of the mechanism; the protocol's name is OAUTHBEARER, with a token that AWS's signer makes."""
    GSSAPI = "GSSAPI"

    @property
    def on_the_wire(self) -> str:
        """The mechanism's name in the protocol."""
        return "OAUTHBEARER" if self is SaslMechanism.AWS_MSK_IAM else self.value


class Secret:
    """A password that is never shown by accident: only `reveal` returns it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the password itself, only to be passed on."""
        return self._value

    def __repr__(self) -> str:
        return "Secret('****')"

    __str__ = __repr__


class BearerTokens(Protocol):
    """Source of tokens for OAUTHBEARER; `login.Tokens` gets them from an issuer, a file, a command or AWS."""

    @property
    def origin(self) -> str:
        """Description of the source, for messages."""
        ...

    def current(self, seconds: float) -> Secret:
        """Return a token that has not expired; takes about ``seconds`` at most. Raises `CredentialsUnavailable`."""
        ...

    def refused(self) -> str:
        """Drop the last token, and return its claims without secrets."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Kerberos:
    """A ticket made from `keytab`, or one that exists already (`kinit`, `KRB5CCNAME`, `KRB5_CLIENT_KTNAME`)."""

    service_name: str = "kafka"
    """The first part of the brokers' principals (Kafka: `sasl.kerberos.service.name`)."""
    keytab: Path | None = None
    """Key of the client's principal; the library makes tickets from it, and renews them. The whole process uses it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sasl:
    """
    Credentials.

    `username` and `password` for PLAIN and SCRAM, `tokens` for OAUTHBEARER and AWS_MSK_IAM, `kerberos` for GSSAPI.

    Raises `InvalidConnection` when the mechanism lacks what it needs.
    """

    mechanism: SaslMechanism = SaslMechanism.PLAIN
    username: str = ""
    """User name; empty where only the broker knows the user of a token or ticket."""
    password: Secret = field(default_factory=partial(Secret, ""))
    tokens: BearerTokens | None = None
    kerberos: Kerberos | None = None

    def __post_init__(self) -> None:
        if self.mechanism.on_the_wire == SaslMechanism.OAUTHBEARER:
            needed, is_set = "a source of tokens", self.tokens is not None
        elif self.mechanism is SaslMechanism.GSSAPI:
            needed, is_set = "Kerberos", self.kerberos is not None
        else:
            needed, is_set = "a user", bool(self.username)
        if not is_set:
            raise InvalidConnection(f"SASL/{self.mechanism} needs {needed}")

    @property
    def credential(self) -> str:
        """The name of the credential for messages about a refused login."""
        if self.tokens is not None:
            return f"the token of {self.tokens.origin}"
        return "the Kerberos ticket" if self.kerberos else f"user {self.username!r}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """Trusted authorities, and the client's certificate. All files are PEM."""

    ca_file: Path | None = None
    """Certificates of the trusted authorities; None for those of the system."""
    cert_file: Path | None = None
    """The client's certificate with its chain, for clusters that ask for one."""
    key_file: Path | None = None
    """Private key of the certificate; None when it is in `cert_file`."""
    key_password: Secret | None = None
    verify: bool = True
    """Verification of the server's certificate; False accepts any certificate and name, for tests only."""

    def context(self) -> ssl.SSLContext:
        """Return an SSL context with these settings. Raises `InvalidConnection` when a file cannot be used."""
        try:
            if self.ca_file is not None:
                content_of(self.ca_file, _MOST_BYTES)  # OpenSSL would wait for the writer of a pipe
            context = ssl.create_default_context(cafile=self.ca_file)
        except OSError as error:
            raise InvalidConnection(f"the CA file {self.ca_file} cannot be used: {_reason(error)}") from error
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.cert_file is not None:
            self._load_certificate(context, self.cert_file)
        return context

    def _load_certificate(self, context: ssl.SSLContext, cert_file: Path) -> None:
        # an empty password instead of None: OpenSSL would ask on the terminal
        password = self.key_password.reveal() if self.key_password else ""
        try:
            for file in filter(None, (cert_file, self.key_file)):
                content_of(file, _MOST_BYTES)
            context.load_cert_chain(cert_file, self.key_file, password)
        except OSError as error:
            files = cert_file if self.key_file is None else f"{cert_file} with {self.key_file}"
            raise InvalidConnection(f"the client certificate {files} cannot be used: {_reason(error)}") from error


def _reason(error: OSError) -> str:
    """Return the reason why a TLS file cannot be used, without the codes of OpenSSL and of the operating system."""
    if not isinstance(error, ssl.SSLError):
        return error.strerror or str(error)
    if not error.reason:  # OpenSSL's way to say that nothing in the file is PEM
        return "it is no PEM file"
    return error.reason.replace("_", " ").lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """
    All settings that are needed to reach a cluster.

    Raises `InvalidConnection` when SASL is wanted without a login, a login is given without SASL, or AWS's without TLS.
    """

    bootstrap_servers: tuple[str, ...]
    """`host:port` of the brokers to ask first."""
    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    sasl: Sasl | None = None
    tls: Tls = field(default_factory=Tls)
    """TLS settings, used by the SSL protocols only."""
    client_id: str = "quotascope"
    timeout_seconds: float = 10.0
    """Timeout of connecting, and again of each request."""

    def __post_init__(self) -> None:
        if not self.bootstrap_servers:
            raise InvalidConnection("no bootstrap server is given")
        if self.protocol.uses_sasl and self.sasl is None:
            raise InvalidConnection(f"{self.protocol} needs a SASL login")
        if self.sasl is not None and not self.protocol.uses_sasl:
            raise InvalidConnection(f"a SASL login has no effect with {self.protocol}")
        if self.sasl is not None and self.sasl.mechanism is SaslMechanism.AWS_MSK_IAM and not self.protocol.uses_tls:
            raise InvalidConnection(f"AWS_MSK_IAM needs SASL_SSL, not {self.protocol}")
