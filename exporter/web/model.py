"""
What a web config file says.

The format is that of Prometheus's exporter-toolkit, so that one file serves all exporters of a machine. What Python's
ssl cannot do is refused, and not passed over.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import (
    BeforeValidator,
    Field,
    SecretStr,
    field_validator,
    model_validator,
)

from ..config.section import Seconds, Section, at_most_one
from .values import (
    HEADERS,
    NO_CLIENT_CERT,
    REQUIRE_AND_VERIFY,
    TLS13,
    BcryptHash,
    ClientAuth,
    HeaderName,
    HeaderValue,
    PemFile,
    Suite,
    User,
    Version,
    none_is_zero,
)


class TlsServerConfig(Section):
    """TLS, and whom it is spoken with."""

    cert_file: PemFile
    key_file: PemFile
    client_auth_type: ClientAuth = NO_CLIENT_CERT
    client_ca_file: PemFile | None = None
    client_ca: str | None = None
    """The same as text."""
    client_allowed_sans: tuple[str, ...] = ()
    """A verified certificate must have one of these names, e-mail or IP addresses or URIs; empty for any."""
    min_version: Version = "TLS12"
    max_version: Version = TLS13
    cipher_suites: tuple[Suite, ...] = ()
    """For TLS 1.2; empty for OpenSSL's."""
    prefer_server_cipher_suites: bool = True
    cert: SecretStr | None = None
    key: SecretStr | None = None
    curve_preferences: tuple[str, ...] = ()

    @field_validator("cert", "key")
    @classmethod
    def _not_inline(cls, _: SecretStr) -> SecretStr:
        raise ValueError(
            "cannot be given here, for Python's ssl reads files only: use cert_file and key_file"
        )

    @field_validator("curve_preferences")
    @classmethod
    def _not_ordered(cls, _: tuple[str, ...]) -> tuple[str, ...]:
        raise ValueError(
            "is not there: Python's ssl cannot order curves; leave it to OpenSSL"
        )

    @model_validator(mode="after")
    def _consistent(self) -> TlsServerConfig:
        at_most_one(self, "client_ca_file", "client_ca")
        given = self.client_ca_file is not None or self.client_ca is not None
        verifies = self.client_auth_type != NO_CLIENT_CERT
        if verifies and not given:
            raise ValueError(f"{self.client_auth_type} needs client_ca_file")
        if given and not verifies:
            raise ValueError(f"client_ca_file needs a client_auth_type, such as {REQUIRE_AND_VERIFY}")  # fmt: skip
        if self.client_allowed_sans and not verifies:
            raise ValueError(f"client_allowed_sans needs a client_auth_type, such as {REQUIRE_AND_VERIFY}")  # fmt: skip
        if self.min_version > self.max_version:
            raise ValueError("min_version is above max_version")
        return self


class HttpServerConfig(Section):
    """What answers carry."""

    http2: bool = True
    """Taken and without effect: HTTP/1.1 is what is spoken, and what every client can."""
    headers: dict[HeaderName, HeaderValue] = Field(default_factory=dict)
    """Instead of ours of the same name; an empty one leaves ours."""

    @model_validator(mode="after")
    def _consistent(self) -> HttpServerConfig:
        for name, value in self.headers.items():
            allowed = HEADERS[name]
            if value and allowed and value not in allowed:
                raise ValueError(f"header {name}: expected {' or '.join(allowed)}")
        return self


class RateLimitConfig(Section):
    """How many requests there may be, whoever sends them."""

    interval: Annotated[Seconds | None, BeforeValidator(none_is_zero)] = None
    """Seconds for each request; None for no limit."""
    burst: int = Field(default=0, ge=0)
    """So many at once."""

    @model_validator(mode="after")
    def _consistent(self) -> RateLimitConfig:
        if self.interval is not None and self.burst == 0:
            raise ValueError("interval needs a burst of 1 or more: none is let in else")
        return self


class WebConfig(Section):
    """The whole file."""

    tls_server_config: TlsServerConfig | None = None
    """None for plain HTTP."""
    http_server_config: HttpServerConfig = HttpServerConfig()
    rate_limit: RateLimitConfig = RateLimitConfig()
    basic_auth_users: dict[User, BcryptHash] = Field(default_factory=dict)
    """bcrypt hashes by user; empty when everybody may ask."""

    @model_validator(mode="after")
    def _consistent(self) -> WebConfig:
        headers = self.http_server_config.headers
        if headers.get("Strict-Transport-Security") and self.tls_server_config is None:
            raise ValueError(
                "http_server_config.headers: Strict-Transport-Security needs tls_server_config: browsers heed it over TLS only"
            )
        return self
