"""The configuration of one source."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, FilePath, SecretStr, model_validator

from .section import Seconds, Section, TlsConfig, exactly_one


class Dialect(StrEnum):
    """How a source is spoken to."""

    AUTO = "auto"
    """Jolokia or Prometheus text, whichever it turns out to be."""
    JOLOKIA = "jolokia"
    PROMETHEUS = "prometheus"
    """Prometheus text whose dialect is found out from each answer."""
    JMX_EXPORTER = "jmx_exporter"
    """The same, as older configurations call it."""
    QUOTASCOPE_RULES = "quotascope_rules"
    KAFKA_2_0_0 = "kafka_2_0_0"
    CONFLUENT = "confluent"
    JMX_DEFAULT = "jmx_default"
    STRIMZI = "strimzi"


def http_url(url: str) -> str:
    """The URL, if it is one of an agent; else ValueError."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise ValueError("is not a URL such as http://broker-1:8778/jolokia") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("is not a URL such as http://broker-1:8778/jolokia")
    if parts.username is not None or parts.password is not None:
        raise ValueError("must not hold a user or password: use basic_auth")
    return url


def _header_name(name: str) -> str:
    if not _TOKEN.fullmatch(name):
        raise ValueError("is not the name of an HTTP header")
    return name


_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
HttpUrl = Annotated[str, AfterValidator(http_url)]
HeaderName = Annotated[str, AfterValidator(_header_name)]


def _without_colon(name: str) -> str:
    if ":" in name:
        raise ValueError("must not hold a colon: it ends there in HTTP")
    return name


class BasicAuthConfig(Section):
    """HTTP basic authentication towards an agent."""

    username: Annotated[str, AfterValidator(_without_colon)] = Field(
        description="User name.", examples=["monitor"]
    )
    password: SecretStr | None = Field(
        default=None,
        description="Password; either this or password_file.",
        examples=["${AGENT_PASSWORD}"],
    )
    password_file: FilePath | None = Field(
        default=None,
        description="The same, read from a file.",
        examples=["/run/secrets/agent-password"],
    )

    @model_validator(mode="after")
    def _consistent(self) -> BasicAuthConfig:
        exactly_one(self, "password", "password_file")
        return self


class DialectConfig(Section):
    """How a source is spoken to."""

    dialect: Dialect = Field(
        default=Dialect.AUTO,
        description="auto: found out from what answers. jolokia: a Jolokia agent. prometheus (or jmx_exporter): any agent that answers Prometheus text, whose naming is detected. Forced instead: quotascope_rules, kafka_2_0_0, confluent, strimzi, or jmx_default for an agent without rules, such as Amazon MSK has.",
        examples=["auto"],
    )


class AddressConfig(DialectConfig):
    """Which node it is, and where."""

    url: HttpUrl = Field(
        description="Where it answers, for example http://broker-1:8778/jolokia or http://broker-1:9404/metrics.",
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
        description="Kafka's node.id, the value of the label `broker`. Default: what the node says, which needs its app-info beans.",
        examples=[1],
    )


class AccessConfig(Section):
    """How to be let in, and how long to wait."""

    timeout_seconds: Seconds = Field(
        default=60.0,
        description="How long one read of it may take, with all its requests. No scrape waits so long: a read that takes longer than half a scrape's time continues in the background, and the last numbers are shown with their age.",
    )
    max_answer_bytes: int = Field(
        default=64 << 20,
        ge=1024,
        description="Longest answer that is read, decompressed. What it may hold is bounded as well, see docs/hostile-input.md.",
    )
    tls: TlsConfig | None = Field(default=None, description="For https URLs.")
    basic_auth: BasicAuthConfig | None = Field(
        default=None, description="HTTP basic authentication."
    )
    headers: dict[HeaderName, SecretStr] = Field(
        default_factory=dict,
        description="HTTP headers to send, such as a token that a proxy wants.",
        examples=[{"Authorization": "Bearer ${AGENT_TOKEN}"}],
    )
    header_files: dict[HeaderName, FilePath] = Field(
        default_factory=dict,
        description="HTTP headers whose values are read from files.",
        examples=[{"Authorization": "/run/secrets/agent-authorization"}],
    )


class SourceConfig(
    AccessConfig, AddressConfig
):  # in this order, fields of the address come first
    """One broker or controller to read."""

    @property
    def label(self) -> str:
        """The label ``source``: the name, or else host and port; free of secrets."""
        return self.name or urlsplit(self.url).netloc
