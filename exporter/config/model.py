"""
The configuration: every setting, its default, and what it means.

The descriptions and examples of the models are the text of the reference
configuration (`quotascope config example`), see ``reference``.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import BeforeValidator, Field, FilePath, model_validator

from .cardinality import CardinalityConfig
from .discovery import DiscoveryConfig
from .kafka import KafkaConfig
from .otlp import OtlpConfig
from .section import Seconds, Section, comma_separated
from .source import SourceConfig

DEFAULT_PORT = 9749
"""The port of `quotascope serve`."""


class LogFormat(StrEnum):
    """How log lines look."""

    AUTO = "auto"
    HUMAN = "human"
    LOGFMT = "logfmt"
    JSON = "json"


class LogLevel(StrEnum):
    """The least severe lines that are written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class ServerConfig(Section):
    """Where quotascope itself listens."""

    address: str = Field(
        default="0.0.0.0",  # noqa: S104 - Prometheus usually runs elsewhere
        description="Address to listen on. Without web_config_file everybody who reaches it may ask: 127.0.0.1 keeps it to this machine.",
    )
    port: int = Field(
        default=DEFAULT_PORT, ge=0, le=65_535, description="Port; 0 takes a free one."
    )
    web_config_file: FilePath | None = Field(
        default=None,
        description="TLS, users and headers in the web config format that all exporters of Prometheus share; read again when it changes. docs/security.md says what is taken.",
        examples=["/etc/quotascope/web.yaml"],
    )
    allowed_hosts: Annotated[tuple[str, ...], BeforeValidator(comma_separated)] = Field(
        default=(),
        description="Names that URLs may call it by, such as quotascope.corp, besides localhost and IP addresses. Without one: any; on a loopback address, none.",
    )
    max_connections: int = Field(
        default=512,
        ge=1,
        le=100_000,
        description="Most connections at once; a new one takes the place of that which waited longest.",
    )
    max_requests: int = Field(
        default=40,
        ge=1,
        le=100_000,
        description="Most scrapes answered at once, and as many requests for pages; more get 503.",
    )


class CollectionConfig(Section):
    """How a scrape becomes reads of the brokers."""

    max_age_seconds: float = Field(
        default=1.0,
        ge=0,
        allow_inf_nan=False,
        description="A scrape is answered with numbers no older than this; scrapes at the same time share one collection.",
    )
    timeout_seconds: Seconds = Field(
        default=9.0,
        description="Longest collection when the caller does not tell its timeout. Prometheus does, in X-Prometheus-Scrape-Timeout-Seconds.",
    )
    sample_every_seconds: Seconds | None = Field(
        default=None,
        description="Reads the brokers this often between scrapes as well, and shows maxima, which reach back by sample_window_seconds. Without it only scrapes read.",
        examples=[5.0],
    )
    sample_window_seconds: Seconds = Field(
        default=60.0,
        description="How far back these maxima reach, the same for every scraper; Prometheus's scrape interval at least, or peaks between two scrapes are lost.",
    )
    margin_seconds: float = Field(
        default=0.5,
        ge=0,
        allow_inf_nan=False,
        description="How much earlier than Prometheus's timeout the answer is sent; sources that have not answered by then show their last numbers.",
    )


class LogConfig(Section):
    """Log lines on standard error."""

    format: LogFormat = Field(
        default=LogFormat.AUTO,
        description="logfmt, json, human, or auto: human on a terminal and logfmt elsewhere.",
    )
    level: LogLevel = Field(
        default=LogLevel.INFO, description="debug, info, warning or error."
    )


class Config(Section):
    """Everything that can be configured."""

    cluster: str | None = Field(
        default=None,
        min_length=1,
        description="Adds the label `cluster` with this value to every series. Leave it out when Prometheus sets that label on the target.",
        examples=["prod-eu"],
    )
    sources: tuple[SourceConfig, ...] = Field(
        default=(),
        description="The brokers and controllers to read, all of them: usage is per node, and mutation quotas are kept by the active controller.",
    )
    discovery: DiscoveryConfig = Field(
        default=DiscoveryConfig(),
        description="Brokers and controllers that are found, to be read beside those that are listed under `sources`.",
    )
    kafka: KafkaConfig | None = Field(
        default=None,
        description="The Admin API. Without it there is usage, but no limit, rule or utilisation.",
    )
    server: ServerConfig = Field(
        default=ServerConfig(), description="Where quotascope listens."
    )
    collection: CollectionConfig = Field(
        default=CollectionConfig(),
        description="How a scrape becomes reads of the brokers.",
    )
    cardinality: CardinalityConfig = Field(
        default=CardinalityConfig(),
        description="How many series there may be, and whose. Whatever is not shown is counted in quotascope_entities and quotascope_series_dropped.",
    )
    otlp: OtlpConfig | None = Field(
        default=None,
        description="Pushes the same metrics to an OpenTelemetry receiver. The variables OTEL_EXPORTER_OTLP_… alone do not switch it on; `otlp: {}` does, and leaves the rest to them.",
    )
    log: LogConfig = Field(
        default=LogConfig(), description="Log lines on standard error."
    )

    @model_validator(mode="after")
    def _consistent(self) -> Config:
        labels = [source.label for source in self.sources]
        for label in labels:
            if labels.count(label) > 1:
                raise ValueError(f"two sources are called {label!r}: give them a name")
        if self.discovery.kafka is not None and self.kafka is None:
            raise ValueError("discovery.kafka needs kafka: it asks that cluster")
        return self
