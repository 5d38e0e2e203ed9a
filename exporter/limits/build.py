"""From the configuration of the Admin API to what reads the limits."""

from __future__ import annotations

from quotascope.clients.errors import ClientError
from quotascope.clients.security import Connection, Sasl, Secret, Tls

from ..config import KafkaConfig, SaslConfig, secret
from ..errors import ConfigError
from ..tls import tls_of


def connection_of(config: KafkaConfig) -> Connection:
    """How to connect. Raises ``ConfigError`` when a file of it cannot be used."""
    try:
        connection = Connection(
            bootstrap_servers=config.bootstrap_servers,
            protocol=config.security_protocol,
            sasl=_sasl(config.sasl) if config.sasl else None,
            tls=tls_of(config.tls) if config.tls else Tls(),
            timeout_seconds=config.timeout_seconds,
        )
        if config.security_protocol.uses_tls:
            connection.tls.context()
    except (ClientError, ValueError) as error:
        raise ConfigError("kafka", [str(error)]) from None
    except OSError as error:
        problem = f"{error.filename}: {error.strerror}"
        raise ConfigError("kafka", [problem]) from None
    return connection


def read_timeout(config: KafkaConfig) -> float:
    """Seconds for one complete read: each of its few requests has its own timeout, this one is for what hangs."""
    return 4 * config.timeout_seconds


def _sasl(config: SaslConfig) -> Sasl:
    return Sasl(
        mechanism=config.mechanism,
        username=config.username,
        password=Secret(secret(config.password, config.password_file) or ""),
    )
