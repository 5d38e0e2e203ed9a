"""`quotascope serve`: the exporter."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

from . import options

if TYPE_CHECKING:
    from quotascope.exporter.service import Exporter

EXAMPLES = """
Examples:

quotascope serve --config /etc/quotascope.yaml

quotascope serve --source http://broker-1:8778/jolokia --bootstrap-servers broker-1:9092

quotascope serve --bootstrap-servers broker-1:9092 --discover 'http://{host}:8778/jolokia' --sample-every 5s

quotascope serve --discover 'http://{host}:9404/metrics' --bootstrap-servers broker-1:9093 --security-protocol SASL_SSL --sasl-username me --sasl-password-file pw

quotascope serve --source jmx_exporter:1=http://broker-1:9404/metrics --port 9750 --log-format json

quotascope serve --config /etc/quotascope.yaml --max-entities 2000 --exclude-client-id 'console-.*' --detail-above 0.5 --idle-after 15m

quotascope serve --config /etc/quotascope.yaml --otlp-endpoint https://collector:4317 --otlp-protocol grpc
"""


def serve(
    *,
    config: options.ConfigFile = None,
    source: options.Sources = None,
    discover: options.Discover = None,
    targets: options.Targets = None,
    bootstrap_servers: options.BootstrapServers = None,
    security_protocol: options.Protocol = None,
    sasl_mechanism: options.Mechanism = None,
    sasl_username: options.Username = None,
    sasl_password_file: options.PasswordFile = None,
    ca_file: options.CaFile = None,
    cluster: options.Cluster = None,
    sample_every: options.SampleEvery = None,
    address: options.Address = None,
    port: options.Port = None,
    max_entities: options.MaxEntities = None,
    include_user: options.IncludeUsers = None,
    exclude_user: options.ExcludeUsers = None,
    include_client_id: options.IncludeClientIds = None,
    exclude_client_id: options.ExcludeClientIds = None,
    detail_above: options.DetailAbove = None,
    idle_after: options.IdleAfter = None,
    otlp_endpoint: options.OtlpEndpoint = None,
    otlp_protocol: options.OtlpProtocol = None,
    log_format: options.LogFormat = None,
    log_level: options.LogLevel = None,
) -> None:
    """Read the brokers and serve their quotas to Prometheus, until SIGTERM or Ctrl-C."""
    from quotascope.exporter.garbage import search_rarely
    from quotascope.exporter.logs import configure_logs

    from .compose import build_exporter

    settings = options.configuration(
        config,
        source,
        discover,
        targets=targets,
        sample_every=sample_every,
        bootstrap_servers=bootstrap_servers,
        security_protocol=security_protocol,
        sasl_mechanism=sasl_mechanism,
        sasl_username=sasl_username,
        sasl_password_file=sasl_password_file,
        ca_file=ca_file,
        cluster=cluster,
        address=address,
        port=port,
        max_entities=max_entities,
        include_user=include_user,
        exclude_user=exclude_user,
        include_client_id=include_client_id,
        exclude_client_id=exclude_client_id,
        detail_above=detail_above,
        idle_after=idle_after,
        otlp_endpoint=otlp_endpoint,
        otlp_protocol=otlp_protocol,
        log_format=log_format,
        log_level=log_level,
    )
    search_rarely()
    configure_logs(settings.log)
    exporter = build_exporter(settings)
    asyncio.run(run_until_signal(exporter))


async def run_until_signal(exporter: Exporter) -> None:
    """Run until SIGTERM or SIGINT; requests under way are answered first. A second signal ends at once."""
    import structlog

    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with exporter:
        await stop.wait()
        structlog.get_logger().info("stopping: requests under way are answered first")
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
