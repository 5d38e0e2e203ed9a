"""Options that several commands share, and the configuration that they give."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from . import options

if TYPE_CHECKING:
    from quotascope.exporter.config import Config


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaOptions:
    """How to reach Kafka's Admin API."""

    bootstrap_servers: options.BootstrapServers = None
    security_protocol: options.Protocol = None
    sasl_mechanism: options.Mechanism = None
    sasl_username: options.Username = None
    sasl_password_file: options.PasswordFile = None
    ca_file: options.CaFile = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminOptions:
    """The options of a command that only uses Kafka's Admin API."""

    config: options.ConfigFile = None
    kafka: KafkaOptions

    def configuration(self) -> Config:
        """The configuration from these, file and environment. Raises ``ConfigError``."""
        return configuration(self.config, **asdict(self.kafka))


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """The options of a command that reads the brokers' agents, and maybe uses the Admin API."""

    config: options.ConfigFile = None
    source: options.Sources = None
    discover: options.Discover = None
    targets: options.Targets = None
    kafka: KafkaOptions

    def configuration(self, **flags: object) -> Config:
        """The configuration from these, file, environment, and more flags as ``configuration`` takes them. Raises ``ConfigError``."""
        return configuration(
            self.config,
            self.source,
            self.discover,
            targets=self.targets,
            **asdict(self.kafka),
            **flags,
        )


_PLACES = {
    "--cluster": ("cluster",),
    "--bootstrap-servers": ("kafka", "bootstrap_servers"),
    "--security-protocol": ("kafka", "security_protocol"),
    "--sasl-mechanism": ("kafka", "sasl", "mechanism"),
    "--sasl-username": ("kafka", "sasl", "username"),
    "--sasl-password-file": ("kafka", "sasl", "password_file"),
    "--ca-file": ("kafka", "tls", "ca_file"),
    "--address": ("server", "address"),
    "--port": ("server", "port"),
    "--web.config.file": ("server", "web_config_file"),
    "--max-entities": ("cardinality", "max_entities"),
    "--include-user": ("cardinality", "include_users"),
    "--exclude-user": ("cardinality", "exclude_users"),
    "--include-client-id": ("cardinality", "include_client_ids"),
    "--exclude-client-id": ("cardinality", "exclude_client_ids"),
    "--detail-above": ("cardinality", "detail_above"),
    "--idle-after": ("cardinality", "idle_after_seconds"),
    "--otlp-endpoint": ("otlp", "endpoint"),
    "--otlp-protocol": ("otlp", "protocol"),
    "--log-format": ("log", "format"),
    "--log-level": ("log", "level"),
    "--sample-every": ("collection", "sample_every_seconds"),
    "--targets": ("discovery", "file_sd", "files"),
}


def configuration(
    file: Path | None,
    sources: list[str] | None = None,
    discover: str | None = None,
    **flags: object,
) -> Config:
    """
    The configuration from file, environment and flags.

    Flags are named as in Python (``log_format`` for ``--log-format``); those that are
    None were not given. Raises ``ConfigError``.
    """
    from quotascope.exporter.config import (
        Override,
        discovery_overrides,
        load_config,
        sources_override,
    )

    overrides = []
    for name, value in flags.items():
        # --web.config.file is the name in all exporters of Prometheus
        separator = "." if name == "web_config_file" else "-"
        flag = f"--{name.replace('_', separator)}"
        if value is not None:
            overrides.append(Override(place=_PLACES[flag], value=value, origin=flag))
    if sources:
        overrides.append(sources_override(sources, "--source"))
    if discover:
        overrides.extend(discovery_overrides(discover, "--discover"))
    return load_config(file, os.environ, overrides)
