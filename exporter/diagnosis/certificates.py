"""Whether certificates expire soon, those that servers present and those in files, and whether secret files are private."""

from __future__ import annotations

import asyncio
import ssl
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Final, TypeAlias

from cryptography import x509
from yarl import URL

from quotascope.clients.errors import ClientError
from quotascope.clients.security import Tls

from ..config import Config, SourceConfig, TlsConfig, tls_of
from ..config.load import named_files
from ..errors import ConfigError
from ..web.settings import WebSettings, load_web_settings
from .catalog import Catalog, Finding

_DAY: Final = 86_400.0
_SOON_DAYS: Final = 21
_SECONDS: Final = 5.0
_SECRET_FIELDS: Final = frozenset(
    {
        "header_files",
        "key_file",
        "key_password_file",
        "password_file",
        "web_config_file",
    }
)
_TlsServer: TypeAlias = tuple[str, int, TlsConfig | None]
"""Host, port, and how to connect."""


async def certificates(
    config: Config, found: Iterable[SourceConfig], clock: Callable[[], float] = time.time
) -> list[Finding]:
    """The certificates of all TLS servers that the configuration or discovery names, and of all files that hold some."""
    servers = list(dict.fromkeys(_servers(config, found)))
    presented = await asyncio.gather(*map(_presented, servers))
    now = clock()
    findings = []
    for (host, port, _), der in zip(servers, presented, strict=True):
        if der is None:
            continue
        try:
            certificate = x509.load_der_x509_certificate(der)
        except (ValueError, x509.InvalidVersion):
            findings.append(Catalog.CERTIFICATE_UNREADABLE.found(f"{host}:{port}"))
        else:
            findings.append(judged(f"{host}:{port}", _end(certificate), now))
    web = _web_settings(config)
    named = {path: name for name, path in named_files(config)}
    for path, name in {**named, **dict.fromkeys(web.files if web else (), "")}.items():
        try:
            held = x509.load_pem_x509_certificates(path.read_bytes())
        except (OSError, ValueError, x509.InvalidVersion):
            continue  # a password or a key, or reported by another check
        # one valid authority is enough; in a chain every certificate has to be valid
        choose = max if name == "ca_file" else min
        findings.append(judged(str(path), choose(map(_end, held)), now))
    return findings


def judged(name: str, end: float, now: float) -> Finding:
    """How long a certificate is still valid; both are Unix times in seconds."""
    days = (end - now) / _DAY
    if days < 0:
        return Catalog.CERTIFICATE_ENDED.found(name, days=-days)
    ends_soon = days < _SOON_DAYS
    entry = Catalog.CERTIFICATE_ENDS if ends_soon else Catalog.CERTIFICATE_VALID
    return entry.found(name, days=days)


def secrets(config: Config) -> Iterator[Finding]:
    """A finding for each file with passwords, tokens or keys that every user of this machine can read."""
    web = _web_settings(config)
    named = [*named_files(config), *named_files(web.config if web else None)]
    for path in dict.fromkeys(path for name, path in named if name in _SECRET_FIELDS):
        try:
            mode = path.stat().st_mode
        except OSError:
            continue
        if mode & stat.S_IROTH:
            yield Catalog.SECRET_READABLE.found(path)


def _servers(config: Config, found: Iterable[SourceConfig]) -> Iterator[_TlsServer]:
    urls = [(source.url, source.tls) for source in (*config.sources, *found)]
    if config.otlp is not None and config.otlp.endpoint is not None:
        urls.append((config.otlp.endpoint, None))
    for url, tls in urls:
        parts = URL(url)
        if parts.scheme == "https" and parts.host and parts.port:
            yield parts.host, parts.port, tls
    kafka = config.kafka
    if kafka is not None and kafka.security_protocol.uses_tls:
        for each in kafka.bootstrap_servers:
            host, _, port = each.rpartition(":")
            yield host.strip("[]"), int(port), kafka.tls


async def _presented(server: _TlsServer) -> bytes | None:
    """The server's certificate, trusted or not; None without a TLS session, for which other checks give the reason."""
    host, port, tls = server
    try:
        ours = tls_of(tls) if tls else Tls()
        context = replace(ours, verify=False).context()
        async with asyncio.timeout(_SECONDS):
            _, writer = await asyncio.open_connection(host, port, ssl=context)
    except (OSError, ValueError, ClientError, TimeoutError):
        return None
    session: ssl.SSLObject | None = writer.get_extra_info("ssl_object")
    writer.close()
    return session.getpeercert(binary_form=True) if session else None


def _web_settings(config: Config) -> WebSettings | None:
    """The web config file; None without one, and for one that cannot be used, which the check of the address reports."""
    file = config.server.web_config_file
    try:
        return None if file is None else load_web_settings(file)
    except ConfigError:
        return None


def _end(certificate: x509.Certificate) -> float:
    return certificate.not_valid_after_utc.timestamp()
