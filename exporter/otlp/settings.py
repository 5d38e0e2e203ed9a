"""
Builds a push from the configuration and OpenTelemetry's own environment variables.

Needs the extra ``otlp`` only in ``build_push``.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

from quotascope.clients.reading import content_of

from ..config import Config, OtlpCompression, OtlpConfig, OtlpProtocol, OtlpTlsConfig, header_values, usable
from ..config.section import MOST_BYTES
from ..errors import ConfigError
from .push import OtlpPush, OtlpReceiver, Starts

_DEFAULT_ENDPOINTS = {OtlpProtocol.HTTP: "http://localhost:4318", OtlpProtocol.GRPC: "http://localhost:4317"}
_METRICS_PATH = "/v1/metrics"
_PREFIXES = ("OTEL_EXPORTER_OTLP_METRICS_", "OTEL_EXPORTER_OTLP_")
_PACKAGES = {"opentelemetry", "google", "grpc", "requests"}


def build_push(config: Config, environ: Mapping[str, str], starts: Starts | None = None) -> OtlpPush | None:
    """
    Return the configured push, not started yet; None when there is none. Raises ``ConfigError``.

    ``starts`` are those of an earlier push, to continue its counters.
    """
    settings = config.otlp
    if settings is None:
        return None
    with usable("otlp"):
        receiver = receiver_of(settings, environ)
        interval = interval_of(settings, environ)
    try:
        from .encoding import Encoder, resource_of  # noqa: PLC0415 - an extra
        from .sender import Sender  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _PACKAGES:
            raise
        missing = "needs OpenTelemetry's packages; in a clone of quotascope: pip install '.[otlp]'"
        raise ConfigError("otlp", [missing]) from None
    known_starts = Starts(time.time_ns()) if starts is None else starts

    def open_sender(url: str) -> Sender:
        resource = resource_of(url, config.cluster, settings.resource_attributes)
        max_bytes = settings.max_request_bytes
        return Sender(receiver, Encoder(resource, config.cluster, max_bytes, known_starts))

    return OtlpPush(open_sender, receiver.place, interval, starts=known_starts)


def receiver_of(config: OtlpConfig, environ: Mapping[str, str]) -> OtlpReceiver:
    """Return the receiver to push to. Raises ``OSError`` or ``ValueError`` for what cannot be used."""
    variables = _Environment(environ)
    protocol = config.protocol or OtlpProtocol(variables.choice("PROTOCOL", OtlpProtocol, OtlpProtocol.HTTP))
    compression = config.compression or variables.choice("COMPRESSION", OtlpCompression, OtlpCompression.GZIP)
    headers = header_values(config.headers, config.header_files)
    for name, value in headers.items():
        if not value.isascii():
            raise ValueError(f"the value of the header {name} holds more than ASCII")
    own_headers = {name.lower() for name in headers}
    # case does not tell headers apart, and configured ones take precedence
    from_variables = {name: value for name, value in variables.headers().items() if name.lower() not in own_headers}
    tls = config.tls or OtlpTlsConfig()
    return OtlpReceiver(
        protocol=protocol,
        endpoint=_endpoint(config, protocol, variables),
        headers=from_variables | headers,
        ca_file=_readable(tls.ca_file, variables.text("CERTIFICATE")),
        cert_file=_readable(tls.cert_file, variables.text("CLIENT_CERTIFICATE")),
        key_file=_readable(tls.key_file, variables.text("CLIENT_KEY")),
        gzip=compression == OtlpCompression.GZIP,
        timeout_seconds=config.timeout_seconds or variables.seconds(variables.name("TIMEOUT"), 10.0),
    )


def interval_of(config: OtlpConfig, environ: Mapping[str, str]) -> float:
    """Return the seconds from one push to the next. Raises ``ValueError``."""
    variable = "OTEL_METRIC_EXPORT_INTERVAL"
    return config.interval_seconds or _Environment(environ).seconds(variable, 60.0)


def _endpoint(config: OtlpConfig, protocol: OtlpProtocol, variables: _Environment) -> str:
    """Return the endpoint of the configuration, or else of a variable, or else the default of the protocol."""
    name, url = variables.name("ENDPOINT"), variables.text("ENDPOINT")
    if config.endpoint is not None or name is None or url is None:
        return _completed(config.endpoint or _DEFAULT_ENDPOINTS[protocol], protocol)
    if "://" not in url:
        insecure = (variables.text("INSECURE") or "").lower() == "true"
        url = f"{'http' if insecure else 'https'}://{url}"
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username:
        raise ValueError(f"{name}: expected a URL such as http://collector:4318")
    # the variable for all signals always gets the path, that for metrics holds it
    if protocol is OtlpProtocol.HTTP and "METRICS" not in name:
        return f"{url.rstrip('/')}{_METRICS_PATH}"
    return _completed(url, protocol)


def _completed(url: str, protocol: OtlpProtocol) -> str:
    """Return the endpoint of a URL: with the default path for HTTP if it has none, and without path for gRPC."""
    parts = urlsplit(url)
    if protocol is OtlpProtocol.GRPC:
        return f"{parts.scheme}://{parts.netloc}"
    path = parts.path if parts.path.strip("/") else _METRICS_PATH
    return urlunsplit(parts._replace(path=path))


def _readable(configured: Path | None, fallback: str | None) -> str | None:
    """Return the path of a file that can be read; None if there is none. Raises ``OSError`` if it cannot be read."""
    file = configured or (Path(fallback) if fallback else None)
    if file is None:
        return None
    content_of(file, MOST_BYTES)
    return str(file)


class _Environment:
    """
    OpenTelemetry's own environment variables, for what the configuration leaves open.

    Their meaning is that of the specification: times are in milliseconds, and a variable with ``METRICS`` in its name
    takes precedence over the one without. An invalid value raises ``ValueError``, which names the variable.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    def name(self, option: str) -> str | None:
        """Return the name of the variable for an option such as ``ENDPOINT``; an empty variable counts as unset."""
        names = (prefix + option for prefix in _PREFIXES)
        return next((name for name in names if self._environ.get(name)), None)

    def text(self, option: str) -> str | None:
        """Return the value of an option."""
        name = self.name(option)
        return None if name is None else self._environ[name]

    def choice(self, option: str, choices: Iterable[str], default: str) -> str:
        """Return the value of an option that allows only a few values."""
        text = self.text(option) or default
        if text not in (allowed := sorted(choices)):
            message = f"expected {' or '.join(allowed)}, got {text!r}"
            raise ValueError(f"{self.name(option)}: {message}")
        return text

    def seconds(self, name: str | None, default: float) -> float:
        """Return the time that a variable holds in milliseconds."""
        text = self._environ.get(name or "")
        if not text:
            return default
        if not text.isdecimal() or int(text) == 0:
            raise ValueError(f"{name}: expected whole milliseconds, got {text!r}")
        return int(text) / 1000

    def headers(self) -> dict[str, str]:
        """Return the headers of ``name=value,name=value`` with values as in URLs."""
        pairs = [pair.partition("=") for pair in (self.text("HEADERS") or "").split(",") if pair.strip()]
        if not all(equals and name.strip() for name, equals, _ in pairs):
            raise ValueError(f"{self.name('HEADERS')}: expected name=value,name=value")
        return {name.strip(): unquote(value.strip()) for name, _, value in pairs}
