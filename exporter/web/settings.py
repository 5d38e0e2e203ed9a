"""The settings of a web config file, which are read again after it, or a file that it names, has changed."""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import structlog

from quotascope.clients.reading import content_of

from ..config.file import read_document
from ..config.load import filled
from ..config.section import MOST_BYTES
from ..errors import ConfigError, os_reason
from ..following import Signature, signature
from .web_config import (
    CLIENT_AUTH,
    OPENSSL_SUITES,
    REQUIRE_AND_VERIFY,
    TLS13,
    VERIFY_IF_GIVEN,
    TlsServerConfig,
    WebConfig,
)

log = structlog.get_logger()

_VERIFICATION: Final = {
    VERIFY_IF_GIVEN: ssl.CERT_OPTIONAL,
    REQUIRE_AND_VERIFY: ssl.CERT_REQUIRED,
}
_VERSIONS: Final = {"TLS12": ssl.TLSVersion.TLSv1_2, TLS13: ssl.TLSVersion.TLSv1_3}
_NAMES: Final = {"DNS", "email", "IP Address", "URI"}
"""Kinds of subject alternative names that are compared with ``client_allowed_sans``."""
_SWITCHED: Final = "tls_server_config was added or removed: turning TLS on or off needs a restart"
_OPENED: Final = (
    "{field} {what}: to allow more clients, restart the exporter; a file that is half written looks the same"
)
_KEYS: Final = ("cert_file", "key_file", "client_ca_file")


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSettings:
    """A web config file that was read without mistakes."""

    config: WebConfig = field(default_factory=WebConfig)
    tls: ssl.SSLContext | None = field(default=None, repr=False)
    """TLS settings; None for plain HTTP."""
    files: tuple[Path, ...] = ()
    """The file and those that it names."""


def load_web_settings(path: Path) -> WebSettings:
    """Return the settings of a web config file. Raises ``ConfigError`` with all mistakes at once."""
    document = read_document(path, None)
    config = filled(WebConfig, document, str(path), context={"folder": path.parent})
    tls = config.tls_server_config
    if tls is None:
        return WebSettings(config=config, files=(path,))
    files = {key: file for key in _KEYS if (file := getattr(tls, key)) is not None}
    for key, file in files.items():
        try:
            content_of(file, MOST_BYTES)  # OpenSSL would wait for the writer of a pipe
        except OSError as error:
            problem = f"tls_server_config.{key}: {file} cannot be read: {os_reason(error)}"
            raise ConfigError(str(path), [problem]) from None
    try:
        context = server_context(tls)
    except ValueError as error:
        raise ConfigError(str(path), [str(error)]) from None
    return WebSettings(config=config, tls=context, files=(path, *files.values()))


def server_context(config: TlsServerConfig) -> ssl.SSLContext:
    """
    Return the context for the server's side.

    Raises ``ValueError``, which names the key, when a file or suite cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = _VERSIONS[config.min_version]
    context.maximum_version = _VERSIONS[config.max_version]
    if not config.prefer_server_cipher_suites:
        context.options &= ~ssl.OP_CIPHER_SERVER_PREFERENCE
    else:
        context.options |= ssl.OP_CIPHER_SERVER_PREFERENCE
    context.options |= ssl.OP_NO_RENEGOTIATION
    suites = ":".join(OPENSSL_SUITES[name] for name in config.cipher_suites if name in OPENSSL_SUITES)
    if suites:
        context.set_ciphers(suites)
    elif config.cipher_suites:  # no suite that TLS 1.2 knows
        if config.max_version != TLS13:
            raise ValueError("tls_server_config.cipher_suites has none for max_version TLS12")
        context.minimum_version = ssl.TLSVersion.TLSv1_3
    try:
        # an empty password instead of None: OpenSSL would ask on the terminal
        context.load_cert_chain(config.cert_file, config.key_file, "")
    except OSError as error:
        raise ValueError(
            f"tls_server_config.cert_file and key_file: {config.cert_file} with {config.key_file} cannot be used"
            f" ({os_reason(error)}): both must be PEM, belong together, and the key have no password"
        ) from None
    verification = _VERIFICATION.get(config.client_auth_type)
    if verification is not None:
        context.verify_mode = verification
        file = config.client_ca_file
        try:
            context.load_verify_locations(file, cadata=config.client_ca)
        except OSError as error:
            raise ValueError(
                f"tls_server_config.client_ca_file: {file or 'client_ca'} cannot be used ({os_reason(error)})"
            ) from None
    context.set_alpn_protocols(["http/1.1"])
    return context


def is_allowed(transport: asyncio.BaseTransport, allowed: tuple[str, ...]) -> bool:
    """
    Return whether ``client_allowed_sans`` allows the client of a connection.

    It does when it is empty, when the client showed no certificate (then none was required), or when it has one of the
    subject alternative names of the client's certificate.
    """
    if not allowed:
        return True
    certificate = transport.get_extra_info("peercert")
    return not certificate or bool(alternative_names(certificate) & set(allowed))


def alternative_names(certificate: Mapping[str, Any]) -> set[str]:
    """Return the DNS names, e-mail and IP addresses and URIs of a certificate as Python's ssl returns it."""
    names = set()
    for kind, name in certificate.get("subjectAltName", ()):
        if kind == "IP Address":
            try:
                names.add(str(ipaddress.ip_address(name.strip())))
            except ValueError:
                names.add(name)
        elif kind in _NAMES:
            names.add(name)
    return names


class WatchedSettings:
    """
    The current settings of a web config file, or those without one.

    When the file cannot be used any more, that is logged once, and the last valid settings stay: neither a certificate
    that does not match its key yet nor a typing error changes who can connect. Raises ``ConfigError`` when it cannot
    be used at first.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._settings, self._seen = _loaded(path) if path else (WebSettings(), ())
        self._problem: str | None = None

    def now(self) -> WebSettings:
        """Return the settings."""
        return self._settings

    def look(self) -> None:
        """Look at the files, and read them when they have changed, or could not be used the last time; may block."""
        new_signature = signature(self._settings.files)
        if self._path is None or (new_signature == self._seen and self._problem is None):
            return
        try:
            settings, new_signature = _loaded(self._path)
            _refuse_loosened(self._path, settings, self._settings)
        except ConfigError as error:
            problem = str(error)
        else:
            self._settings, self._seen, self._problem = settings, new_signature, None
            log.info("the web config file was read again", path=str(self._path))
            return
        if problem != self._problem:
            log.error("the web config file cannot be used any more: the last good one stays", error=problem)
        # a named file may appear later, and is not watched yet
        self._seen, self._problem = new_signature, problem


def _loaded(path: Path) -> tuple[WebSettings, Signature]:
    """Return the settings with the signature of their files before they were read, so that no change is missed."""
    old_signature = signature(load_web_settings(path).files)
    return load_web_settings(path), old_signature


def _refuse_loosened(path: Path, new: WebSettings, old: WebSettings) -> None:
    """Raise ``ConfigError`` for changes that need a restart: TLS on or off, and all that allows more clients."""
    if (new.tls is None) is not (old.tls is None):
        raise ConfigError(str(path), [_SWITCHED])
    loosened: list[tuple[str, str]] = []
    if old.config.basic_auth_users and not new.config.basic_auth_users:
        loosened.append(("basic_auth_users", "is empty"))
    new_tls, old_tls = new.config.tls_server_config, old.config.tls_server_config
    if new_tls is not None and old_tls is not None:
        kind = new_tls.client_auth_type
        if CLIENT_AUTH.index(kind) < CLIENT_AUTH.index(old_tls.client_auth_type):
            loosened.append(("client_auth_type", f"is {kind} now"))
        if old_tls.client_allowed_sans and not new_tls.client_allowed_sans:
            loosened.append(("client_allowed_sans", "is empty"))
    if loosened:
        texts = [_OPENED.format(field=field, what=change) for field, change in loosened]
        raise ConfigError(str(path), texts)
