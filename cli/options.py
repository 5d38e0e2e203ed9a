"""Options that several commands share, and what they set in the configuration."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from quotascope.exporter.config import Config

ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE",
        envvar="QUOTASCOPE_CONFIG",
        help="YAML file; `quotascope config example` prints one.",
    ),
]
Sources = Annotated[
    list[str] | None,
    typer.Option(
        "--source",
        metavar="DIALECT[:NODE]=URL",
        help="A broker or controller to read, such as jolokia=http://broker-1:8778/jolokia or prometheus:1=http://broker-1:9404/metrics, whose dialect is detected; a dialect's own name forces it; may be repeated.",
    ),
]
Discover = Annotated[
    str | None,
    typer.Option(
        metavar="[DIALECT=]URL",
        help="Read all brokers and controllers of the cluster: where their agents answer, such as 'http://{host}:8778/jolokia'; also {node_id} and {rack}.",
    ),
]
Targets = Annotated[
    list[str] | None,
    typer.Option(
        "--targets",
        metavar="FILE",
        help="Read the targets of a file_sd file of Prometheus, or of several with *; may be repeated.",
    ),
]
SampleEvery = Annotated[
    str | None,
    typer.Option(
        "--sample-every",
        metavar="TIME",
        help="Read the brokers between scrapes as well, such as 5s, and show the maxima.",
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Adds the label `cluster` to every series."),
]
BootstrapServers = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT,…", help="Brokers whose Admin API knows the quotas."
    ),
]
Protocol = Annotated[
    str | None,
    typer.Option(
        "--security-protocol",
        metavar="PROTOCOL",
        help="PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.",
    ),
]
Mechanism = Annotated[
    str | None,
    typer.Option(
        "--sasl-mechanism",
        metavar="NAME",
        help="PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512.",
    ),
]
Username = Annotated[
    str | None,
    typer.Option("--sasl-username", metavar="NAME", help="Who we are to Kafka."),
]
PasswordFile = Annotated[
    str | None,
    typer.Option(
        "--sasl-password-file",
        metavar="FILE",
        help="File with the password. It can also be in QUOTASCOPE_KAFKA__SASL__PASSWORD.",
    ),
]
CaFile = Annotated[
    str | None,
    typer.Option(
        "--ca-file",
        metavar="FILE",
        help="PEM file of the authorities to trust for Kafka's TLS.",
    ),
]

Address = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="Address to listen on (0.0.0.0)."),
]
Port = Annotated[
    int | None, typer.Option(metavar="PORT", help="Port to listen on (9749).")
]
OtlpEndpoint = Annotated[
    str | None,
    typer.Option(
        "--otlp-endpoint",
        metavar="URL",
        help="Also push to this OpenTelemetry receiver, such as http://collector:4318.",
    ),
]
OtlpProtocol = Annotated[
    str | None,
    typer.Option(
        "--otlp-protocol", metavar="PROTOCOL", help="http/protobuf (default) or grpc."
    ),
]
LogFormat = Annotated[
    str | None, typer.Option(metavar="FORMAT", help="auto, human, logfmt or json.")
]
LogLevel = Annotated[
    str | None, typer.Option(metavar="LEVEL", help="debug, info, warning or error.")
]
MaxEntities = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Most pairs of user and client id shown for each quota type (10000); the others are folded into one.",
    ),
]
IncludeUsers = Annotated[
    list[str] | None,
    typer.Option(
        "--include-user",
        metavar="RE2",
        help="Show only users whose whole name matches; may be repeated.",
    ),
]
ExcludeUsers = Annotated[
    list[str] | None,
    typer.Option(
        "--exclude-user",
        metavar="RE2",
        help="Fold users whose whole name matches; may be repeated.",
    ),
]
IncludeClientIds = Annotated[
    list[str] | None,
    typer.Option(
        "--include-client-id",
        metavar="RE2",
        help="Show only client ids that match as a whole; may be repeated.",
    ),
]
ExcludeClientIds = Annotated[
    list[str] | None,
    typer.Option(
        "--exclude-client-id",
        metavar="RE2",
        help="Fold client ids that match as a whole; may be repeated.",
    ),
]
DetailAbove = Annotated[
    float | None,
    typer.Option(
        metavar="RATIO",
        help="Show utilisation, rule and cause only of who is throttled or above this utilisation, such as 0.5.",
    ),
]
IdleAfter = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS", help="Leave out who has not moved for so long, such as 900."
    ),
]
User = Annotated[
    str,
    typer.Option(
        metavar="NAME", help="Name of the principal, as in the quota: no User:."
    ),
]
ClientId = Annotated[str, typer.Option(metavar="ID", help="The client's client.id.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]

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

    named = {f"--{name.replace('_', '-')}": value for name, value in flags.items()}
    overrides = [
        Override(place=_PLACES[flag], value=value, origin=flag)
        for flag, value in named.items()
        if value is not None
    ]
    if sources:
        overrides.append(sources_override(sources, "--source"))
    if discover:
        overrides.extend(discovery_overrides(discover, "--discover"))
    return load_config(file, os.environ, overrides)
