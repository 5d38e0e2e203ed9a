"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_READING = "What is read"
_KAFKA = "Kafka's Admin API, which knows the configured quotas"
_SERVING = "What is served, and where"
_NUMBER = "Which series"
_PUSHING = "Push over OTLP"
_LOGGING = "Log"

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
        metavar="[DIALECT[:NODE]=]URL",
        help="A broker or controller to read, such as http://broker-1:8778/jolokia; its dialect is found out, or forced as in jmx_exporter:1=http://broker-1:9404/metrics, where 1 is the node id; may be repeated.",
        rich_help_panel=_READING,
    ),
]
Discover = Annotated[
    str | None,
    typer.Option(
        metavar="[DIALECT=]URL",
        help="Read all brokers and controllers of the cluster: where their agents answer, such as 'http://{host}:8778/jolokia'; also {node_id} and {rack}.",
        rich_help_panel=_READING,
    ),
]
Targets = Annotated[
    list[str] | None,
    typer.Option(
        "--targets",
        metavar="FILE",
        help="Read the targets of a file_sd file of Prometheus, or of several with *; may be repeated.",
        rich_help_panel=_READING,
    ),
]
SampleEvery = Annotated[
    str | None,
    typer.Option(
        "--sample-every",
        metavar="TIME",
        help="Read the brokers between scrapes as well, such as 5s, and show the maxima.",
        rich_help_panel=_READING,
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Adds the label `cluster` to every series.",
        rich_help_panel=_SERVING,
    ),
]
BootstrapServers = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT,…",
        help="Brokers to ask for the quotas by Kafka's Admin API.",
        rich_help_panel=_KAFKA,
    ),
]
Protocol = Annotated[
    str | None,
    typer.Option(
        "--security-protocol",
        metavar="PROTOCOL",
        help="PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.",
        rich_help_panel=_KAFKA,
    ),
]
Mechanism = Annotated[
    str | None,
    typer.Option(
        "--sasl-mechanism",
        metavar="NAME",
        help="PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512.",
        rich_help_panel=_KAFKA,
    ),
]
Username = Annotated[
    str | None,
    typer.Option(
        "--sasl-username",
        metavar="NAME",
        help="Who we are to Kafka.",
        rich_help_panel=_KAFKA,
    ),
]
PasswordFile = Annotated[
    str | None,
    typer.Option(
        "--sasl-password-file",
        metavar="FILE",
        help="File with the password. It can also be in QUOTASCOPE_KAFKA__SASL__PASSWORD.",
        rich_help_panel=_KAFKA,
    ),
]
CaFile = Annotated[
    str | None,
    typer.Option(
        "--ca-file",
        metavar="FILE",
        help="PEM file of the authorities to trust for Kafka's TLS.",
        rich_help_panel=_KAFKA,
    ),
]

Address = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Address to listen on (0.0.0.0).",
        rich_help_panel=_SERVING,
    ),
]
Port = Annotated[
    int | None,
    typer.Option(
        metavar="PORT", help="Port to listen on (9749).", rich_help_panel=_SERVING
    ),
]
WebConfigFile = Annotated[
    str | None,
    typer.Option(
        "--web.config.file",
        metavar="FILE",
        help="TLS, users and headers, in the web config format of all exporters of Prometheus (docs/security.md).",
        rich_help_panel=_SERVING,
    ),
]
OtlpEndpoint = Annotated[
    str | None,
    typer.Option(
        "--otlp-endpoint",
        metavar="URL",
        help="Also push to this OpenTelemetry receiver, such as http://collector:4318.",
        rich_help_panel=_PUSHING,
    ),
]
OtlpProtocol = Annotated[
    str | None,
    typer.Option(
        "--otlp-protocol",
        metavar="PROTOCOL",
        help="http/protobuf (default) or grpc.",
        rich_help_panel=_PUSHING,
    ),
]
LogFormat = Annotated[
    str | None,
    typer.Option(
        metavar="FORMAT", help="auto, human, logfmt or json.", rich_help_panel=_LOGGING
    ),
]
LogLevel = Annotated[
    str | None,
    typer.Option(
        metavar="LEVEL", help="debug, info, warning or error.", rich_help_panel=_LOGGING
    ),
]
MaxEntities = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Most pairs of user and client id shown for each quota type (10000); the others are folded into one.",
        rich_help_panel=_NUMBER,
    ),
]
IncludeUsers = Annotated[
    list[str] | None,
    typer.Option(
        "--include-user",
        metavar="RE2",
        help="Show only users that match with their whole name; may be repeated.",
        rich_help_panel=_NUMBER,
    ),
]
ExcludeUsers = Annotated[
    list[str] | None,
    typer.Option(
        "--exclude-user",
        metavar="RE2",
        help="Fold users that match with their whole name; may be repeated.",
        rich_help_panel=_NUMBER,
    ),
]
IncludeClientIds = Annotated[
    list[str] | None,
    typer.Option(
        "--include-client-id",
        metavar="RE2",
        help="Show only client ids that match as a whole; may be repeated.",
        rich_help_panel=_NUMBER,
    ),
]
ExcludeClientIds = Annotated[
    list[str] | None,
    typer.Option(
        "--exclude-client-id",
        metavar="RE2",
        help="Fold client ids that match as a whole; may be repeated.",
        rich_help_panel=_NUMBER,
    ),
]
DetailAbove = Annotated[
    float | None,
    typer.Option(
        metavar="RATIO",
        help="Show utilization, rule and cause only of who is throttled or above this utilization, such as 0.5.",
        rich_help_panel=_NUMBER,
    ),
]
IdleAfter = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Leave out who has not moved for so long, such as 15m.",
        rich_help_panel=_NUMBER,
    ),
]
User = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Name of the principal, as in the quota: alice for User:alice.",
    ),
]
ClientId = Annotated[
    str | None,
    typer.Option(
        metavar="ID",
        help="The client's client.id; '' for clients that send none. Without it: any that no quota names.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
