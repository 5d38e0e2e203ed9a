"""Where and how to push: the configuration, and below it OpenTelemetry's own environment variables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from ..config import (
    OtlpCompression,
    OtlpConfig,
    OtlpProtocol,
    OtlpTlsConfig,
    secret,
)
from .environment import Environment

_DEFAULT_ENDPOINTS = {
    OtlpProtocol.HTTP: "http://localhost:4318",
    OtlpProtocol.GRPC: "http://localhost:4317",
}
_METRICS_PATH = "/v1/metrics"
_PROTOCOLS = frozenset(OtlpProtocol)
_COMPRESSIONS = frozenset(OtlpCompression)


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """Paths of PEM files; None for none."""

    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A receiver, and how it wants to be spoken to."""

    protocol: OtlpProtocol
    endpoint: str = field(repr=False)
    """The complete URL for HTTP; scheme, host and port for gRPC."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    tls: TlsFiles = TlsFiles()
    gzip: bool = True
    timeout_seconds: float = 10.0
    """Longest time for one request, further attempts included."""

    @property
    def place(self) -> str:
        """The endpoint as it may be shown: a query can hold a key."""
        return urlunsplit(urlsplit(self.endpoint)._replace(query="", fragment=""))


def target_of(config: OtlpConfig, environ: Mapping[str, str]) -> Target:
    """Resolve where to push. Raises ``OSError`` or ``ValueError`` for what cannot be used."""
    told = Environment(environ)
    default = OtlpProtocol.HTTP.value
    protocol = config.protocol or OtlpProtocol(
        told.choice("PROTOCOL", _PROTOCOLS, default)
    )
    compression = config.compression or told.choice(
        "COMPRESSION", _COMPRESSIONS, OtlpCompression.GZIP.value
    )
    return Target(
        protocol=protocol,
        endpoint=_endpoint(config, protocol, told),
        headers={**told.headers(), **dict(_headers(config))},
        tls=_tls(config, told),
        gzip=compression == OtlpCompression.GZIP,
        timeout_seconds=config.timeout_seconds or told.timeout_seconds(10.0),
    )


def interval_of(config: OtlpConfig, environ: Mapping[str, str]) -> float:
    """Seconds from one push to the next. Raises ``ValueError``."""
    return config.interval_seconds or Environment(environ).interval_seconds(60.0)


def _endpoint(config: OtlpConfig, protocol: OtlpProtocol, told: Environment) -> str:
    if config.endpoint is not None:
        return _completed(config.endpoint, protocol)
    name, url = told.name("ENDPOINT"), told.text("ENDPOINT")
    if name is None or url is None:
        return _completed(_DEFAULT_ENDPOINTS[protocol], protocol)
    if "://" not in url:
        url = f"{'http' if told.flag('INSECURE') else 'https'}://{url}"
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username:
        raise ValueError(f"{name}: expected a URL such as http://collector:4318")
    if protocol is OtlpProtocol.HTTP and "METRICS" not in name:
        return f"{url.rstrip('/')}{_METRICS_PATH}"
    return _completed(url, protocol)


def _completed(url: str, protocol: OtlpProtocol) -> str:
    parts = urlsplit(url)
    if protocol is OtlpProtocol.GRPC:
        return f"{parts.scheme}://{parts.netloc}"
    path = parts.path if parts.path.strip("/") else _METRICS_PATH
    return urlunsplit(parts._replace(path=path))


def _headers(config: OtlpConfig) -> Iterator[tuple[str, str]]:
    values = {name: secret(value, None) for name, value in config.headers.items()}
    read = {name: secret(None, file) for name, file in config.header_files.items()}
    for name, value in {**values, **read}.items():
        text = value or ""
        if not (text.isprintable() and text.isascii()):
            raise ValueError(
                f"the value of the header {name} holds more than printable ASCII"
            )
        yield name, text


def _tls(config: OtlpConfig, told: Environment) -> TlsFiles:
    ours = config.tls or OtlpTlsConfig()
    return TlsFiles(
        ca_file=_readable(ours.ca_file, told.text("CERTIFICATE")),
        cert_file=_readable(ours.cert_file, told.text("CLIENT_CERTIFICATE")),
        key_file=_readable(ours.key_file, told.text("CLIENT_KEY")),
    )


def _readable(ours: Path | None, told: str | None) -> str | None:
    file = ours or (Path(told) if told else None)
    if file is None:
        return None
    with file.open("rb"):
        return str(file)
