"""Whether certificates end soon: those that servers show, and those in files."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from cryptography import x509

from quotascope.clients.errors import ClientError
from quotascope.clients.security import Tls

from ..config import Config, SourceConfig, TlsConfig
from ..config.loaded import named_files
from ..errors import ConfigError
from ..tls import tls_of
from ..web.settings import load_web_settings
from .result import Result, Verdict

_DAY: Final = 86_400.0
_SOON_DAYS: Final = 21
_HTTPS: Final = 443
_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server that shows a certificate."""

    host: str
    port: int
    tls: TlsConfig | None


async def certificates(
    config: Config,
    found: Iterable[SourceConfig],
    clock: Callable[[], float] = time.time,
) -> list[Result]:
    """The certificates of all servers that are spoken to over TLS, and of all files that hold some."""
    servers = dict.fromkeys(_servers(config, found))
    shown = await asyncio.gather(*map(_certificate, servers))
    now = clock()
    results = [
        _of_server(f"{server.host}:{server.port}", der, now)
        for server, der in zip(servers, shown, strict=True)
        if der is not None
    ]
    return results + list(_of_files(config, now))


def _servers(config: Config, found: Iterable[SourceConfig]) -> Iterator[Server]:
    for source in (*config.sources, *found):
        yield from _of_url(source.url, source.tls)
    kafka = config.kafka
    if kafka is not None and kafka.security_protocol.uses_tls:
        for each in kafka.bootstrap_servers:
            host, _, port = each.rpartition(":")
            yield Server(host=host.strip("[]"), port=int(port), tls=kafka.tls)
    if config.otlp is not None and config.otlp.endpoint is not None:
        yield from _of_url(config.otlp.endpoint, None)


def _of_url(url: str, tls: TlsConfig | None) -> Iterator[Server]:
    parts = urlsplit(url)
    if parts.scheme == "https" and parts.hostname:
        yield Server(host=parts.hostname, port=parts.port or _HTTPS, tls=tls)


async def _certificate(server: Server) -> bytes | None:
    """What it shows, trusted or not; None when there is no TLS session, which other checks tell."""
    try:
        ours = tls_of(server.tls) if server.tls else Tls()
        context = replace(ours, verify=False).context()
        async with asyncio.timeout(_SECONDS):
            _, writer = await asyncio.open_connection(
                server.host, server.port, ssl=context
            )
    except (OSError, ValueError, ClientError, TimeoutError):
        return None
    session: ssl.SSLObject | None = writer.get_extra_info("ssl_object")
    writer.close()
    return session.getpeercert(binary_form=True) if session else None


def _of_files(config: Config, now: float) -> Iterator[Result]:
    named = {path: name for name, path in named_files(config)}
    for path, name in {**named, **dict.fromkeys(_of_web(config), "")}.items():
        try:
            found = x509.load_pem_x509_certificates(path.read_bytes())
        except (OSError, ValueError, x509.InvalidVersion):
            continue  # a password, or a key, or reported elsewhere
        # of authorities one is enough, of a chain none may have ended
        choose = max if name == "ca_file" else min
        yield judged(str(path), choose(map(_end, found)), now)


def _of_web(config: Config) -> Iterator[Path]:
    file = config.server.web_config_file
    if file is not None:
        try:
            yield from load_web_settings(file).files
        except ConfigError:  # told where it listens
            return


def _of_server(name: str, der: bytes, now: float) -> Result:
    try:
        certificate = x509.load_der_x509_certificate(der)
    except (ValueError, x509.InvalidVersion):
        return _result(name, Verdict.LOOK, "What it shows is not a certificate.")
    return judged(name, _end(certificate), now)


def _end(certificate: x509.Certificate) -> float:
    return certificate.not_valid_after_utc.timestamp()


def judged(name: str, end: float, now: float) -> Result:
    """How long a certificate is still valid; both are Unix times in seconds."""
    days = (end - now) / _DAY
    if days < 0:
        text = f"Its certificate has ended {-days:.0f} days ago."
        return _result(name, Verdict.BROKEN, text, "Renew it.")
    if days < _SOON_DAYS:
        text = f"Its certificate ends in {days:.0f} days."
        return _result(name, Verdict.LOOK, text, "Renew it in time.")
    text = f"Its certificate is valid for {days:.0f} days more."
    return _result(name, Verdict.FINE, text)


def _result(name: str, verdict: Verdict, text: str, advice: str = "") -> Result:
    return Result(
        check="certificates", subject=name, verdict=verdict, text=text, advice=advice
    )
