"""
The configuration: every setting, its default, and what it means.

The descriptions and examples of the models are the text of the reference
configuration (`quotascope config example`), see ``reference``.
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import partial
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, FilePath, SecretStr, model_validator

from quotascope.metrics.kafka.entities import QuotaType
from quotascope.quotas.patterns import matcher

from .section import Seconds, SecretFile, Section, check_headers, comma_separated
from .sources import (
    DiscoveryConfig,
    HeaderName,
    KafkaConfig,
    PrometheusConfig,
    PrometheusSourceConfig,
    SourceConfig,
    SourceEntry,
    http_url,
)

DEFAULT_PORT = 9749
"""The port of `quotascope serve`."""


class LogFormat(StrEnum):
    """The format of log lines."""

    AUTO = "auto"
    HUMAN = "human"
    LOGFMT = "logfmt"
    JSON = "json"


class LogLevel(StrEnum):
    """The least severe log lines that are written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def _listen_address(text: str) -> str:
    """Return the address as it is. Raise ValueError if it has no port, or another form."""
    host, colon, port = text.rpartition(":")
    in_brackets = host.startswith("[") and host.endswith("]")
    is_ipv6 = ":" in host
    if not colon or is_ipv6 != in_brackets or not re.fullmatch(r"\d{1,5}", port):
        raise ValueError("expected HOST:PORT, :PORT or [IPV6]:PORT")
    if int(port) > 65_535:  # noqa: PLR2004 - TCP's last port
        raise ValueError("expected a port up to 65535")
    return text


class ServerConfig(Section):
    """The addresses on which quotascope itself listens."""

    address: str = Field(
        default="0.0.0.0",  # noqa: S104 - Prometheus usually runs elsewhere
        description=(
            "Address to listen on. Without web_config_file any client that reaches it is answered: 127.0.0.1 "
            "limits it to this machine."
        ),
    )
    port: int = Field(default=DEFAULT_PORT, ge=0, le=65_535, description="Port; 0 takes a free one.")
    listen_addresses: Annotated[
        tuple[Annotated[str, AfterValidator(_listen_address)], ...],
        BeforeValidator(comma_separated),
    ] = Field(
        default=(),
        description=(
            "Addresses with ports to listen on, instead of address and port, as `--web.listen-address` of "
            "Prometheus's exporters: an empty host is all of IPv4 and IPv6."
        ),
        examples=[(":9749",), ("127.0.0.1:9749", "[::1]:9749")],
    )
    web_config_file: FilePath | None = Field(
        default=None,
        description=(
            "TLS, users and headers in the web config format that all exporters of Prometheus share; read again "
            "when it changes. Documentation: Security."
        ),
        examples=["/etc/quotascope/web.yaml"],
    )
    allowed_hosts: Annotated[tuple[str, ...], BeforeValidator(comma_separated)] = Field(
        default=(),
        description=(
            "Host names that requests may use, such as quotascope.corp, besides localhost and IP addresses. If "
            "empty, all are allowed; on a loopback address, none."
        ),
    )
    max_connections: int = Field(
        default=512,
        ge=1,
        le=100_000,
        description="Most connections at once; a new one replaces the one that has waited longest.",
    )
    max_requests: int = Field(
        default=40,
        ge=1,
        le=100_000,
        description=(
            "Most scrapes answered at once, and most other requests at once; more get 503. One client has at most "
            "a quarter of them: raise it where many come through one proxy."
        ),
    )

    @property
    def endpoints(self) -> tuple[tuple[str, int], ...]:
        """Host and port of each address to listen on; an empty host is all addresses of this machine."""
        if not self.listen_addresses:
            return ((self.address, self.port),)
        parts = (address.rpartition(":") for address in self.listen_addresses)
        return tuple((host.strip("[]"), int(port)) for host, _, port in parts)


class CollectionConfig(Section):
    """The reading of brokers at scrapes."""

    max_age_seconds: float = Field(
        default=1.0,
        ge=0,
        allow_inf_nan=False,
        description=(
            "A scrape is answered with values no older than this; scrapes at the same time share one collection."
        ),
    )
    timeout_seconds: Seconds = Field(
        default=9.0,
        description=(
            "Longest collection when the request has no X-Prometheus-Scrape-Timeout-Seconds, which Prometheus sends."
        ),
    )
    sample_every_seconds: Seconds | None = Field(
        default=None,
        description=(
            "Also reads the brokers between scrapes, this often, and shows the maxima of the last "
            "sample_window_seconds. Without it, only scrapes read the brokers."
        ),
        examples=[5.0],
    )
    sample_window_seconds: Seconds = Field(
        default=60.0,
        description=(
            "How far back these maxima reach, the same for every scraper. With less than Prometheus's scrape "
            "interval, peaks between two scrapes are lost."
        ),
    )
    margin_seconds: float = Field(
        default=0.5,
        ge=0,
        allow_inf_nan=False,
        description=(
            "How much earlier than Prometheus's timeout the answer is sent; sources that have not answered by "
            "then show their last values."
        ),
    )


class Excluded(StrEnum):
    """The treatment of entities that are excluded by name."""

    OVERFLOW = "overflow"
    DROP = "drop"


def _checked(pattern: str) -> str:
    """Return the pattern as it is. Raise ValueError if it is no RE2 expression."""
    matcher(pattern)
    return pattern


Pattern = Annotated[str, AfterValidator(_checked)]
"""An RE2 expression."""
Patterns = Annotated[
    tuple[Pattern, ...],
    # a variable of the environment holds one text; patterns may contain commas and spaces
    BeforeValidator(lambda value: value.splitlines() if isinstance(value, str) else value),
]


class CardinalityConfig(Section):
    """The number of series, and the entities that have some."""

    max_entities: int = Field(
        default=10_000,
        ge=1,
        description=(
            "Most pairs of user and client-id that are shown for each quota type, and most entities of custom "
            "quota callbacks. All others are shown as one entity, `__overflow__`, so that sums stay right."
        ),
    )
    max_name_bytes: int = Field(
        default=2_097_152,
        ge=1_024,
        description=(
            "Most bytes that the names of these may have together, for each quota type: those with the longest "
            "names become overflow first. A name has at most 256 bytes; a longer one is shown as its beginning "
            "with a digest."
        ),
    )
    include_users: Patterns = Field(
        default=(),
        description=(
            "Show only users with a name that matches one of these RE2 expressions as a whole, such as team-.*. "
            "An entity without a user is not affected. Needs the extra `patterns`."
        ),
    )
    exclude_users: Patterns = Field(
        default=(), description="Do not show users with a name that matches, even if include_users matches, too."
    )
    include_client_ids: Patterns = Field(default=(), description="The same for client-ids.")
    exclude_client_ids: Patterns = Field(default=(), description="The same for client-ids.")
    excluded: Excluded = Field(
        default=Excluded.OVERFLOW,
        description=(
            "What to do with entities that are not shown because of their names: overflow adds them to the "
            "overflow entity, drop leaves them out of sums, too."
        ),
    )
    detail_above: float | None = Field(
        default=None,
        ge=0,
        allow_inf_nan=False,
        description=(
            "Show utilization, burst, rule and cause only of entities that were throttled or above this "
            "utilization in the last five minutes. Without it: of all entities."
        ),
        examples=[0.5],
    )
    idle_after_seconds: Seconds | None = Field(
        default=None,
        description=(
            "Leave out entities that had neither usage nor a throttle for this long, until they have some again. "
            "Without it: Kafka drops them after an hour."
        ),
        examples=[900.0],
    )


class OtlpProtocol(StrEnum):
    """The transport of OTLP; the names are those of ``OTEL_EXPORTER_OTLP_PROTOCOL``."""

    HTTP = "http/protobuf"
    GRPC = "grpc"


class OtlpCompression(StrEnum):
    """The compression of requests."""

    GZIP = "gzip"
    NONE = "none"


def _pairs(value: object) -> object:
    """Return the mapping of ``name=value,name=value``, as in an environment variable; a mapping as it is."""
    if not isinstance(value, str):
        return value
    pairs = [pair.partition("=") for pair in value.split(",") if pair.strip()]
    if not all(equals and name.strip() for name, equals, _ in pairs):
        raise ValueError("is not a list name=value,name=value")
    names = [name.strip() for name, _, _ in pairs]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"has {twice[:60]!r} twice")
    return {name.strip(): text.strip() for name, _, text in pairs}


class OtlpTlsConfig(Section):
    """TLS towards the receiver."""

    ca_file: FilePath | None = Field(
        default=None,
        description="PEM file of the authorities to trust. Without it: those of the libraries.",
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
            raise ValueError("give both cert_file and key_file, or neither")
        return self


class OtlpConfig(Section):
    """
    The push to an OpenTelemetry receiver.

    Settings without a value here come from OpenTelemetry's own environment variables.
    """

    endpoint: Annotated[str, AfterValidator(partial(http_url, example="http://collector:4318"))] | None = Field(
        default=None,
        description=(
            "Where the receiver listens; https for TLS. http/protobuf: a URL without a path gets /v1/metrics. "
            "Without it: OTEL_EXPORTER_OTLP_METRICS_ENDPOINT, OTEL_EXPORTER_OTLP_ENDPOINT, or this machine."
        ),
        examples=["http://collector:4318"],
    )
    protocol: OtlpProtocol | None = Field(
        default=None, description="http/protobuf (default) or grpc.", examples=[OtlpProtocol.HTTP]
    )
    headers: Annotated[dict[HeaderName, SecretStr], BeforeValidator(_pairs)] = Field(
        default_factory=dict,
        description="Headers to send (metadata of gRPC), such as a token.",
        examples=[{"Authorization": "Bearer ${OTLP_TOKEN}"}],
    )
    header_files: Annotated[dict[HeaderName, SecretFile], BeforeValidator(_pairs)] = Field(
        default_factory=dict,
        description="Headers with values that are read from files.",
        examples=[{"Authorization": "/run/secrets/otlp-authorization"}],
    )
    tls: OtlpTlsConfig | None = Field(default=None, description="For https URLs.")
    compression: OtlpCompression | None = Field(
        default=None, description="gzip (default) or none.", examples=[OtlpCompression.GZIP]
    )
    interval_seconds: Seconds | None = Field(
        default=None, description="Time from one push to the next.", examples=[60.0]
    )
    timeout_seconds: Seconds | None = Field(
        default=None, description="Longest time for one request, retries included.", examples=[10.0]
    )
    max_request_bytes: int = Field(
        default=3_000_000,
        ge=100_000,
        le=64_000_000,
        description=(
            "Largest request before compression, in bytes; larger pushes are split. By default, a Collector takes "
            "4 MiB over gRPC and 20 MiB over HTTP."
        ),
    )
    resource_attributes: Annotated[dict[str, str], BeforeValidator(_pairs)] = Field(
        default_factory=dict,
        description=(
            "Further attributes of the resource, or other values for service.name, service.instance.id and the like."
        ),
        examples=[{"deployment.environment.name": "production"}],
    )

    @model_validator(mode="after")
    def _headers_are_unique(self) -> OtlpConfig:
        check_headers(self.headers, self.header_files)
        return self


class ShadowConfig(Section):
    """Quotas that are evaluated on what clients use now, and enforced by no broker."""

    file: FilePath | None = Field(
        default=None,
        description=(
            "File of candidates, as for `quotascope whatif`; without `quotas` in it, they start from the "
            "cluster's own quotas. At most ten candidates."
        ),
        examples=["/etc/quotascope/shadow.yaml"],
    )
    max_entities: int = Field(
        default=100,
        ge=1,
        le=10_000,
        description=(
            "Most entities with series of their own for each shadow: those nearest to their limits. The counts "
            "include all entities."
        ),
    )


class LogConfig(Section):
    """Log lines on standard error."""

    format: LogFormat = Field(
        default=LogFormat.AUTO, description="logfmt, json, human, or auto: human on a terminal and logfmt elsewhere."
    )
    level: LogLevel = Field(default=LogLevel.INFO, description="debug, info, warning or error.")


Capacity = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class CapacityConfig(Section):
    """What each broker can do."""

    produce_bytes_per_second: Capacity | None = Field(
        default=None,
        description=(
            "Bytes per second that a broker can take in. Without it: the highest sum that was seen while its request "
            "handlers were idle enough, since the exporter started."
        ),
        examples=[200_000_000],
    )
    fetch_bytes_per_second: Capacity | None = Field(
        default=None, description="The same for bytes that it can send to consumers.", examples=[400_000_000]
    )
    request_threads: Capacity | None = Field(
        default=None,
        description="Threads that serve requests. Without it: num.io.threads + num.network.threads.",
        examples=[11],
    )

    @property
    def by_type(self) -> dict[QuotaType, float]:
        """The capacities that are configured, in the units of metrics."""
        capacities = {
            QuotaType.PRODUCE: self.produce_bytes_per_second,
            QuotaType.FETCH: self.fetch_bytes_per_second,
            QuotaType.REQUEST: self.request_threads,
        }
        return {kind: value for kind, value in capacities.items() if value is not None}


class Config(Section):
    """Everything that can be configured."""

    cluster: str | None = Field(
        default=None,
        min_length=1,
        description=(
            "Adds the label `cluster` with this value to every series. Leave it out when Prometheus sets that "
            "label on the target."
        ),
        examples=["prod-eu"],
    )
    sources: tuple[SourceEntry, ...] = Field(
        default=(),
        description=(
            "All brokers and controllers to read: each node measures its own usage, and the active controller "
            "that of controller mutation quotas. An entry `prometheus` stands for all nodes of a cluster."
        ),
    )
    discovery: DiscoveryConfig = Field(
        default=DiscoveryConfig(),
        description="Finds brokers and controllers, which are read beside those listed under `sources`.",
    )
    kafka: KafkaConfig | None = Field(
        default=None, description="The Admin API. Without it there is usage, but no limit, rule or utilization."
    )
    server: ServerConfig = Field(default=ServerConfig(), description="Where quotascope listens.")
    collection: CollectionConfig = Field(default=CollectionConfig(), description="How scrapes read the brokers.")
    cardinality: CardinalityConfig = Field(
        default=CardinalityConfig(),
        description=(
            "Bounds the number of series. Entities that are not shown are counted in quotascope_entities and "
            "quotascope_series_dropped."
        ),
    )
    shadow: ShadowConfig = Field(
        default=ShadowConfig(),
        description=(
            "Shows what brokers would do under quotas that are not set (documentation: From an idea to a quota)."
        ),
    )
    alerts_config: FilePath | None = Field(
        default=None,
        description=(
            "The configuration of the alerts (`quotascope alerts config`), for its thresholds: page, API and findings "
            "call the same entities near their limit as the alerts do. Read again when it changes. Without it: the "
            "default thresholds."
        ),
        examples=["/etc/quotascope/alerts.yaml"],
    )
    teams: FilePath | None = Field(
        default=None,
        description=(
            "The file of teams (documentation: Teams), the same as in the configuration of the alerts: metrics add "
            "up what the clients of each team use on the cluster, page and API show and filter by team. Read again "
            "when it changes."
        ),
        examples=["/etc/quotascope/teams.yaml"],
    )
    broker_capacity: CapacityConfig = Field(
        default=CapacityConfig(),
        description="What each broker can do, for how much of it limits promise (documentation: Teams).",
    )
    grafana_url: Annotated[str, AfterValidator(partial(http_url, example="https://grafana.corp"))] | None = Field(
        default=None,
        description=(
            "Address of the Grafana that has quotascope's dashboards: the page of an entity links to its dashboard."
        ),
        examples=["https://grafana.corp"],
    )
    otlp: OtlpConfig | None = Field(
        default=None,
        description=(
            "Pushes the same metrics to an OpenTelemetry receiver. The variables OTEL_EXPORTER_OTLP_… alone do "
            "not enable it; `otlp: {}` does, and takes the other settings from them."
        ),
    )
    log: LogConfig = Field(default=LogConfig(), description="Log lines on standard error.")

    @model_validator(mode="after")
    def _consistent(self) -> Config:
        labels = [source.label for source in self.sources]
        for label in labels:
            if labels.count(label) > 1:
                raise ValueError(f"two sources are called {label!r}: give them a name")
        if self.discovery.kafka is not None and self.kafka is None:
            raise ValueError("discovery.kafka (--discover) needs kafka (--bootstrap-servers): it asks that cluster")
        return self

    @property
    def agents(self) -> tuple[SourceConfig, ...]:
        """The sources that are agents of one node each."""
        return tuple(source for source in self.sources if isinstance(source, SourceConfig))

    @property
    def prometheus_servers(self) -> tuple[PrometheusConfig, ...]:
        """The Prometheus servers that nodes are read from."""
        return tuple(source.prometheus for source in self.sources if isinstance(source, PrometheusSourceConfig))

    @property
    def finds_nodes(self) -> bool:
        """Whether nodes are found while the exporter runs, by a discovery or in a Prometheus server."""
        return self.discovery.wanted or bool(self.prometheus_servers)
