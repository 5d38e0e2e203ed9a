"""
The keys of a web config file.

The format is that of Prometheus's exporter-toolkit, so that one file serves all exporters of a machine. What Python's
ssl cannot do is refused, and not ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationInfo, field_validator, model_validator

from ..config.section import Seconds, Section, at_most_one, matching
from ..config.sources import UserName

NO_CLIENT_CERT: Final = "NoClientCert"
VERIFY_IF_GIVEN: Final = "VerifyClientCertIfGiven"
REQUIRE_AND_VERIFY: Final = "RequireAndVerifyClientCert"
CLIENT_AUTH: Final = (NO_CLIENT_CERT, VERIFY_IF_GIVEN, REQUIRE_AND_VERIFY)
"""The accepted values of ``client_auth_type``, the strictest last."""
_UNVERIFIED: Final = {
    kind: f"{kind} accepts certificates without verifying them, which Python's ssl cannot do, "
    f"and which does not protect: use {REQUIRE_AND_VERIFY}"
    for kind in ("RequestClientCert", "RequireAnyClientCert", "RequireClientCert")
}
"""Values of ``client_auth_type`` that are refused; the last is an old name of the one before."""
TLS13: Final = "TLS13"
_BROKEN: Final = {
    version: f"{version} is broken, and OpenSSL does not speak it any more: TLS12 or {TLS13}"
    for version in ("TLS10", "TLS11")
}
OPENSSL_SUITES: Final = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
}
"""The cipher suites of TLS 1.2 that can be chosen, by the names of IANA and Go, as OpenSSL calls them."""
_SUITES: Final = (
    *OPENSSL_SUITES,
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
)
"""Cipher suites; those of TLS 1.3, the last three, are always on, as in Go."""
_HASH: Final = re.compile(r"\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}", re.ASCII)
_COSTS: Final = range(4, 19)
"""Accepted costs of bcrypt: 18 takes some ten seconds for each new login, so that a higher cost is a typing error."""
_HEADERS: Final = {
    "Strict-Transport-Security": (),
    "X-Content-Type-Options": ("nosniff",),
    "X-Frame-Options": ("deny", "sameorigin"),
    "X-XSS-Protection": (),
    "Content-Security-Policy": (),
}
"""The headers that can be set, and their values where only some are valid, as in the toolkit."""


def _pem_file(path: Path, info: ValidationInfo) -> Path:
    """Resolve a path relative to the folder of the web config file."""
    folder = info.context["folder"] if info.context else Path()
    file: Path = folder / path
    if not file.is_file():
        raise ValueError(f"{file} is not a file")
    return file


def _one_of(allowed: Iterable[str], refused: Mapping[str, str] | None = None) -> AfterValidator:
    """Return a check for one of the allowed values; a value that is refused for a reason gets it as the message."""

    def check(value: str) -> str:
        if refused and value in refused:
            raise ValueError(refused[value])
        if value not in allowed:
            raise ValueError(f"expected one of {', '.join(allowed)}")
        return value

    return AfterValidator(check)


def _bcrypt(value: SecretStr) -> SecretStr:
    """Return the hash as it is. Raise ValueError if it is not one of bcrypt, or costs too little or too much."""
    match = _HASH.fullmatch(value.get_secret_value())
    if match is None:
        raise ValueError("is not a bcrypt hash, such as `htpasswd -nBC 10 '' | tr -d ':\\n'` prints")
    if int(match[1]) not in _COSTS:
        raise ValueError(f"has the cost {match[1]}: it must be {_COSTS[0]} to {_COSTS[-1]}")
    return value


PemFile = Annotated[Path, AfterValidator(_pem_file)]
TlsVersion = Annotated[str, _one_of(("TLS12", TLS13), _BROKEN)]


class TlsServerConfig(Section):
    """TLS, and the certificates that clients must have."""

    cert_file: PemFile
    key_file: PemFile
    client_auth_type: Annotated[str, _one_of(CLIENT_AUTH, _UNVERIFIED)] = NO_CLIENT_CERT
    client_ca_file: PemFile | None = None
    client_ca: str | None = None
    """The same as text."""
    client_allowed_sans: tuple[str, ...] = ()
    """A verified certificate must have one of these names, e-mail or IP addresses or URIs; empty for any."""
    min_version: TlsVersion = "TLS12"
    max_version: TlsVersion = TLS13
    cipher_suites: tuple[Annotated[str, _one_of(_SUITES)], ...] = ()
    """For TLS 1.2; empty for OpenSSL's."""
    prefer_server_cipher_suites: bool = True
    cert: SecretStr | None = None
    key: SecretStr | None = None
    curve_preferences: tuple[str, ...] = ()

    @field_validator("cert", "key")
    @classmethod
    def _not_inline(cls, _: SecretStr) -> SecretStr:
        raise ValueError("cannot be given here, because Python's ssl reads only files: use cert_file and key_file")

    @field_validator("curve_preferences")
    @classmethod
    def _not_ordered(cls, _: tuple[str, ...]) -> tuple[str, ...]:
        raise ValueError("is not supported: Python's ssl cannot order curves; leave it to OpenSSL")

    @model_validator(mode="after")
    def _consistent(self) -> TlsServerConfig:
        at_most_one(self, "client_ca_file", "client_ca")
        has_authority = self.client_ca_file is not None or self.client_ca is not None
        verifies = self.client_auth_type != NO_CLIENT_CERT
        if verifies and not has_authority:
            raise ValueError(f"{self.client_auth_type} needs client_ca_file")
        if has_authority and not verifies:
            raise ValueError(f"client_ca_file needs a client_auth_type, such as {REQUIRE_AND_VERIFY}")
        if self.client_allowed_sans and not verifies:
            raise ValueError(f"client_allowed_sans needs a client_auth_type, such as {REQUIRE_AND_VERIFY}")
        if self.min_version > self.max_version:
            raise ValueError("min_version is above max_version")
        return self


class HttpServerConfig(Section):
    """The headers of answers."""

    http2: bool = True
    """Accepted, without effect: the exporter speaks HTTP/1.1."""
    headers: dict[
        Annotated[str, _one_of(_HEADERS)],
        Annotated[
            str,
            matching("[ -~]*", problem="holds a line end, or a character that no header may have"),
        ],
    ] = Field(default_factory=dict)
    """They replace the exporter's headers of the same name; an empty value keeps the exporter's."""

    @model_validator(mode="after")
    def _consistent(self) -> HttpServerConfig:
        for name, value in self.headers.items():
            allowed = _HEADERS[name]
            if value and allowed and value not in allowed:
                raise ValueError(f"header {name}: expected {' or '.join(allowed)}")
        return self


class RateLimitConfig(Section):
    """The number of requests that are answered, of all clients together."""

    interval: Annotated[
        Seconds | None,
        # the toolkit's way to say that there is no interval
        BeforeValidator(lambda value: None if value in (0, "0", "0s") else value),
    ] = None
    """Seconds for each request; None for no limit."""
    burst: int = Field(default=0, ge=0)
    """Number of requests that may come at once."""

    @model_validator(mode="after")
    def _consistent(self) -> RateLimitConfig:
        if self.interval is not None and self.burst == 0:
            raise ValueError("interval needs a burst of 1 or more, else no request is answered")
        return self


class WebConfig(Section):
    """The whole file."""

    tls_server_config: TlsServerConfig | None = None
    """None for plain HTTP."""
    http_server_config: HttpServerConfig = HttpServerConfig()
    rate_limit: RateLimitConfig = RateLimitConfig()
    basic_auth_users: dict[UserName, Annotated[SecretStr, AfterValidator(_bcrypt)]] = Field(default_factory=dict)
    """bcrypt hashes by user; empty when no password is needed."""

    @model_validator(mode="after")
    def _consistent(self) -> WebConfig:
        headers = self.http_server_config.headers
        if headers.get("Strict-Transport-Security") and self.tls_server_config is None:
            raise ValueError(
                "http_server_config.headers: Strict-Transport-Security needs tls_server_config: "
                "browsers heed it over TLS only"
            )
        return self
