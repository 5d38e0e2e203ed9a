"""The configuration of what is read: sources, the Admin API, and discovery, which finds sources."""

from __future__ import annotations

import re
import shlex
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, FilePath, SecretStr, WrapValidator, model_validator
from pydantic_core import PydanticCustomError

from quotascope.clients.security import SaslMechanism, SecurityProtocol
from quotascope.metrics import connection_settings as settings

from ..address import http_parts
from .section import (
    Seconds,
    SecretFile,
    Section,
    TlsConfig,
    check_headers,
    comma_separated,
    described,
    exactly_one,
    header_values,
    matching,
    secret,
)


class Dialect(StrEnum):
    """A format of answers that leaves the naming of quotas to detection."""

    AUTO = "auto"
    """Jolokia or Prometheus text, detected from the answer."""
    JOLOKIA = "jolokia"
    PROMETHEUS = "prometheus"
    """Prometheus text; its dialect is detected from each answer."""
    JMX_EXPORTER = "jmx_exporter"
    """The same, as older configurations call it."""


def _dialect(name: str) -> str:
    """Return the name of a format or of a dialect of Prometheus text. Raises pydantic's error for another name."""
    from ..sources.dialects import BY_NAME  # noqa: PLC0415 - few configurations name one, and its import takes long

    if name not in set(Dialect) and name not in BY_NAME:
        *others, last = map(repr, (*map(str, Dialect), *BY_NAME))
        expected = f"{', '.join(others)} or {last}"
        raise PydanticCustomError("enum", "Input should be {expected}", {"expected": expected})
    return name


DialectName = Annotated[str, AfterValidator(_dialect)]
"""A `Dialect`, or the name of a `TextDialect`."""


def http_url(url: str, example: str = "http://broker-1:8778/jolokia") -> str:
    """Return the URL as it is. Raise ValueError if no server can have it, or if it holds a user or password."""
    parts = http_parts(url)
    if parts is None:
        raise ValueError(f"is not a URL such as {example}")
    if parts.username is not None or parts.password is not None:
        raise ValueError("must not contain a user or password; those of a source belong in basic_auth or headers")
    return url


HttpUrl = Annotated[str, AfterValidator(http_url)]
HeaderName = Annotated[
    str,
    matching(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", problem="is not the name of an HTTP header"),
]
UserName = Annotated[str, matching("[^:]*", problem="must not contain a colon: HTTP ends the name there")]


class BasicAuthConfig(Section):
    """HTTP basic authentication towards an agent."""

    username: UserName = Field(description="User name.", examples=["monitor"])
    password: SecretStr | None = Field(
        default=None, description="Password; either this or password_file.", examples=["${AGENT_PASSWORD}"]
    )
    password_file: SecretFile | None = Field(
        default=None, description="The same, read from a file.", examples=["/run/secrets/agent-password"]
    )

    @model_validator(mode="after")
    def _consistent(self) -> BasicAuthConfig:
        exactly_one(self, "password", "password_file")
        return self


class DialectConfig(Section):
    """The format in which an agent answers."""

    dialect: DialectName = Field(
        default=Dialect.AUTO,
        description=(
            "auto: detected from the answer. jolokia: a Jolokia agent. prometheus (or jmx_exporter): any agent "
            "that answers with Prometheus text; its naming is detected. To force a naming: a column of the table in "
            "the documentation (Supported agents), such as jmx_default for an agent without rules, as on MSK."
        ),
        examples=["auto"],
    )


class AddressConfig(DialectConfig):
    """The node, and the address of its agent."""

    url: HttpUrl = Field(
        description="URL of the agent, for example http://broker-1:8778/jolokia or http://broker-1:9404/metrics.",
        examples=["http://broker-1:8778/jolokia"],
    )
    name: str | None = Field(
        default=None,
        min_length=1,
        description="Value of the label `source`. Default: host and port of the URL.",
        examples=["broker-1"],
    )
    node_id: int | None = Field(
        default=None,
        ge=0,
        description=(
            "Kafka's node.id, the value of the label `broker`. Default: the id that the node reports, which needs "
            "its app-info beans."
        ),
        examples=[1],
    )


class AccessConfig(Section):
    """Access to an agent: credentials, TLS and bounds."""

    timeout_seconds: Seconds = Field(
        default=60.0,
        description=(
            "Longest time of one read, all its requests included. No scrape waits that long: a read that takes "
            "longer than half a scrape's time continues in the background, and the last values are shown with "
            "their age."
        ),
    )
    max_answer_bytes: int = Field(
        default=64 << 20,
        ge=1024,
        description=(
            "Longest answer that is read, in bytes after decompression. Its content is limited, too: see "
            "the documentation (Hostile and broken input)."
        ),
    )
    tls: TlsConfig | None = Field(default=None, description="For https URLs.")
    basic_auth: BasicAuthConfig | None = Field(default=None, description="HTTP basic authentication.")
    headers: dict[HeaderName, SecretStr] = Field(
        default_factory=dict,
        description="HTTP headers to send, such as a token that a proxy requires.",
        examples=[{"Authorization": "Bearer ${AGENT_TOKEN}"}],
    )
    header_files: dict[HeaderName, SecretFile] = Field(
        default_factory=dict,
        description="HTTP headers with values that are read from files.",
        examples=[{"Authorization": "/run/secrets/agent-authorization"}],
    )

    @model_validator(mode="after")
    def _headers_are_unique(self) -> Self:
        check_headers(self.headers, self.header_files, has_login=self.basic_auth is not None)
        return self

    def with_secrets(self) -> Self:
        """
        Return the same with passwords and headers in place of their files, for another machine.

        Raises as ``secret`` and ``header_values``.
        """
        auth = self.basic_auth
        if auth is not None:
            password = SecretStr(secret(auth.password, auth.password_file) or "")
            auth = auth.model_copy(update={"password": password, "password_file": None})
        headers = header_values(self.headers, self.header_files)
        secret_headers = {name: SecretStr(value) for name, value in headers.items()}
        return self.model_copy(update={"basic_auth": auth, "headers": secret_headers, "header_files": {}})


class SourceConfig(AccessConfig, AddressConfig):  # in this order, fields of the address come first
    """One broker or controller to read."""

    @property
    def label(self) -> str:
        """The label ``source``: the name, or else host and port; free of secrets."""
        return self.name or urlsplit(self.url).netloc


_MATCHER: Final = r'\s*[a-zA-Z_][a-zA-Z0-9_]*\s*(?:=~|!~|!=|=)\s*"(?:[^"\\\n]|\\.)*"\s*'
_SELECTOR: Final = re.compile(rf"{_MATCHER}(?:,{_MATCHER})*,?\s*")


def _selector(text: str) -> str:
    """Return the matchers of a selector of series, without braces."""
    stripped = text.strip()
    inner = stripped[1:-1] if stripped.startswith("{") and stripped.endswith("}") else stripped
    if inner.strip() and not _SELECTOR.fullmatch(inner):
        raise ValueError("""is not a list of matchers such as {job="kafka", cluster="prod-eu"}""")
    return inner.strip().rstrip(",").rstrip()


def _server_url(url: str) -> str:
    """Return the URL as it is. Raise ValueError if it is none, or that of a page and not of a Prometheus server."""
    http_url(url, "http://prometheus:9090")
    if urlsplit(url).path.rstrip("/").endswith(("/metrics", "/federate", "/jolokia", "/api/v1/query")):
        raise ValueError(
            "is not the address of a Prometheus server, such as http://prometheus:9090: the page of an agent is a "
            "source of its own, `url` (on the command line auto= or jmx_exporter=)"
        )
    return url


class PrometheusAddressConfig(DialectConfig):
    """The address of a Prometheus server, and which of its series are of the cluster."""

    url: Annotated[str, AfterValidator(_server_url)] = Field(
        description="Address below which /api/v1/query answers: of Prometheus, Thanos Query, or Mimir (…/prometheus).",
        examples=["http://prometheus:9090"],
    )
    name: str | None = Field(
        default=None,
        min_length=1,
        description="Beginning of the label `source`. Default: host and port of the URL.",
        examples=["prometheus"],
    )
    selector: Annotated[str, AfterValidator(_selector)] = Field(
        default="",
        description=(
            "Matchers of the series of one cluster. Needed where the server has several: their labels are then named "
            "in an error."
        ),
        examples=['{job="kafka", cluster="prod-eu"}'],
    )
    nodes: dict[str, Annotated[int, Field(ge=0)]] = Field(
        default_factory=dict,
        description=(
            "Kafka's node.id by the label `instance`, for agents that do not report it. Without it: the label "
            "node_id of the target, or the broker of that host as the Admin API reports it."
        ),
        examples=[{"broker-1:9404": 1}],
    )
    instance_label: str = Field(
        default="instance", min_length=1, description="The label that tells the nodes of one cluster apart."
    )
    replica_labels: Annotated[tuple[str, ...], BeforeValidator(comma_separated)] = Field(
        default=("prometheus_replica", "replica", "__replica__"),
        description="Labels that tell two Prometheus servers apart that scrape the same agents: the newest is read.",
    )


class PrometheusConfig(AccessConfig, PrometheusAddressConfig):  # in this order, fields of the address come first
    """A Prometheus server that has the series of the brokers' agents."""

    @property
    def label(self) -> str:
        """The name, or else host and port; free of secrets."""
        return self.name or urlsplit(self.url).netloc


class PrometheusSourceConfig(Section):
    """All nodes of a cluster, as a Prometheus server has them."""

    prometheus: PrometheusConfig = Field(
        description=(
            "Reads all nodes from the Prometheus server that scrapes their agents (documentation: From the Prometheus "
            "that you have)."
        )
    )

    @property
    def label(self) -> str:
        """The name of the server."""
        return self.prometheus.label


def _entry(value: object, _handler: object) -> SourceConfig | PrometheusSourceConfig:
    """Return an entry of `sources`: a Prometheus server if it has the key `prometheus`, else one node."""
    if isinstance(value, SourceConfig | PrometheusSourceConfig):
        return value
    if isinstance(value, dict) and "prometheus" in value:
        return PrometheusSourceConfig.model_validate(value)
    return SourceConfig.model_validate(value)


SourceEntry = Annotated[SourceConfig | PrometheusSourceConfig, WrapValidator(_entry)]


def _not_empty(servers: tuple[str, ...]) -> tuple[str, ...]:
    """Return the servers. Raise ValueError if there is none."""
    if not servers:
        raise ValueError("names no broker")
    return servers


def _host_and_port(server: str) -> str:
    """Return the address of a broker as it is. Raise ValueError if it is not HOST:PORT."""
    if "@" in server:
        raise ValueError("must not contain a user or password; those of Kafka belong in sasl")
    host, colon, port = server.rpartition(":")
    if not (host and colon and port.isdecimal() and 0 < int(port) < 65536):  # noqa: PLR2004 - TCP's
        raise ValueError("expected HOST:PORT, such as broker-1:9092")
    return server


Server = Annotated[str, AfterValidator(_host_and_port)]


_TOKEN_URL_KEYS: Final = ("client_id", "client_secret", "client_secret_file", "scope", "token_ca_file")


def _token_url(url: str) -> str:
    """Return the URL as it is. Raise ValueError, which does not quote it, if it is none or holds a login."""
    try:
        return http_url(url)
    except ValueError:
        raise ValueError(
            "is not a URL such as https://sso.corp/token; the login belongs in client_id and client_secret"
        ) from None


def _named(command: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
    """Return the command and its arguments as they are. Raise ValueError if the command is empty."""
    if not command or not command[0].get_secret_value():
        raise ValueError("names no command")
    return command


class SaslConfig(Section):
    """SASL towards Kafka."""

    mechanism: SaslMechanism = described(settings.MECHANISM, default=SaslMechanism.PLAIN)
    username: str | None = described(settings.USERNAME, min_length=1)
    password: SecretStr | None = described(settings.PASSWORD)
    password_file: SecretFile | None = described(settings.PASSWORD_FILE)
    token_url: Annotated[str, AfterValidator(_token_url)] | None = described(settings.TOKEN_URL)
    client_id: str | None = described(settings.CLIENT_ID, min_length=1)
    client_secret: SecretStr | None = described(settings.CLIENT_SECRET)
    client_secret_file: SecretFile | None = described(settings.CLIENT_SECRET_FILE)
    scope: str | None = described(settings.SCOPE)
    token_ca_file: FilePath | None = described(settings.TOKEN_CA_FILE)
    token_file: Path | None = described(settings.TOKEN_FILE)
    token_command: (
        Annotated[
            tuple[SecretStr, ...],
            BeforeValidator(lambda value: tuple(shlex.split(value)) if isinstance(value, str) else value),
            AfterValidator(_named),
        ]
        | None
    ) = described(settings.TOKEN_COMMAND)
    region: str | None = described(settings.REGION, min_length=1)
    keytab: FilePath | None = described(settings.KEYTAB)
    service_name: str | None = described(settings.SERVICE_NAME, min_length=1)

    @model_validator(mode="after")
    def _consistent(self) -> SaslConfig:
        for setting in settings.SETTINGS:
            key, mechanisms = setting.key, setting.mechanisms
            if not mechanisms or getattr(self, key) is None:
                continue
            if self.mechanism.value not in mechanisms:
                only = " and ".join(mechanisms)
                raise ValueError(f"{key} has no effect with {self.mechanism.value}, only with {only}")
            if key in _TOKEN_URL_KEYS and self.token_url is None:
                raise ValueError(f"{key} needs token_url")
        if self.mechanism is SaslMechanism.OAUTHBEARER:
            exactly_one(self, "token_url", "token_file", "token_command")
            if self.token_url is not None:
                exactly_one(self, "client_id")
                exactly_one(self, "client_secret", "client_secret_file")
        elif self.mechanism.value in settings.USERNAME.mechanisms:
            exactly_one(self, "username")
            exactly_one(self, "password", "password_file")
        return self


class KafkaConfig(Section):
    """The Admin API, which has the configured quotas."""

    bootstrap_servers: Annotated[
        tuple[Server, ...],
        BeforeValidator(comma_separated),
        AfterValidator(_not_empty),
    ] = described(settings.BOOTSTRAP_SERVERS, default=...)
    security_protocol: SecurityProtocol = described(settings.SECURITY_PROTOCOL, default=SecurityProtocol.PLAINTEXT)
    sasl: SaslConfig | None = Field(default=None, description="For the SASL protocols.")
    tls: TlsConfig | None = Field(default=None, description="For the SSL protocols.")
    refresh_interval_seconds: Seconds = Field(
        default=30.0, description="How often the configured quotas are read again."
    )
    timeout_seconds: Seconds = Field(default=10.0, description="Longest wait for connecting, and for each answer.")

    @model_validator(mode="after")
    def _consistent(self) -> KafkaConfig:
        uses_sasl = self.security_protocol.uses_sasl
        if uses_sasl and self.sasl is None:
            raise ValueError(f"{self.security_protocol.value} needs sasl")
        if self.sasl is not None and not uses_sasl:
            raise ValueError(f"sasl has no effect with {self.security_protocol.value}: set security_protocol")
        if (
            self.sasl is not None
            and self.sasl.mechanism is SaslMechanism.AWS_MSK_IAM
            and not self.security_protocol.uses_tls
        ):
            raise ValueError("AWS_MSK_IAM needs security_protocol SASL_SSL")
        if self.tls is not None and not self.security_protocol.uses_tls:
            raise ValueError(f"tls has no effect with {self.security_protocol.value}: set security_protocol")
        return self


_PLACEHOLDER: Final = re.compile(r"\{(\w+)\}", re.ASCII)


AUTO: Final = "auto"
"""Value in place of the address of agents, for the ports that agents usually have."""


def _template(*names: str, one_of: set[str], alternative: str = "") -> AfterValidator:
    """
    Return a check of a URL with placeholders such as ``{host}``.

    Args:
        names: The names of placeholders that it may contain.
        one_of: Names of which it must contain one or more.
        alternative: A text that is valid although it is no URL; empty for none.

    """

    def check(text: str) -> str:
        if text and text == alternative:
            return text
        used = set(_PLACEHOLDER.findall(text))
        unknown = used - set(names)
        other_braces = set("{}") & set(_PLACEHOLDER.sub("", text))
        if unknown or other_braces:
            allowed = ", ".join(f"{{{name}}}" for name in names)
            raise ValueError(f"may contain {allowed}, and no other braces")
        http_url(_PLACEHOLDER.sub("1", text))
        if not used & one_of:
            missing = " or ".join(f"{{{name}}}" for name in names if name in one_of)
            raise ValueError(f"must contain {missing}: otherwise all nodes have one URL")
        return text

    return AfterValidator(check)


NodeTemplate = Annotated[str, _template("host", "node_id", "rack", one_of={"host", "node_id"})]
TargetTemplate = Annotated[str, _template("target", "host", "port", one_of={"target", "host"})]
Controller = Annotated[
    str,
    matching(
        r"(\d{1,10})@(\[[0-9A-Fa-f:.]+\]|[\w.-]+)(:\d{1,5})?", problem="expected NODE_ID@HOST, such as 100@controller-1"
    ),
]


class FoundSourceConfig(AccessConfig, DialectConfig):
    """The settings that all found sources share."""

    dialect: DialectName = Field(default=Dialect.AUTO, description="As `dialect` of a source.")


class KafkaDiscoveryConfig(Section):
    """Brokers and controllers as the cluster itself reports them."""

    url: Annotated[str, _template("host", "node_id", "rack", one_of={"host", "node_id"}, alternative=AUTO)] = Field(
        description=(
            "Where a node's agent answers. {host}, {node_id} and {rack} are replaced by the values that the "
            "cluster reports for the node. auto tries the usual ports, without TLS or credentials."
        ),
        examples=["http://{host}:8778/jolokia"],
    )
    controller_url: NodeTemplate | None = Field(
        default=None,
        description=(
            "The same for nodes that are only controllers; {rack} is unknown for them. Default: url. Not with auto."
        ),
        examples=["http://{host}:8779/jolokia"],
    )
    controllers: Annotated[tuple[Controller, ...], BeforeValidator(comma_separated)] = Field(
        default=(),
        description=(
            "Controllers as NODE_ID@HOST, for clusters older than Kafka 3.9, which do not report the addresses of "
            "their controllers. The value of controller.quorum.voters can be used."
        ),
        examples=[["100@controller-1", "101@controller-2"]],
    )
    refresh_interval_seconds: Seconds = Field(default=30.0, description="How often the cluster is read.")


class FileDiscoveryConfig(Section):
    """Nodes from files as Prometheus's file_sd_configs reads them."""

    files: Annotated[tuple[str, ...], BeforeValidator(comma_separated)] = Field(
        min_length=1,
        description="JSON (*.json) or YAML files; * stands for any name.",
        examples=[["/etc/prometheus/kafka/*.json"]],
    )
    url: TargetTemplate = Field(
        default="http://{target}/jolokia",
        description=(
            "Where a target's agent answers: {target} is replaced by HOST:PORT from the file, {host} and {port} "
            "by its parts. The file's own __scheme__ and __metrics_path__ are not used."
        ),
    )
    match: dict[str, str] = Field(
        default_factory=dict,
        description="Only groups with these labels are taken. Default: all.",
        examples=[{"job": "kafka"}],
    )
    node_id_label: str = Field(
        default="node_id", min_length=1, description="The label that holds Kafka's node.id, where there is one."
    )
    refresh_interval_seconds: Seconds = Field(default=5.0, description="How often the files are checked.")


class DiscoveryConfig(Section):
    """The ways in which brokers and controllers are found."""

    kafka: KafkaDiscoveryConfig | None = Field(
        default=None,
        description="All brokers and controllers of the cluster under `kafka`, including those that are down.",
    )
    file_sd: FileDiscoveryConfig | None = Field(
        default=None,
        description=(
            "Targets from files. Anyone who can write these files decides where the requests of `source` go, with "
            "its credentials."
        ),
    )
    source: FoundSourceConfig = Field(default=FoundSourceConfig(), description="How discovered sources are read.")

    @model_validator(mode="after")
    def _auto_alone(self) -> DiscoveryConfig:
        if self.kafka is None or self.kafka.url != AUTO:
            return self
        if self.kafka.controller_url is not None:
            raise ValueError("kafka.url auto finds controllers as well: leave out controller_url")
        source = self.source
        if source.tls or source.basic_auth or source.headers or source.header_files:
            raise ValueError(
                "kafka.url auto would send the credentials of source to any port: name the agents' address"
            )
        return self

    @property
    def wanted(self) -> bool:
        """Return whether any discovery is configured."""
        return self.kafka is not None or self.file_sd is not None
