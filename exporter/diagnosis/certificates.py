"""The expiry of certificates that servers present or files hold, and the privacy of secret files."""

from __future__ import annotations

import asyncio
import ssl
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeAlias

from cryptography import x509
from yarl import URL

from quotascope.clients.errors import ClientError
from quotascope.clients.reading import content_of
from quotascope.clients.security import Tls

from ..config import Config, SourceConfig, TlsConfig, tls_of
from ..config.load import named_files
from ..config.section import MOST_BYTES
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
"""A TLS server: host, port, and how to connect."""


async def certificates(
    config: Config, found_sources: Iterable[SourceConfig], clock: Callable[[], float] = time.time
) -> list[Finding]:
    """Return findings about the certificates of all TLS servers that are configured or discovered, and of all files."""
    servers = list(dict.fromkeys(_servers(config, found_sources)))
    presented = await asyncio.gather(*map(_presented, servers))
    now_seconds = clock()
    findings = []
    for (host, port, _), der in zip(servers, presented, strict=True):
        if der is None:
            continue
        try:
            certificate = x509.load_der_x509_certificate(der)
        except (ValueError, x509.InvalidVersion):
            findings.append(Catalog.CERTIFICATE_UNREADABLE.found(f"{host}:{port}"))
        else:
            findings.append(expiry_finding(f"{host}:{port}", _end(certificate), now_seconds))
    web = _web_settings(config)
    ends = ends_of_files(config, web or WebSettings())
    return [*findings, *(expiry_finding(str(path), end, now_seconds) for path, end in ends.items())]


def ends_of_files(config: Config, web: WebSettings) -> dict[Path, float]:
    """
    Return the times until which certificates are valid, in Unix time, by file.

    The files are those that the configuration and the web config file name. In a file of authorities the last time
    counts, since one valid authority is enough; in a chain the first. Files without a certificate are left out.
    """
    ends = {}
    tls = web.config.tls_server_config
    authorities = tls.client_ca_file if tls else None
    # of these files, only that of the authorities needs its name, by which it is recognized below
    files_of_web = [("client_ca_file" if path == authorities else "", path) for path in web.files]
    for name, path in [*named_files(config), *files_of_web]:
        try:
            certificates = x509.load_pem_x509_certificates(content_of(path, MOST_BYTES))
        except (OSError, ValueError, x509.InvalidVersion):
            continue  # a password or a key; other faults are reported by another check
        end_that_counts = max if name.endswith("ca_file") else min
        ends[path] = end_that_counts(map(_end, certificates))
    return ends


def expiry_finding(name: str, end: float, now_seconds: float) -> Finding:
    """Return a finding about the time for which a certificate is still valid; both times are Unix times in seconds."""
    days = (end - now_seconds) / _DAY
    if days < 0:
        return Catalog.CERTIFICATE_ENDED.found(name, days=-days)
    ends_soon = days < _SOON_DAYS
    entry = Catalog.CERTIFICATE_ENDS if ends_soon else Catalog.CERTIFICATE_VALID
    return entry.found(name, days=days)


def secrets(config: Config) -> Iterator[Finding]:
    """Yield a finding for each file with passwords, tokens or keys that every user of this machine can read."""
    web = _web_settings(config)
    named = [*named_files(config), *named_files(web.config if web else None)]
    for path in dict.fromkeys(path for name, path in named if name in _SECRET_FIELDS):
        try:
            mode = path.stat().st_mode
        except OSError:
            continue
        if mode & stat.S_IROTH:
            yield Catalog.SECRET_READABLE.found(path)


def _servers(config: Config, found_sources: Iterable[SourceConfig]) -> Iterator[_TlsServer]:
    """Yield all TLS servers that are configured or discovered; the same server may come more than once."""
    urls = [(source.url, source.tls) for source in (*config.agents, *found_sources)]
    urls += [(server.url, server.tls) for server in config.prometheus_servers]
    if config.otlp is not None and config.otlp.endpoint is not None:
        urls.append((config.otlp.endpoint, None))
    for url, tls in urls:
        parts = URL(url)
        if parts.scheme == "https" and parts.host and parts.port:
            yield parts.host, parts.port, tls
    kafka = config.kafka
    if kafka is not None and kafka.security_protocol.uses_tls:
        for bootstrap_server in kafka.bootstrap_servers:
            host, _, port = bootstrap_server.rpartition(":")
            yield host.strip("[]"), int(port), kafka.tls


async def _presented(server: _TlsServer) -> bytes | None:
    """Return the server's certificate, trusted or not; None if there is no TLS session: other checks say why."""
    host, port, tls = server
    try:
        settings = tls_of(tls) if tls else Tls()
        context = replace(settings, verify=False).context()
        async with asyncio.timeout(_SECONDS):
            _, writer = await asyncio.open_connection(host, port, ssl=context)
    except (OSError, ValueError, ClientError, TimeoutError):
        return None
    session: ssl.SSLObject | None = writer.get_extra_info("ssl_object")
    writer.close()
    return session.getpeercert(binary_form=True) if session else None


def _web_settings(config: Config) -> WebSettings | None:
    """Return the web config file; None without one, or if it cannot be used, which the check `listening` reports."""
    file = config.server.web_config_file
    try:
        return None if file is None else load_web_settings(file)
    except ConfigError:
        return None


def _end(certificate: x509.Certificate) -> float:
    """Return the Unix time in seconds until which a certificate is valid."""
    return certificate.not_valid_after_utc.timestamp()
