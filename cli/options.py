"""
Options that several commands share, each declared once: a flag has one meaning in all commands.

A command chooses the default, and where it is needed another Python type; name, metavar, help and environment variable
belong to the flag.
"""

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
_ENTITY = "User, client-id or IP address"
_OUTPUTS = "What is written"

_BOOTSTRAP_SERVERS = typer.Option(
    metavar="HOST:PORT,…",
    help="Brokers of the Kafka cluster, to connect to first.",
    rich_help_panel=_KAFKA,
)
_USER = typer.Option(
    "--user",
    metavar="NAME",
    help="Name of the principal, as in the quota: alice for User:alice.",
    rich_help_panel=_ENTITY,
)
_PORT = typer.Option(
    metavar="PORT",
    min=0,
    max=65_535,
    help="Port to listen on; 0 takes a free one. The exporter's is 9749 by default.",
    rich_help_panel=_SERVING,
)
_GRAFANA_URL = typer.Option(
    "--grafana-url",
    metavar="URL",
    help="Address of the Grafana that has the dashboards.",
)
_STRIMZI_CLUSTER = typer.Option(
    metavar="NAME",
    help="Name of the Kafka resource, for the label strimzi.io/cluster of KafkaUser manifests.",
    rich_help_panel=_OUTPUTS,
)

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
        help="A broker or controller to read, such as http://broker-1:8778/jolokia; its dialect is detected, or forced as in jmx_exporter:1=http://broker-1:9404/metrics, where 1 is the node id; may be repeated.",
        rich_help_panel=_READING,
    ),
]
Discover = Annotated[
    str | None,
    typer.Option(
        metavar="[DIALECT=]URL",
        help="Read all brokers and controllers of the cluster: the address of their agents, such as 'http://{host}:8778/jolokia'; also {node_id} and {rack}.",
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
BootstrapServers = Annotated[str | None, _BOOTSTRAP_SERVERS]
StreamServers = Annotated[str, _BOOTSTRAP_SERVERS]
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
        help="User for Kafka.",
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
Port = Annotated[int | None, _PORT]
AnyPort = Annotated[int, _PORT]
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
        help="Most pairs of user and client-id shown for each quota type (10000); the others are folded into one.",
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
        help="Show only client-ids that match as a whole; may be repeated.",
        rich_help_panel=_NUMBER,
    ),
]
ExcludeClientIds = Annotated[
    list[str] | None,
    typer.Option(
        "--exclude-client-id",
        metavar="RE2",
        help="Fold client-ids that match as a whole; may be repeated.",
        rich_help_panel=_NUMBER,
    ),
]
DetailAbove = Annotated[
    float | None,
    typer.Option(
        metavar="RATIO",
        help="Show utilization, rule and cause only of entities that are throttled or above this utilization, such as 0.5.",
        rich_help_panel=_NUMBER,
    ),
]
IdleAfter = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Leave out entities without traffic for this time, such as 15m.",
        rich_help_panel=_NUMBER,
    ),
]
User = Annotated[str, _USER]
NamedUser = Annotated[str | None, _USER]
ClientId = Annotated[
    str | None,
    typer.Option(
        "--client-id",
        metavar="ID",
        help="The client.id, as clients send it.",
        rich_help_panel=_ENTITY,
    ),
]
Ip = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="An IP address, or the name of a host that the brokers can look up.",
        rich_help_panel=_ENTITY,
    ),
]
DefaultUser = Annotated[
    bool,
    typer.Option(
        "--default-user",
        help="All users without a quota of their own.",
        rich_help_panel=_ENTITY,
    ),
]
DefaultClientId = Annotated[
    bool,
    typer.Option(
        "--default-client-id",
        help="All client-ids without a quota of their own.",
        rich_help_panel=_ENTITY,
    ),
]
DefaultIp = Annotated[
    bool,
    typer.Option(
        "--default-ip",
        help="All addresses without a quota of their own.",
        rich_help_panel=_ENTITY,
    ),
]
Apply = Annotated[
    bool, typer.Option("--apply", help="Change the cluster. Without it, only show.")
]
QuotasFrom = Annotated[
    Path | None,
    typer.Option(
        "--quotas",
        metavar="FILE",
        help="Take the quotas of this YAML file (- for standard input), as `quotas export` writes it, instead of the cluster's.",
    ),
]
Top = Annotated[
    int, typer.Option(min=0, metavar="N", help="How many entities to show.")
]
Every = Annotated[
    str,
    typer.Option(
        "--every", metavar="TIME", help="How often to read again, such as 5s or 1m."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
JsonFile = Annotated[
    Path | None,
    typer.Option(
        "--json-file",
        metavar="FILE",
        help="The same JSON in a file.",
        rich_help_panel=_OUTPUTS,
    ),
]
Html = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="A page with tables and plots that needs no other file.",
        rich_help_panel=_OUTPUTS,
    ),
]
Csv = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="The rows as CSV; - prints them.", rich_help_panel=_OUTPUTS
    ),
]
StrimziCluster = Annotated[str, _STRIMZI_CLUSTER]
NamedStrimziCluster = Annotated[str | None, _STRIMZI_CLUSTER]
ClusterLabel = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Label that separates the clusters of one Prometheus (cluster); it need not exist.",
    ),
]
RunbookUrl = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Address of the runbooks; {alert} stands for the alert's name.",
    ),
]
ExporterUrl = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Address of the exporter as people reach it, for links to the runbooks that it serves. Instead of --runbook-url.",
    ),
]
GrafanaUrl = Annotated[str | None, _GRAFANA_URL]
PushedGrafana = Annotated[str, _GRAFANA_URL]
