"""The configuration of the Admin API."""

from __future__ import annotations

from typing import Annotated

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    FilePath,
    SecretStr,
    model_validator,
)

from quotascope.clients.security import SaslMechanism, SecurityProtocol

from .section import Seconds, Section, TlsConfig, comma_separated, exactly_one


def _some(servers: tuple[str, ...]) -> tuple[str, ...]:
    if not servers:
        raise ValueError("names no broker")
    return servers


def _host_and_port(server: str) -> str:
    host, colon, port = server.rpartition(":")
    if not (host and colon and port.isdecimal() and 0 < int(port) < 65536):  # noqa: PLR2004 - TCP's
        raise ValueError("expected HOST:PORT, such as broker-1:9092")
    return server


Server = Annotated[str, AfterValidator(_host_and_port)]


class SaslConfig(Section):
    """SASL towards Kafka."""

    mechanism: SaslMechanism = Field(
        default=SaslMechanism.PLAIN,
        description="PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512.",
    )
    username: str = Field(description="User name.", examples=["quotascope"])
    password: SecretStr | None = Field(
        default=None,
        description="Password; either this or password_file.",
        examples=["${KAFKA_PASSWORD}"],
    )
    password_file: FilePath | None = Field(
        default=None,
        description="The same, read from a file.",
        examples=["/run/secrets/kafka-password"],
    )

    @model_validator(mode="after")
    def _consistent(self) -> SaslConfig:
        exactly_one(self, "password", "password_file")
        return self


class KafkaConfig(Section):
    """The Admin API, which knows the configured quotas."""

    bootstrap_servers: Annotated[
        tuple[Server, ...], BeforeValidator(comma_separated), AfterValidator(_some)
    ] = Field(
        description="Brokers to ask first: a list, or HOST:PORT separated by commas.",
        examples=[["broker-1:9092", "broker-2:9092"]],
    )
    security_protocol: SecurityProtocol = Field(
        default=SecurityProtocol.PLAINTEXT,
        description="PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.",
    )
    sasl: SaslConfig | None = Field(default=None, description="For the SASL protocols.")
    tls: TlsConfig | None = Field(default=None, description="For the SSL protocols.")
    refresh_interval_seconds: Seconds = Field(
        default=30.0, description="How often the configured quotas are read again."
    )
    timeout_seconds: Seconds = Field(
        default=10.0, description="Longest wait for connecting, and for each answer."
    )

    @model_validator(mode="after")
    def _consistent(self) -> KafkaConfig:
        uses_sasl = self.security_protocol.uses_sasl
        if uses_sasl and self.sasl is None:
            raise ValueError(f"{self.security_protocol.value} needs sasl")
        if self.sasl is not None and not uses_sasl:
            raise ValueError(
                f"sasl has no effect with {self.security_protocol.value}: set security_protocol"
            )
        if self.tls is not None and not self.security_protocol.uses_tls:
            raise ValueError(
                f"tls has no effect with {self.security_protocol.value}: set security_protocol"
            )
        return self
