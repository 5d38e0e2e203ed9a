"""`quotascope status`: one look at the cluster, in the terminal."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import typer

from . import options
from .grouping import grouped
from .settings import SourceOptions

if TYPE_CHECKING:
    from quotascope.exporter.config import Config
    from quotascope.exporter.snapshot import Snapshot

EXAMPLES = """
Examples:

quotascope status --config /etc/quotascope.yaml

quotascope status --source http://broker-1:8778/jolokia --bootstrap-servers broker-1:9092 --top 20

quotascope status --bootstrap-servers broker-1:9092 --discover 'http://{host}:8778/jolokia'

Exit code 0: all sources and the limits could be read. 1: something could not.
"""


@grouped
def status(
    *,
    read: SourceOptions,
    top: options.Top = 10,
) -> None:
    """Read the brokers once: how they are, what limits there are, and who is throttled or close to it."""
    from rich.console import Console

    from quotascope.exporter.diagnosis import Severity, diagnose

    from .status_view import view

    settings = read.configuration(log_level="error")
    snapshot = asyncio.run(read_once(settings))
    findings = diagnose(snapshot)
    Console().print(view(snapshot, findings, top))
    if any(finding.severity is Severity.ERROR for finding in findings):
        raise typer.Exit(1)


async def read_once(config: Config) -> Snapshot:
    """One collection, without serving it. Raises ``ConfigError`` and ``ClientError``."""
    from quotascope.exporter.logs import configure_logs

    from .compose import build_collection

    configure_logs(config.log)
    async with build_collection(config) as collection:
        return await collection.snapshot(config.collection.timeout_seconds)
