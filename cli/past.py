"""Queries a Prometheus server about the past, and declares its options."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from . import options, outputs
from .opened import OpenPast, with_limits
from .too_large import is_too_large

if TYPE_CHECKING:
    from quotascope.exporter.config import Config, PrometheusConfig
    from quotascope.exporter.sources.prometheus_api import PrometheusApi
    from quotascope.exporter.sources.prometheus_history import Inventory
    from quotascope.exporter.sources.prometheus_limits import ExporterLimits
    from quotascope.pipeline.prometheus.past import Answer, Check, Labels, Server

PASSWORD_VARIABLE: Final = "QUOTASCOPE_PROMETHEUS_PASSWORD"  # noqa: S105 - a name
DAYS: Final = 14.0
"""Length of the past that is asked about unless another is given: two of each hour of the week."""
_PANEL: Final = "The Prometheus that has the past"
_option = partial(typer.Option, rich_help_panel=_PANEL)
_TIMEOUT_S: Final = 180.0
_MOST_NAMED: Final = 5
"""Most sources that a message names."""
_HOUR_S: Final = 3_600


@dataclass(frozen=True, slots=True, kw_only=True)
class PrometheusServer:
    """
    A Prometheus server, the login for it, and its series of one cluster.

    With ``--config``, login and series may come from the entry with this address under `sources`.
    """

    prometheus: Annotated[str | None, options.PROMETHEUS] = None
    prometheus_user: Annotated[str | None, _option(metavar="NAME", help="User name for Prometheus.")] = None
    prometheus_password_file: Annotated[
        Path | None, _option(metavar="FILE", help=f"File with its password. It can also be in {PASSWORD_VARIABLE}.")
    ] = None
    prometheus_header: Annotated[
        list[str] | None,
        _option(metavar="NAME=VALUE", help="Header to send, such as X-Scope-OrgID=kafka; may be repeated."),
    ] = None
    prometheus_header_file: Annotated[
        list[str] | None,
        _option(
            metavar="NAME=FILE",
            help="Header with a value from a file, such as Authorization=/run/secrets/bearer; may be repeated.",
        ),
    ] = None
    prometheus_ca_file: Annotated[
        Path | None,
        _option(metavar="FILE", help="PEM file of the authorities to trust for Prometheus; else the system's."),
    ] = None
    prometheus_cert_file: Annotated[
        Path | None, _option(metavar="FILE", help="PEM file with the client certificate for Prometheus.")
    ] = None
    prometheus_key_file: Annotated[
        Path | None,
        _option(metavar="FILE", help="PEM file with the key of that certificate, when it is not in the same file."),
    ] = None
    selector: Annotated[
        str | None, _option(metavar="MATCHERS", help="Matchers of the series of one cluster: '{job=\"kafka\"}'.")
    ] = None
    instance_label: Annotated[
        str | None, _option(metavar="LABEL", help="Label that tells nodes apart.", show_default="instance")
    ] = None

    def __post_init__(self) -> None:
        """Raise ``typer.BadParameter`` for options without a server, and for those that contradict each other."""
        options.check_not_without(self, "prometheus")
        if self.prometheus_user is None and self.prometheus_password_file is not None:
            raise typer.BadParameter("needs --prometheus-user", param_hint="--prometheus-password-file")
        if self.prometheus_key_file is not None and self.prometheus_cert_file is None:
            raise typer.BadParameter("needs --prometheus-cert-file", param_hint="--prometheus-key-file")

    def check(self, **others: str | None) -> bool:
        """
        Check that there is exactly one input, and return whether it is a Prometheus.

        Args:
            others: other inputs of the command, by the names of their arguments or options in Python; None if missing.

        Raises:
            typer.BadParameter: there is no input, or more than one.

        """
        if sum(value is not None for value in (self.prometheus, *others.values())) != 1:
            problem = "give one of them" if others else "is needed"
            raise typer.BadParameter(problem, param_hint=_input_names(*others, "prometheus"))
        return self.prometheus is not None

    def config(self, settings: Config) -> PrometheusConfig:
        """
        Return the server's configuration, from these options and a source of this address in the file.

        Args:
            settings: the configuration, which may have a login for the server.

        Raises ``ConfigError``, and ``typer.BadParameter`` for options that contradict each other or the file.

        """
        from quotascope.exporter.config import PrometheusSourceConfig

        login = self._login()
        chosen = {
            **_without_missing(
                url=self.prometheus, selector=self.selector, instance_label=self.instance_label, **login
            ),
            "timeout_seconds": _TIMEOUT_S,
        }
        config = _server_config(chosen)
        sources = [
            source.prometheus
            for source in settings.sources
            if isinstance(source, PrometheusSourceConfig) and _is_same_url(source.prometheus.url, self.prometheus)
        ]
        if login:
            self._refuse_second_login(sources)
        if sources:
            source = _source_for(sources, None if self.selector is None else config.selector)
            config = _server_config({**source.model_dump(exclude_unset=True), **chosen})
        self._check_variable(config)
        return config

    def _refuse_second_login(self, sources: Iterable[PrometheusConfig]) -> None:
        """Raise ``typer.BadParameter`` if a source of the configuration has a login beside that of these options."""
        for source in sources:
            if keys := [name for name in _LOGIN if name in source.model_fields_set]:
                flags = [flag for flag in options.used_flags(self) if flag.startswith("--prometheus-")]
                raise typer.BadParameter(
                    f"the configuration has {', '.join(keys)} for this server, too (source {source.label[:60]!r}): "
                    "give one of them",
                    param_hint=", ".join(["--config", *flags]),
                )

    def _login(self) -> dict[str, Any]:
        """Return the login in these options, as the configuration has it; empty without one."""
        by_flag = {
            flag: options.named_values(texts, flag, form)
            for flag, texts, form in (
                ("--prometheus-header", self.prometheus_header, "NAME=VALUE"),
                ("--prometheus-header-file", self.prometheus_header_file, "NAME=FILE"),
            )
        }
        headers, files = by_flag.values()
        for name in headers:
            if name.lower() in map(str.lower, files):
                problem = f"{name[:60]!r} is in both: give one of them"
                raise typer.BadParameter(problem, param_hint=", ".join(by_flag))
        basic_auth = self._basic_auth()
        for flag, values in by_flag.items():
            if basic_auth and "authorization" in map(str.lower, values):
                problem = "the header Authorization is a login, too: give one of them"
                raise typer.BadParameter(problem, param_hint=f"--prometheus-user, {flag}")
        tls = _without_missing(
            ca_file=self.prometheus_ca_file, cert_file=self.prometheus_cert_file, key_file=self.prometheus_key_file
        )
        return _without_missing(basic_auth=basic_auth, headers=headers, header_files=files, tls=tls)

    def _basic_auth(self) -> dict[str, Any]:
        """Return user name and password, as the configuration has them; empty without a user."""
        if self.prometheus_user is None:
            return {}
        if self.prometheus_password_file is not None:
            return _without_missing(username=self.prometheus_user, password_file=self.prometheus_password_file)
        password = os.environ.get(PASSWORD_VARIABLE)
        if not password:
            problem = f"needs --prometheus-password-file or {PASSWORD_VARIABLE}"
            raise typer.BadParameter(problem, param_hint="--prometheus-user")
        return _without_missing(username=self.prometheus_user, password=password)

    def _check_variable(self, config: PrometheusConfig) -> None:
        """Raise ``typer.BadParameter`` if a password is in the environment and the server would see no login."""
        names = map(str.lower, (*config.headers, *config.header_files))
        has_login = config.basic_auth or "authorization" in names or (config.tls and config.tls.cert_file)
        if os.environ.get(PASSWORD_VARIABLE) and not has_login:
            raise typer.BadParameter("needs --prometheus-user, or has to be unset", param_hint=PASSWORD_VARIABLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrometheusPast(PrometheusServer):
    """A Prometheus server, and the part of its past that is asked about."""

    days: Annotated[
        float | None,
        _option(min=0.05, max=3_660, metavar="N", help="Length of the past.", show_default=f"{DAYS:g}"),
    ] = None
    series: Annotated[
        str | None,
        _option(
            metavar="auto|agents|exporter",
            help="Series of the brokers' agents, or of an exporter of quotascope; auto takes the exporter's if any.",
            show_default="auto",
        ),
    ] = None

    def __post_init__(self) -> None:
        """Raise ``typer.BadParameter`` as for a server, and for unknown values."""
        PrometheusServer.__post_init__(self)
        self._check_series()

    def _check_series(self) -> None:
        """Raise ``typer.BadParameter`` for an unknown value of --series."""
        if self.series not in {None, "auto", "agents", "exporter"}:
            raise typer.BadParameter("is one of auto, agents, exporter", param_hint="--series")

    @property
    def by_exporter(self) -> bool | None:
        """True for series of a quotascope exporter, False for series of agents, None for the exporter's if any."""
        return {"agents": False, "exporter": True}.get(self.series or "auto")


@dataclass(frozen=True, slots=True, kw_only=True)
class PrometheusOptions(PrometheusPast):
    """A Prometheus server, or a table of its samples, and the part of its past that is asked about."""

    samples: Annotated[
        str | None,
        _option(
            metavar="TABLE",
            help="Read a table of samples that ingest-prometheus has made, instead of asking the server.",
        ),
    ] = None
    samples_engine: Annotated[
        str | None,
        _option(
            metavar="auto|local|spark",
            help="What reads that table; auto takes Spark under spark-submit, and for large ones.",
            show_default="auto",
        ),
    ] = None

    def __post_init__(self) -> None:
        """Raise ``typer.BadParameter`` as for a server, for options that a table has no use for, and unknown values."""
        if self.samples is None:
            PrometheusServer.__post_init__(self)
        elif flags := set(options.used_flags(self, "samples")) - set(_TABLE_OPTIONS):
            problem = "asks a server, and the table of --samples needs none: leave one of them out"
            raise typer.BadParameter(problem, param_hint=", ".join(sorted(flags)))
        if self.samples_engine is not None and self.samples is None:
            raise typer.BadParameter("has no effect without --samples", param_hint="--samples-engine")
        if self.samples_engine not in {None, "auto", "local", "spark"}:
            raise typer.BadParameter("is one of auto, local, spark", param_hint="--samples-engine")
        self._check_series()

    def check(self, **others: str | None) -> bool:
        """
        Check that there is exactly one input, and return whether it is a server or a table of samples.

        Arguments and errors are those of `PrometheusServer.check`.
        """
        has_other = any(value is not None for value in (self.prometheus, *others.values()))
        if self.samples is None and has_other:
            return PrometheusServer.check(self, **others)
        if self.samples is None or has_other:
            raise typer.BadParameter("give one of them", param_hint=_input_names(*others, "prometheus", "samples"))
        return True


_TABLE_OPTIONS: Final = ("--days", "--series", "--samples-engine")
"""Options that a table of samples has, too."""
_LOGIN: Final = ("basic_auth", "headers", "header_files", "tls")
"""Keys of a source that say how to log in."""


def _input_names(*names: str) -> str:
    """Return the names of inputs as the command line has them: FOLDER is an argument, the others are options."""
    return ", ".join(name.upper() if name == "folder" else f"--{name}" for name in names)


def _without_missing(**values: object) -> dict[str, Any]:
    """Return the values that are neither None nor empty, with paths as texts."""
    return {
        name: str(value) if isinstance(value, Path) else value
        for name, value in values.items()
        if value is not None and value != {}
    }


def _is_same_url(url: str, other: str | None) -> bool:
    """Return whether two addresses are the same, but for slashes at the end."""
    return other is not None and url.rstrip("/") == other.rstrip("/")


def default_config() -> PrometheusConfig:
    """Return the default configuration of a server."""
    return _server_config({"url": "http://prometheus:9090"})


def _server_config(entry: dict[str, Any]) -> PrometheusConfig:
    """Return the configuration of a server from its keys and values. Raises ``ConfigError``."""
    from quotascope.exporter.config import Override, PrometheusSourceConfig, load_config

    override = Override(place=("sources",), value=[{"prometheus": entry}], origin="--prometheus")
    (source,) = load_config(None, {}, [override]).sources
    if not isinstance(source, PrometheusSourceConfig):
        raise TypeError(source)
    return source.prometheus


def _source_for(sources: Sequence[PrometheusConfig], selector: str | None) -> PrometheusConfig:
    """
    Return the one source that the options mean, of all sources with the same address.

    If there are several, it is the one with the selector on the command line. If none has that selector, they may
    differ only in the settings that options replace. Raises ``typer.BadParameter``, which names them.
    """
    candidates = [source for source in sources if source.selector == selector] or sources
    # candidates that differ only in these fields are the same: a selector on the command line replaces theirs
    equalized = {"name": None} if selector is None else {"name": None, "selector": ""}
    first, *others = (source.model_copy(update=equalized) for source in candidates)
    if all(other == first for other in others):
        return candidates[0]
    names = [f"{source.label[:60]!r} (selector {source.selector[:200]!r})" for source in candidates[:_MOST_NAMED]]
    if len(candidates) > _MOST_NAMED:
        names.append(f"and {len(candidates) - _MOST_NAMED} more")
    all_selectors_differ = len({source.selector for source in candidates}) == len(candidates)
    advice = "give --selector with that of one of them" if all_selectors_differ else "leave one of them in the file"
    problem = f"the configuration has {len(candidates)} sources of this address, {', '.join(names)}: {advice}"
    raise typer.BadParameter(problem, param_hint="--prometheus, --config")


class _Server:
    """Sends queries to a server, one after the other."""

    def __init__(self, api: PrometheusApi, runner: asyncio.Runner, warnings: dict[str, None]) -> None:
        self._api, self._runner, self._warnings = api, runner, warnings

    def ask(self, promql: str, at: float) -> Sequence[Answer]:
        """Return the answer to a query. Raises `QueryTooLarge` and `QueryRefused`."""
        from quotascope.exporter.errors import SourceError
        from quotascope.pipeline.prometheus.past import Answer, QueryRefused, QueryTooLarge

        try:
            answer = self._runner.run(self._api.query(promql, at))
        except SourceError as error:
            kind = QueryTooLarge if is_too_large(error) else QueryRefused
            raise kind(f"Prometheus: {error}") from None
        self._warnings.update(dict.fromkeys(answer.warnings))
        return [
            Answer(series.labels, [(time, float(value)) for time, value in series.samples])
            for series in answer.series
            if series.samples
        ]


def check_exporters(config: PrometheusConfig) -> Check:
    """
    Return a function that raises `QueryRefused` for exporters of several clusters with the same label `cluster`.

    Its argument is the labels of each exporter.
    """
    from quotascope.exporter.errors import SourceUnreadable
    from quotascope.exporter.sources.prometheus_api import Series
    from quotascope.exporter.sources.prometheus_nodes import NodeSeries, refuse_clusters
    from quotascope.pipeline.prometheus.past import QueryRefused

    def check(exporters: Iterable[Labels]) -> None:
        nodes = [
            NodeSeries(instance=labels.get(config.instance_label, ""), series=[Series(labels=labels, samples=())])
            for labels in exporters
        ]
        try:
            refuse_clusters(nodes, config.selector, config.instance_label)
        except SourceUnreadable as error:
            raise QueryRefused(f"{config.label}: {error}") from None

    return check


@contextmanager
def open_server(prometheus: PrometheusServer, settings: Config) -> Iterator[Server]:
    """
    Yield a Prometheus server that answers queries.

    Raises ``ConfigError`` and `QueryRefused`; its warnings are printed on standard error at the end.
    """
    from quotascope.exporter.discovery.build import api_of

    config = prometheus.config(settings)
    api, _, _ = api_of(config)
    with asyncio.Runner() as runner, _warned() as warnings:
        try:
            _time_of(api, runner, config)
            yield _Server(api, runner, warnings)
        finally:
            runner.run(api.close())


def _time_of(api: PrometheusApi, runner: asyncio.Runner, config: PrometheusConfig) -> float:
    """Return the time of a server. Raises `QueryRefused`, also for VictoriaMetrics, which answers for other times."""
    from quotascope.exporter.errors import SourceError
    from quotascope.pipeline.prometheus.past import QueryRefused

    try:
        now = runner.run(api.now())
    except SourceError as error:
        raise QueryRefused(f"{config.label}: {error}") from None
    if api.is_victoria_metrics:
        raise QueryRefused(
            f"{config.label} is VictoriaMetrics, which evaluates subqueries at other times than Prometheus, so "
            "that hours would be taken for others: only its present values can be read (--source, sources). "
            "Ask a Prometheus that has the same samples"
        )
    return now


@contextmanager
def _warned() -> Iterator[dict[str, None]]:
    """Yield a place for the warnings of servers, and print them on standard error at the end."""
    warnings: dict[str, None] = {}
    try:
        yield warnings
    finally:
        for warning in warnings:
            typer.echo(f"Prometheus warns: {warning}", err=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """A server, and the series that it has of the clients of a cluster in a period of whole hours."""

    config: PrometheusConfig
    server: _Server
    stock: Inventory
    begin: float
    """Unix time in seconds: the first hour with samples."""
    end: float
    limits: Callable[[], ExporterLimits]
    """Function that reads the present limits, as quotascope exporters show them."""


@contextmanager
def open_survey(
    prometheus: PrometheusPast,
    settings: Config,
    span: tuple[float | None, float | None] = (None, None),
    *,
    settled_s: float = 0.0,
) -> Iterator[Survey]:
    """
    Yield a server and its series in a period.

    Arguments and errors are those of `open_past`; ``settled_s`` is the age in seconds at which an hour counts as full.
    """
    from quotascope.exporter.discovery.build import api_of
    from quotascope.exporter.errors import SourceError
    from quotascope.exporter.sources.prometheus_history import inventory
    from quotascope.exporter.sources.prometheus_limits import limits_of_exporters
    from quotascope.pipeline.prometheus.nodes import begin_of
    from quotascope.pipeline.prometheus.past import QueryRefused

    if prometheus.days is not None and span[0] is not None:
        raise typer.BadParameter("give one of them", param_hint="--days, --begin")
    config = prometheus.config(settings)
    api, grouping, forced = api_of(config)
    with asyncio.Runner() as runner, _warned() as warnings:
        server = _Server(api, runner, warnings)
        try:
            begin, end = _period(prometheus.days, _time_of(api, runner, config) - settled_s, *span)
            with outputs.bar("asking for the series"):
                stock = runner.run(
                    inventory(
                        api,
                        grouping,
                        config.selector,
                        (begin, end),
                        node_ids={instance: str(node) for instance, node in config.nodes.items()},
                        forced=forced,
                        by_exporter=prometheus.by_exporter,
                    )
                )
                begin = begin_of(server, stock.beat, begin, end)
            yield Survey(
                config=config,
                server=server,
                stock=stock,
                begin=begin,
                end=end,
                limits=lambda: runner.run(limits_of_exporters(api, config.selector, end, grouping.instance_label)),
            )
        except SourceError as error:
            raise QueryRefused(f"{config.label}: {error}") from None
        finally:
            runner.run(api.close())


@contextmanager
def open_past(
    prometheus: PrometheusOptions, settings: Config, span: tuple[float | None, float | None] = (None, None)
) -> Iterator[OpenPast]:
    """
    Yield the past of a cluster in a Prometheus server, up to its last full hour, or in a table of samples.

    Args:
        prometheus: the server, or the table.
        settings: the configuration, which may have a login for it.
        span: begin and end, Unix times in seconds; `--days` up to now for None.

    Raises:
        ConfigError: a login cannot be used.
        PipelineError: the server cannot be asked, or has no samples.

    """
    from quotascope.pipeline.prometheus.nodes import gaps_of, nodes_of
    from quotascope.pipeline.prometheus.past import Past

    if prometheus.samples is not None:
        from .samples import open_table

        if prometheus.days is not None and span[0] is not None:
            raise typer.BadParameter("give one of them", param_hint="--days, --begin")
        yield open_table(
            prometheus.samples,
            span,
            prometheus.days,
            by_exporter=prometheus.by_exporter,
            engine=prometheus.samples_engine or "auto",
        )
        return
    with open_survey(prometheus, settings, span) as survey:
        server, stock, begin, end = survey.server, survey.stock, survey.begin, survey.end
        with outputs.bar("counting scrapes"):
            nodes = nodes_of(server, stock.beat, begin, end)
        past = Past(
            server=server,
            address=survey.config.label,
            selector=survey.config.selector,
            begin=begin,
            end=end,
            series=stock.series,
            nodes=nodes,
            caveats=stock.caveats,
        )
        yield OpenPast(
            past=past,
            limits=lambda: with_limits(past, survey.limits() if stock.by_exporter else None),
            gaps=lambda: gaps_of(server, stock.beat, begin, end, past.step_s),
        )


def _period(days: float | None, now: float, begin: float | None, end: float | None) -> tuple[float, float]:
    """Return begin and end of a period of whole hours that is over by now; it is `days` long if it has no begin."""
    last_s = now if end is None else min(end, now)
    end_s = last_s // _HOUR_S * _HOUR_S
    if begin is None:
        hours = max(1, round(24 * (DAYS if days is None else days)))
        begin_s = end_s - hours * _HOUR_S
    else:
        begin_s = begin // _HOUR_S * _HOUR_S
    if begin_s >= end_s:
        raise typer.BadParameter("the period has no full hour", param_hint="--begin, --end")
    return float(begin_s), float(end_s)
