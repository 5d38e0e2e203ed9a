"""The configuration of the push to an OpenTelemetry receiver."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import BeforeValidator, Field, FilePath, SecretStr, model_validator

from .section import Seconds, Section
from .source import HeaderName, HttpUrl


class OtlpProtocol(StrEnum):
    """How OTLP is carried; the names are those of ``OTEL_EXPORTER_OTLP_PROTOCOL``."""

    HTTP = "http/protobuf"
    GRPC = "grpc"


class OtlpCompression(StrEnum):
    """How requests are compressed."""

    GZIP = "gzip"
    NONE = "none"


def _pairs(value: object) -> object:
    """``name=value,name=value``, as in an environment variable, beside a mapping."""
    if not isinstance(value, str):
        return value
    pairs = (pair.partition("=") for pair in value.split(",") if pair.strip())
    return {name.strip(): text.strip() for name, _, text in pairs}


class OtlpTlsConfig(Section):
    """TLS towards the receiver."""

    ca_file: FilePath | None = Field(
        default=None,
        description="PEM file of the authorities to trust. Without it: those that come with the libraries.",
        examples=["/etc/quotascope/ca.pem"],
    )
    cert_file: FilePath | None = Field(
        default=None,
        description="PEM file with the certificate (and chain) that quotascope presents.",
        examples=["/etc/quotascope/client.pem"],
    )
    key_file: FilePath | None = Field(
        default=None,
        description="PEM file with its private key, without a password.",
        examples=["/etc/quotascope/client.key"],
    )

    @model_validator(mode="after")
    def _consistent(self) -> OtlpTlsConfig:
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("cert_file and key_file need each other")
        return self


class OtlpConfig(Section):
    """
    The push to an OpenTelemetry receiver.

    What has no value here is taken from OpenTelemetry's own environment variables.
    """

    endpoint: HttpUrl | None = Field(
        default=None,
        description="Where the receiver listens; https for TLS. http/protobuf: a URL without a path gets /v1/metrics. Without it: OTEL_EXPORTER_OTLP_METRICS_ENDPOINT, OTEL_EXPORTER_OTLP_ENDPOINT, or this machine.",
        examples=["http://collector:4318"],
    )
    protocol: OtlpProtocol | None = Field(
        default=None,
        description="http/protobuf (default) or grpc.",
        examples=[OtlpProtocol.HTTP],
    )
    headers: Annotated[dict[HeaderName, SecretStr], BeforeValidator(_pairs)] = Field(
        default_factory=dict,
        description="Headers to send (metadata of gRPC), such as a token.",
        examples=[{"Authorization": "Bearer ${OTLP_TOKEN}"}],
    )
    header_files: Annotated[dict[HeaderName, FilePath], BeforeValidator(_pairs)] = (
        Field(
            default_factory=dict,
            description="Headers whose values are read from files.",
            examples=[{"Authorization": "/run/secrets/otlp-authorization"}],
        )
    )
    tls: OtlpTlsConfig | None = Field(default=None, description="For https URLs.")
    compression: OtlpCompression | None = Field(
        default=None,
        description="gzip (default) or none.",
        examples=[OtlpCompression.GZIP],
    )
    interval_seconds: Seconds | None = Field(
        default=None, description="Time from one push to the next.", examples=[60.0]
    )
    timeout_seconds: Seconds | None = Field(
        default=None,
        description="Longest time for one request, further attempts included.",
        examples=[10.0],
    )
    max_request_bytes: int = Field(
        default=3_000_000,
        ge=100_000,
        le=64_000_000,
        description="Longest request before compression; more is sent in several. A Collector takes 4 MiB over gRPC unless told otherwise, 20 MiB over HTTP.",
    )
    resource_attributes: Annotated[dict[str, str], BeforeValidator(_pairs)] = Field(
        default_factory=dict,
        description="Further attributes of the resource, or other values for service.name, service.instance.id and the like.",
        examples=[{"deployment.environment.name": "production"}],
    )
