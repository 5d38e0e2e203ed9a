"""Groups of options that several commands share, and the configurations that they make."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, make_dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from quotascope.metrics import connection_settings

from . import options

if TYPE_CHECKING:
    from quotascope.alerts import Site
    from quotascope.exporter.config import Config
    from quotascope.exporter.sources.peer import HttpTarget

PASSWORD_VARIABLE: Final = "QUOTASCOPE_EXPORTER_PASSWORD"  # noqa: S105 - a name
_panel_option = partial(typer.Option, rich_help_panel="A running exporter")

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
"""The option of a configuration file."""


_CONNECTION: Final = {
    setting.flag.removeprefix("--").replace("-", "_"): setting
    for setting in connection_settings.SETTINGS
    if setting.flag
}
"""Settings of the connection to Kafka that have a flag, by the flag's name in Python."""

if TYPE_CHECKING:

    @dataclass(frozen=True, slots=True, kw_only=True)
    class KafkaOptions:
        """Options of the connection to Kafka's Admin API: the flags of `connection_settings`."""

else:
    KafkaOptions = make_dataclass(
        "KafkaOptions",
        [
            (name, Annotated[str | None, options.kafka_option(metavar=setting.metavar, help=setting.help)], None)
            for name, setting in _CONNECTION.items()
        ],
        frozen=True,
        slots=True,
        kw_only=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminOptions:
    """Options of a command that only uses Kafka's Admin API."""

    config: ConfigFile = None
    kafka: KafkaOptions

    def configuration(self) -> Config:
        """Return the configuration from these options, file and environment. Raises ``ConfigError``."""
        return configuration(self.config, **asdict(self.kafka))

    @property
    def connection(self) -> tuple[str, ...]:
        """The words with which another command reaches the same Kafka."""
        return _connection(self.config, self.kafka)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """Options of a command that reads the brokers' agents, and maybe uses the Admin API."""

    config: ConfigFile = None
    source: Annotated[
        list[str] | None,
        options.reading_option(
            metavar="[DIALECT[:NODE]=]URL",
            help=(
                "A broker or controller to read, such as http://broker-1:8778/jolokia; its dialect is detected, or "
                "forced as in jmx_exporter:1=http://broker-1:9404/metrics, where 1 is the node id; may be repeated. "
                "prometheus=http://prometheus:9090 reads all nodes from the Prometheus that scrapes their agents."
            ),
        ),
    ] = None
    discover: Annotated[
        str | None,
        options.reading_option(
            metavar="[DIALECT=]URL",
            help=(
                "Read all brokers and controllers of the cluster: the address of their agents, such as "
                "'http://{host}:8778/jolokia'; also {node_id} and {rack}. auto tries the usual ports."
            ),
        ),
    ] = None
    targets: Annotated[
        list[str] | None,
        options.reading_option(
            metavar="FILE",
            help="Read the targets of a file_sd file of Prometheus, or of several with *; may be repeated.",
        ),
    ] = None
    kafka: KafkaOptions

    def configuration(self, **flags: object) -> Config:
        """Return the configuration from these options, file, environment and more flags. Raises ``ConfigError``."""
        return configuration(
            self.config, self.source, self.discover, targets=self.targets, **asdict(self.kafka), **flags
        )

    @property
    def connection(self) -> tuple[str, ...]:
        """The words with which another command reaches the same Kafka."""
        return _connection(self.config, self.kafka)


def _connection(file: Path | None, kafka: KafkaOptions) -> tuple[str, ...]:
    """Return the flags of a connection, each followed by its value."""
    words: list[str] = []
    for name, value in {"config": file, **asdict(kafka)}.items():
        if value is not None:
            words += [f"--{name.replace('_', '-')}", str(value)]
    return tuple(words)


_PLACES: Final = {
    **{setting.flag: setting.place for setting in _CONNECTION.values()},
    "--cluster": ("cluster",),
    "--address": ("server", "address"),
    "--port": ("server", "port"),
    "--web.config.file": ("server", "web_config_file"),
    "--web.listen-address": ("server", "listen_addresses"),
    "--max-entities": ("cardinality", "max_entities"),
    "--include-user": ("cardinality", "include_users"),
    "--exclude-user": ("cardinality", "exclude_users"),
    "--include-client-id": ("cardinality", "include_client_ids"),
    "--exclude-client-id": ("cardinality", "exclude_client_ids"),
    "--detail-above": ("cardinality", "detail_above"),
    "--idle-after": ("cardinality", "idle_after_seconds"),
    "--shadow": ("shadow", "file"),
    "--teams": ("teams",),
    "--otlp-endpoint": ("otlp", "endpoint"),
    "--otlp-protocol": ("otlp", "protocol"),
    "--log-format": ("log", "format"),
    "--log-level": ("log", "level"),
    "--sample-every": ("collection", "sample_every_seconds"),
    "--targets": ("discovery", "file_sd", "files"),
}
"""Keys of the configuration that flags replace."""


_DOTTED: Final = {
    "web_config_file": "--web.config.file",
    "web_listen_address": "--web.listen-address",
}
"""Flags with the names that they have in all exporters of Prometheus."""


def configuration(
    file: Path | None, sources: list[str] | None = None, discover: str | None = None, **flags: object
) -> Config:
    """
    Return the configuration from file, environment and flags.

    Flags are named as in Python (``log_format`` for ``--log-format``); flags that are None were not set. Raises
    ``ConfigError``.
    """
    from quotascope.exporter.config import Override, discovery_overrides, load_config, sources_override

    overrides = []
    for name, value in flags.items():
        flag = _DOTTED.get(name, f"--{name.replace('_', '-')}")
        if value is not None:
            overrides.append(Override(place=_PLACES[flag], value=value, origin=flag))
    if sources:
        overrides.append(sources_override(sources, "--source"))
    if discover:
        overrides.extend(discovery_overrides(discover, "--discover"))
    return load_config(file, os.environ, overrides)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningExporter:
    """Address of a running exporter, and the login for it."""

    exporter: Annotated[
        str | None,
        _panel_option(
            metavar="URL", help="Read a running exporter, such as http://quotascope:9749, instead of the brokers."
        ),
    ] = None
    exporter_user: Annotated[
        str | None, _panel_option(metavar="NAME", help="User name, if the exporter asks for a password.")
    ] = None
    exporter_password_file: Annotated[
        Path | None,
        _panel_option(metavar="FILE", help=f"File with the password. It can also be in {PASSWORD_VARIABLE}."),
    ] = None
    exporter_ca_file: Annotated[
        Path | None,
        _panel_option(metavar="FILE", help="PEM file of the authorities to trust for its TLS; else the system's."),
    ] = None
    exporter_cert_file: Annotated[
        Path | None, _panel_option(metavar="FILE", help="PEM file with the client certificate for it.")
    ] = None
    exporter_key_file: Annotated[
        Path | None, _panel_option(metavar="FILE", help="PEM file with its key, when that is not in the same file.")
    ] = None

    def __post_init__(self) -> None:
        """Raise ``typer.BadParameter`` for a login without an exporter."""
        options.check_not_without(self, "exporter")

    def target(self) -> HttpTarget | None:
        """
        Return the exporter as a target of requests, None without one.

        Raises ``typer.BadParameter``, and ``ClientError`` for files of TLS.
        """
        from quotascope.clients.security import Tls
        from quotascope.exporter.api.client import exporter_target
        from quotascope.exporter.errors import ConfigError

        if self.exporter is None:
            return None
        if self.exporter_user is None and self.exporter_password_file is not None:
            raise typer.BadParameter("needs --exporter-user", param_hint="--exporter-password-file")
        tls = Tls(ca_file=self.exporter_ca_file, cert_file=self.exporter_cert_file, key_file=self.exporter_key_file)
        try:
            return exporter_target(
                self.exporter,
                user=self.exporter_user,
                password=os.environ.get(PASSWORD_VARIABLE),
                password_file=self.exporter_password_file,
                tls=tls,
            )
        except ConfigError as error:
            raise typer.BadParameter("; ".join(error.problems), param_hint=error.subject) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteOptions:
    """The installation for which rules and dashboards are written."""

    alerts_config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="YAML file with thresholds, teams and settings of alerts; `quotascope alerts config` prints one.",
        ),
    ] = None
    cluster_label: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Label that distinguishes the clusters in one Prometheus (cluster); it need not exist."
        ),
    ] = None
    exporter_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help=(
                "Address of the exporter as people reach it, for links to its pages of clients and the runbooks that "
                "it serves. Instead of --runbook-url."
            ),
        ),
    ] = None
    runbook_url: Annotated[
        str | None, typer.Option(metavar="URL", help="Address of the runbooks; {alert} stands for the alert's name.")
    ] = None

    def site(self, **others: str | None) -> Site:
        """
        Return the site from these options, other options by the names of its fields, the file, and defaults.

        Raises ``typer.BadParameter``, and ``ConfigError`` for mistakes in the file.
        """
        from quotascope.alerts import InvalidSite, Site

        base = Site()
        if self.alerts_config is not None:
            from .alerts_config import read_alerts_config

            base = read_alerts_config(self.alerts_config)
        try:
            return self._with_options(base, others)
        except InvalidSite as error:
            raise typer.BadParameter(str(error)) from error

    def _with_options(self, base: Site, others: Mapping[str, str | None]) -> Site:
        """Return a site with the values of the command line in place of those of the file. Raises ``InvalidSite``."""
        from quotascope.alerts import InvalidSite
        from quotascope.alerts.links import served_runbooks
        from quotascope.alerts.settings import Profile

        runbook_url = self.runbook_url
        if self.exporter_url is not None:
            if runbook_url is not None:
                raise InvalidSite(
                    "--exporter-url and --runbook-url both give the address of runbooks: pass only one of them"
                )
            runbook_url = served_runbooks(self.exporter_url)
        values = {
            "cluster_label": self.cluster_label,
            "exporter_url": self.exporter_url,
            "runbook_url": runbook_url,
        }
        named: dict[str, Any] = {name: text for name, text in {**values, **others}.items() if text is not None}
        if "profile" in named:
            named["profile"] = Profile(named["profile"])
        return replace(base, **named)


def report_missing_links(site: Site, *, to_dashboards: bool) -> None:
    """Print on standard error the links that are missing, and the options that make them."""
    if site.runbook_url is None:
        typer.echo("no links to runbooks: add them with --exporter-url or --runbook-url", err=True)
    if to_dashboards and site.grafana_url is None:
        typer.echo("no links to dashboards: add them with --grafana-url", err=True)
