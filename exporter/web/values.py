"""Single values of a web config file: which there are, and what is said about others."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator, SecretStr, ValidationInfo

from .ciphers import known_suite

VERIFY_IF_GIVEN: Final = "VerifyClientCertIfGiven"
REQUIRE_AND_VERIFY: Final = "RequireAndVerifyClientCert"
NO_CLIENT_CERT: Final = "NoClientCert"
TLS13: Final = "TLS13"

_UNVERIFIED: Final = {
    "RequestClientCert",
    "RequireAnyClientCert",
    "RequireClientCert",  # what the toolkit once called the one above
}
_CLIENT_AUTH: Final = (NO_CLIENT_CERT, VERIFY_IF_GIVEN, REQUIRE_AND_VERIFY)
_HASH: Final = re.compile(r"\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}", re.ASCII)
_COSTS: Final = range(4, 19)
"""18 takes some ten seconds for each login that is not known yet; beyond, it is a typing error."""
HEADERS: Final = {
    "Strict-Transport-Security": (),
    "X-Content-Type-Options": ("nosniff",),
    "X-Frame-Options": ("deny", "sameorigin"),
    "X-XSS-Protection": (),
    "Content-Security-Policy": (),
}
"""Which headers can be set, and to what; the toolkit knows the same."""


def _beside_the_file(path: Path, info: ValidationInfo) -> Path:
    """Paths are relative to the folder of the web config file."""
    folder = info.context["folder"] if info.context else Path()
    found: Path = folder / path
    if not found.is_file():
        raise ValueError(f"{found} is no file")
    return found


def _client_auth(kind: str) -> str:
    if kind in _UNVERIFIED:
        raise ValueError(
            f"{kind} takes certificates that nobody verified, which Python's ssl cannot, and which is no protection: "
            f"use {REQUIRE_AND_VERIFY}"
        )
    if kind not in _CLIENT_AUTH:
        raise ValueError(f"expected one of {', '.join(_CLIENT_AUTH)}")
    return kind


def _version(version: str) -> str:
    if version in {"TLS10", "TLS11"}:
        raise ValueError(
            f"{version} is broken, and OpenSSL does not speak it any more: TLS12 or {TLS13}"
        )
    if version not in {"TLS12", TLS13}:
        raise ValueError(f"expected TLS12 or {TLS13}")
    return version


def _header(name: str) -> str:
    if name not in HEADERS:
        raise ValueError(f"cannot be set here; known: {', '.join(HEADERS)}")
    return name


def _header_value(value: str) -> str:
    if not value.isprintable() or not value.isascii():
        raise ValueError("holds a line end, or a character that no header may have")
    return value


def _user(name: str) -> str:
    if ":" in name:
        raise ValueError("must not hold a colon: it ends there in HTTP")
    return name


def _bcrypt(value: SecretStr) -> SecretStr:
    match = _HASH.fullmatch(value.get_secret_value())
    if match is None:
        raise ValueError(
            "is not a bcrypt hash, such as `htpasswd -nBC 10 '' | tr -d ':\\n'` prints"
        )
    if int(match[1]) not in _COSTS:
        raise ValueError(
            f"has the cost {match[1]}: it must be {_COSTS[0]} to {_COSTS[-1]}"
        )
    return value


def none_is_zero(value: object) -> object:
    """None for what the toolkit calls no interval."""
    return None if value in (0, "0", "0s") else value


PemFile = Annotated[Path, AfterValidator(_beside_the_file)]
ClientAuth = Annotated[str, AfterValidator(_client_auth)]
Version = Annotated[str, AfterValidator(_version)]
Suite = Annotated[str, AfterValidator(known_suite)]
HeaderName = Annotated[str, AfterValidator(_header)]
HeaderValue = Annotated[str, AfterValidator(_header_value)]
User = Annotated[str, AfterValidator(_user)]
BcryptHash = Annotated[SecretStr, AfterValidator(_bcrypt)]
