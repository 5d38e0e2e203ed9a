"""How a job is reported, from Spark's properties."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit, urlunsplit

from ..errors import InvalidProperty
from . import keys

_PROTOCOLS = ("http/protobuf", "grpc")
_MOST_PORTS = 65_535
_HERE = "localhost"
"""For a client of Spark Connect: nobody else is let in unless a setting says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSettings:
    """Where the driver's page is."""

    bind_address: str
    host: str
    """What others call it."""
    port: int
    file_sd_path: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PushSettings:
    """Where to push; None leaves it to OpenTelemetry's environment variables."""

    protocol: str
    endpoint: str | None = field(repr=False)
    headers: Mapping[str, str] | None = field(repr=False)
    interval_seconds: float

    @property
    def place(self) -> str:
        """The endpoint as it may be shown: a query can hold a key."""
        if self.endpoint is None:
            return "the endpoint of OTEL_EXPORTER_OTLP_ENDPOINT"
        return urlunsplit(urlsplit(self.endpoint)._replace(query="", fragment=""))


def cluster_of(properties: Mapping[str, str]) -> str | None:
    """The Kafka cluster that the series are labelled with."""
    return properties.get(keys.CLUSTER) or None


def page_settings(properties: Mapping[str, str]) -> PageSettings | None:
    """Where the page is, None for none. Raises `InvalidProperty`."""
    if not _flag(properties, keys.HTTP_ENABLED, default=True):
        return None
    host = properties.get("spark.driver.host", "")
    bind_address = properties.get("spark.driver.bindAddress") or host
    path = properties.get(keys.FILE_SD_PATH) or None
    if path is not None and not path.endswith(".json"):
        raise InvalidProperty(
            keys.FILE_SD_PATH,
            "the name must end in .json, or Prometheus does not read the file",
        )
    return PageSettings(
        bind_address=properties.get(keys.HTTP_BIND_ADDRESS) or bind_address or _HERE,
        host=properties.get(keys.HTTP_HOST) or host or _HERE,
        port=_port(properties),
        file_sd_path=path,
    )


def push_settings(
    properties: Mapping[str, str], environ: Mapping[str, str]
) -> PushSettings | None:
    """Where to push, None for nowhere. Raises `InvalidProperty`."""
    endpoint = properties.get(keys.OTLP_ENDPOINT) or None
    if not _flag(properties, keys.OTLP_ENABLED, default=endpoint is not None):
        return None
    protocol = (
        properties.get(keys.OTLP_PROTOCOL)
        or environ.get("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL")
        or environ.get("OTEL_EXPORTER_OTLP_PROTOCOL")
        or _PROTOCOLS[0]
    )
    if protocol not in _PROTOCOLS:
        raise InvalidProperty(
            keys.OTLP_PROTOCOL,
            f"expected {' or '.join(_PROTOCOLS)}, got {protocol!r}",
        )
    return PushSettings(
        protocol=protocol,
        endpoint=None if endpoint is None else _url(endpoint, protocol),
        headers=_headers(properties),
        interval_seconds=_interval(properties, environ),
    )


def _flag(properties: Mapping[str, str], key: str, *, default: bool) -> bool:
    text = properties.get(key, "").strip().lower()
    if text not in {"", "true", "false"}:
        raise InvalidProperty(key, f"expected true or false, got {text!r}")
    return default if not text else text == "true"


def _port(properties: Mapping[str, str]) -> int:
    text = properties.get(keys.HTTP_PORT, "").strip() or "0"
    if not (text.isascii() and text.isdecimal() and int(text) <= _MOST_PORTS):
        raise InvalidProperty(keys.HTTP_PORT, f"expected a port, got {text!r}")
    return int(text)


def _url(text: str, protocol: str) -> str:
    try:
        parts = urlsplit(text)
        good = parts.scheme in {"http", "https"} and parts.hostname
        _ = parts.port  # raises for one that is none
    except ValueError:
        good = False
    if not good or parts.username is not None:
        raise InvalidProperty(
            keys.OTLP_ENDPOINT,
            "expected a URL such as http://collector:4318, without a user",
        )
    if protocol == "grpc":
        return f"{parts.scheme}://{parts.netloc}"
    return urlunsplit(
        parts._replace(path=parts.path if parts.path.strip("/") else "/v1/metrics")
    )


def _headers(properties: Mapping[str, str]) -> Mapping[str, str] | None:
    text = properties.get(keys.OTLP_SECRET_HEADERS)
    if not text:
        return None
    pairs = [pair.partition("=") for pair in text.split(",") if pair.strip()]
    found = {name.strip().lower(): unquote(value.strip()) for name, _, value in pairs}
    plain = all(
        equals and name.strip().isascii() and name.strip() for name, equals, _ in pairs
    )
    if not plain or not all(
        value.isascii() and value.isprintable() for value in found.values()
    ):
        raise InvalidProperty(
            keys.OTLP_SECRET_HEADERS,
            "expected name=value,name=value in printable ASCII",
        )
    return found


def _interval(properties: Mapping[str, str], environ: Mapping[str, str]) -> float:
    text = properties.get(keys.OTLP_INTERVAL_SECONDS)
    name, unit = keys.OTLP_INTERVAL_SECONDS, 1.0
    if not text:
        name, unit = "OTEL_METRIC_EXPORT_INTERVAL", 1_000.0
        text = environ.get(name) or "60000"
    try:
        seconds = float(text) / unit
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise InvalidProperty(name, f"expected a time above 0, got {text!r}")
    return seconds
