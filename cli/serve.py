"""`quotascope serve`: the exporter."""

from __future__ import annotations

import signal
import sys
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from . import options
from .options import grouped
from .settings import SourceOptions

if TYPE_CHECKING:
    from quotascope.exporter.app import Exporter, Reloader
    from quotascope.exporter.config import Config

EXAMPLES = """
Examples:

quotascope serve --config /etc/quotascope.yaml

quotascope serve --source http://broker-1:8778/jolokia --bootstrap-servers broker-1:9092

quotascope serve --bootstrap-servers broker-1:9092 --discover 'http://{host}:8778/jolokia' --sample-every 5s

quotascope serve --discover 'http://{host}:9404/metrics' --bootstrap-servers broker-1:9093 --security-protocol \
SASL_SSL --sasl-username me --sasl-password-file pw

quotascope serve --source jmx_exporter:1=http://broker-1:9404/metrics --port 9750 --log-format json

quotascope serve --config /etc/quotascope.yaml --max-entities 2000 --exclude-client-id 'console-.*' --detail-above \
0.5 --idle-after 15m

quotascope serve --config /etc/quotascope.yaml --web.listen-address :9750 --web.config.file /etc/quotascope/web.yaml

quotascope serve --config /etc/quotascope.yaml --shadow candidates.yaml

quotascope serve --config /etc/quotascope.yaml --otlp-endpoint https://collector:4317 --otlp-protocol grpc
"""

_series_option = partial(typer.Option, rich_help_panel="Which series")
_LOGGING = "Log"
_LAST_LINES_SECONDS = 2.0
"""Longest wait at the end for a log whose reader is stuck."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """Options of the exporter beside those of its sources."""

    cluster: Annotated[
        str | None, options.serving_option(metavar="NAME", help="Adds the label `cluster` to every series.")
    ] = None
    sample_every: Annotated[
        str | None,
        options.reading_option(
            metavar="TIME", help="Read the brokers between scrapes as well, such as 5s, and show the maxima."
        ),
    ] = None
    address: Annotated[
        str | None, options.serving_option(metavar="ADDRESS", help="Address to listen on (0.0.0.0).")
    ] = None
    port: Annotated[int | None, options.PORT] = None
    web_listen_address: Annotated[
        list[str] | None,
        options.serving_option(
            "--web.listen-address",
            metavar="ADDRESS",
            help=(
                "Address and port to listen on, instead of --address and --port, as in all exporters of Prometheus: "
                ":9749 or [::1]:9749; may be repeated."
            ),
        ),
    ] = None
    web_config_file: Annotated[
        str | None,
        options.serving_option(
            "--web.config.file",
            metavar="FILE",
            help="TLS, users and headers, in the web config format of Prometheus exporters (documentation: Security).",
        ),
    ] = None
    max_entities: Annotated[
        int | None,
        _series_option(
            metavar="N",
            help=(
                "Most pairs of user and client-id shown for each quota type (10000); the others are shown as one, "
                "__overflow__."
            ),
        ),
    ] = None
    include_user: Annotated[
        list[str] | None,
        _series_option(metavar="RE2", help="Show only users whose whole name matches; may be repeated."),
    ] = None
    exclude_user: Annotated[
        list[str] | None,
        _series_option(metavar="RE2", help="Do not show users whose whole name matches; may be repeated."),
    ] = None
    include_client_id: Annotated[
        list[str] | None,
        _series_option(metavar="RE2", help="Show only client-ids that match as a whole; may be repeated."),
    ] = None
    exclude_client_id: Annotated[
        list[str] | None,
        _series_option(metavar="RE2", help="Do not show client-ids that match as a whole; may be repeated."),
    ] = None
    detail_above: Annotated[
        float | None,
        _series_option(
            metavar="RATIO",
            help=(
                "Show utilization, rule and cause only of entities that are throttled or above this utilization, "
                "such as 0.5."
            ),
        ),
    ] = None
    idle_after: Annotated[
        str | None,
        _series_option(metavar="TIME", help="Leave out entities without traffic for this time, such as 15m."),
    ] = None
    shadow: Annotated[
        str | None,
        options.SHADOW,
    ] = None
    teams: Annotated[str | None, options.TEAMS] = None
    otlp_endpoint: Annotated[str | None, options.OTLP_ENDPOINT] = None
    otlp_protocol: Annotated[
        str | None,
        typer.Option(metavar="PROTOCOL", help="http/protobuf (default) or grpc.", rich_help_panel=options.PUSHING),
    ] = None
    log_format: Annotated[
        str | None, typer.Option(metavar="FORMAT", help="auto, human, logfmt or json.", rich_help_panel=_LOGGING)
    ] = None
    log_level: Annotated[
        str | None, typer.Option(metavar="LEVEL", help="debug, info, warning or error.", rich_help_panel=_LOGGING)
    ] = None


@grouped
def serve(*, sources: SourceOptions, serving: Serving) -> None:
    """
    Read the brokers and serve their quotas to Prometheus, until SIGTERM or Ctrl-C.

    SIGHUP reads the configuration again.
    """
    import asyncio

    from quotascope.exporter.errors import ConfigError
    from quotascope.exporter.logs import LogWriter, configure_logs
    from quotascope.exporter.process import collect_garbage_rarely, share_arenas, spare_threads

    spare_threads()  # before the imports below, which import NumPy
    from quotascope.quotas import STDIN, named

    from .compose import build_exporter

    settings = sources.configuration(**asdict(serving))
    collect_garbage_rarely()
    share_arenas()
    log = LogWriter(sys.stderr)
    configure_logs(settings.log, log)

    def read_again() -> Config:
        if sources.config == STDIN:
            problem = "cannot be read a second time: use a file"
            raise ConfigError(named(STDIN), [problem])
        return sources.configuration(**asdict(serving))

    try:
        asyncio.run(run_until_signal(*build_exporter(settings, read_again, log)))
    finally:
        log.close(_LAST_LINES_SECONDS)


async def run_until_signal(exporter: Exporter, reloader: Reloader) -> None:
    """
    Run until SIGTERM or SIGINT; requests under way are answered first. A second signal ends at once.

    SIGHUP reads the configuration again.
    """
    import asyncio

    import structlog

    from quotascope.exporter.process import READY, STOPPING, notify, report_alive

    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    # set before it listens, since a signal may come at once
    loop.add_signal_handler(signal.SIGHUP, reloader.want)
    async with exporter:
        reloads = asyncio.create_task(reloader.run(exporter))
        alive = asyncio.create_task(report_alive())
        try:
            notify(READY)
            await stop.wait()
            notify(STOPPING)
            structlog.get_logger().info("stopping: requests under way are answered first")
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)
        finally:
            async with reloader.between:  # a switch that stops halfway would leave connections open
                reloads.cancel()
            alive.cancel()
