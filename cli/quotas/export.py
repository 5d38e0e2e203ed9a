"""`quotascope quotas export`: the quotas of a cluster or of a file, for a file or for other tools."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from .. import options
from ..options import grouped
from ..settings import AdminOptions, RunningExporter

if TYPE_CHECKING:
    from quotascope.exporter.config import Config
    from quotascope.quotas import QuotaSet, RuleChange

EXAMPLES = """
Examples:

quotascope quotas export --bootstrap-servers broker-1:9092 > quotas.yaml

quotascope quotas export --exporter http://quotascope:9749 --format kafka-user --strimzi-cluster my-cluster

quotascope quotas export --quotas quotas.yaml --bootstrap-servers broker-1:9092 --format kafka-configs

quotascope quotas export --config /etc/quotascope.yaml --format kafka-user --strimzi-cluster my-cluster

What a format cannot express is listed on standard error.
"""


class ExportFormat(StrEnum):
    """Format of the output."""

    YAML = "yaml"
    KAFKA_CONFIGS = "kafka-configs"
    KAFKA_USER = "kafka-user"


_STRIMZI = "For --format kafka-user"


@dataclass(frozen=True, slots=True, kw_only=True)
class Strimzi:
    """Options of Strimzi's manifests beside the quotas."""

    strimzi_cluster: Annotated[str | None, options.STRIMZI_CLUSTER] = None
    namespace: Annotated[
        str | None, typer.Option(metavar="NAME", help="Namespace of the manifests.", rich_help_panel=_STRIMZI)
    ] = None
    strimzi_api: Annotated[
        str,
        typer.Option(
            metavar="VERSION", help="kafka.strimzi.io/v1beta2 for Strimzi before 0.49.", rich_help_panel=_STRIMZI
        ),
    ] = "kafka.strimzi.io/v1"


@grouped
def export(
    *,
    quotas: options.QuotasFrom = None,
    output: Annotated[
        ExportFormat,
        typer.Option(
            "--format",
            help=(
                "A YAML file for `diff` and `set --file`, commands of kafka-configs.sh, or Strimzi's KafkaUser "
                "manifests."
            ),
        ),
    ] = ExportFormat.YAML,
    command_config: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="For --format kafka-configs: its file with the settings of the connection."),
    ] = None,
    strimzi: Strimzi,
    running: RunningExporter,
    kafka: AdminOptions,
) -> None:
    """Write all quotas to standard output."""
    from quotascope.quotas import QuotaSet, difference, kafka_users, quotas_yaml, read_quotas, storable

    from ..cluster import configured_quotas

    if output is ExportFormat.KAFKA_USER and strimzi.strimzi_cluster is None:
        raise typer.BadParameter("--format kafka-user needs --strimzi-cluster")
    settings = kafka.configuration()
    exported = configured_quotas(settings, running.target()) if quotas is None else read_quotas(quotas)
    if quotas is None and running.target() is not None:
        _refuse_cut_names(exported)
    if output is ExportFormat.KAFKA_USER:
        manifests = kafka_users(
            exported,
            cluster=strimzi.strimzi_cluster or "",
            namespace=strimzi.namespace,
            api_version=strimzi.strimzi_api,
        )
        typer.echo(manifests.text, nl=False)
        report_left_out(manifests.left_out)
        return
    stored, refused = storable(exported)
    if output is ExportFormat.YAML:
        typer.echo(quotas_yaml(stored), nl=False)
    else:
        print_commands(difference(QuotaSet(), stored), settings, command_config)
    report_left_out(refused)


def _refuse_cut_names(quotas: QuotaSet) -> None:
    """Raise ``ConfigError`` for quotas of names that an exporter has cut: elsewhere they would apply to no client."""
    from quotascope.exporter.errors import ConfigError
    from quotascope.exporter.names import is_cut
    from quotascope.exporter.untrusted import one_line
    from quotascope.quotas import IpEntity

    problems = [
        f"{one_line(str(entity))} stands for a longer name, which the exporter does not report: give "
        "--bootstrap-servers instead"
        for entity in quotas
        if not isinstance(entity, IpEntity)
        and any(isinstance(name, str) and is_cut(name) for name in (entity.user, entity.client_id))
    ]
    if problems:
        raise ConfigError("exporter", problems)


def print_commands(changes: Iterable[RuleChange], config: Config, command_config: str | None) -> None:
    """Print a command for each entity. Raises ``ConfigError`` if the configuration has no address of Kafka."""
    from quotascope.exporter.errors import ConfigError
    from quotascope.quotas import kafka_configs

    if config.kafka is None:
        raise ConfigError(
            "configuration", ["the commands need Kafka's address: give --bootstrap-servers, or a file with `kafka`"]
        )
    commands = kafka_configs(
        changes, bootstrap_servers=",".join(config.kafka.bootstrap_servers), command_config=command_config
    )
    for line in commands.lines:
        typer.echo(line)
    report_left_out(commands.left_out)


def report_left_out(left_out: Iterable[str]) -> None:
    """Print on standard error what standard output lacks, and why."""
    for sentence in left_out:
        typer.echo(f"quotascope: left out: {sentence}", err=True)
