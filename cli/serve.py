"""`quotascope serve`: the exporter."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from . import options
from .grouping import grouped
from .settings import SourceOptions

if TYPE_CHECKING:
    from quotascope.exporter.app import Exporter, Reloader
    from quotascope.exporter.config import Config

EXAMPLES = """
Examples:

quotascope serve --config /etc/quotascope.yaml

quotascope serve --source http://broker-1:8778/jolokia --bootstrap-servers broker-1:9092

quotascope serve --bootstrap-servers broker-1:9092 --discover 'http://{host}:8778/jolokia' --sample-every 5s

quotascope serve --discover 'http://{host}:9404/metrics' --bootstrap-servers broker-1:9093 --security-protocol SASL_SSL --sasl-username me --sasl-password-file pw

quotascope serve --source jmx_exporter:1=http://broker-1:9404/metrics --port 9750 --log-format json

quotascope serve --config /etc/quotascope.yaml --max-entities 2000 --exclude-client-id 'console-.*' --detail-above 0.5 --idle-after 15m

quotascope serve --config /etc/quotascope.yaml --web.config.file /etc/quotascope/web.yaml

quotascope serve --config /etc/quotascope.yaml --otlp-endpoint https://collector:4317 --otlp-protocol grpc
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """The options of the exporter beside those of its sources."""

    cluster: options.Cluster = None
    sample_every: options.SampleEvery = None
    address: options.Address = None
    port: options.Port = None
    web_config_file: options.WebConfigFile = None
    max_entities: options.MaxEntities = None
    include_user: options.IncludeUsers = None
    exclude_user: options.ExcludeUsers = None
    include_client_id: options.IncludeClientIds = None
    exclude_client_id: options.ExcludeClientIds = None
    detail_above: options.DetailAbove = None
    idle_after: options.IdleAfter = None
    otlp_endpoint: options.OtlpEndpoint = None
    otlp_protocol: options.OtlpProtocol = None
    log_format: options.LogFormat = None
    log_level: options.LogLevel = None


@grouped
def serve(*, read: SourceOptions, serving: Serving) -> None:
    """Read the brokers and serve their quotas to Prometheus, until SIGTERM or Ctrl-C. SIGHUP reads the configuration again."""
    from quotascope.exporter.logs import configure_logs
    from quotascope.exporter.process import (
        collect_garbage_rarely,
        share_arenas,
        spare_threads,
    )

    spare_threads()
    from .compose import build_exporter

    settings = read.configuration(**asdict(serving))
    collect_garbage_rarely()
    share_arenas()
    configure_logs(settings.log)
    asyncio.run(
        run_until_signal(*build_exporter(settings, lambda: _read_again(read, serving)))
    )


def _read_again(read: SourceOptions, serving: Serving) -> Config:
    """The configuration from file, environment and flags as they are now."""
    from quotascope.exporter.errors import ConfigError
    from quotascope.quotas import STDIN, named

    if read.config == STDIN:
        raise ConfigError(named(STDIN), ["cannot be read a second time: use a file"])
    return read.configuration(**asdict(serving))


async def run_until_signal(
    exporter: Exporter, reloader: Reloader | None = None
) -> None:
    """
    Run until SIGTERM or SIGINT; requests under way are answered first. A second signal ends at once.

    SIGHUP reads the configuration again.
    """
    import structlog

    from quotascope.exporter.process import READY, STOPPING, notify

    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if reloader is not None:  # before it listens: who starts it may send this at once
        loop.add_signal_handler(signal.SIGHUP, reloader.want)
    async with exporter, _reloading(exporter, reloader):
        notify(READY)
        await stop.wait()
        notify(STOPPING)
        structlog.get_logger().info("stopping: requests under way are answered first")
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)


@asynccontextmanager
async def _reloading(
    exporter: Exporter, reloader: Reloader | None
) -> AsyncIterator[None]:
    """Reload when that is wanted, until the end begins."""
    if reloader is None:
        yield
        return
    task = asyncio.create_task(reloader.run(exporter))
    try:
        yield
    finally:
        async with reloader.between:  # half a switch would leave connections open
            task.cancel()
