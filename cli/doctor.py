"""`quotascope doctor`: tries everything once, and says what to do."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer

from . import options
from .grouping import grouped
from .settings import SourceOptions

if TYPE_CHECKING:
    from quotascope.exporter.config import Config
    from quotascope.exporter.doctor import Result

EXAMPLES = """
Examples:

quotascope doctor --config /etc/quotascope.yaml

quotascope doctor --bootstrap-servers broker-1:9092 --discover 'http://{host}:9404/metrics' --scrape-interval 30s

quotascope doctor --config /etc/quotascope.yaml --json | jq '.results[] | select(.verdict == "broken")'

Exit code 0: everything works. 1: something shows less than it could, or not for long. 2: something does not work.
"""

_CODES: Final = {"fine": 0, "note": 0, "look": 1, "broken": 2}


@grouped
def doctor(
    *,
    read: SourceOptions,
    scrape_interval: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="How often Prometheus scrapes the exporter, such as 15s; compared with the brokers' windows.",
        ),
    ] = None,
    timeout: Annotated[
        str, typer.Option(metavar="TIME", help="Longest time of each check.")
    ] = "30s",
    json: options.Json = False,
) -> None:
    """Try everything that a configuration says, once: agents, Kafka, permissions, clocks, certificates; and say what to do."""
    from quotascope.exporter.config import seconds_of
    from quotascope.exporter.doctor import worst
    from quotascope.exporter.errors import ConfigError

    from .doctor_view import broken_configuration, show

    try:
        limit = seconds_of(timeout, "--timeout")
        every = scrape_interval and seconds_of(scrape_interval, "--scrape-interval")
        settings = read.configuration(log_level="error")
        results = asyncio.run(examined(settings, limit, every or None))
    except ConfigError as error:
        results = broken_configuration(error)
    show(results, as_json=json)
    raise typer.Exit(_CODES[worst(results)])


async def examined(
    config: Config, seconds: float, scraped_every_seconds: float | None
) -> Sequence[Result]:
    """The results of all checks, each of which may take so many seconds; what is waited for shows on a terminal."""
    from quotascope.exporter.doctor import Evidence, checks_of, examine
    from quotascope.exporter.logs import configure_logs

    from .compose import admin_of
    from .progress import waiting

    configure_logs(config.log)
    evidence = Evidence(config, admin_of)
    checks = checks_of(evidence, os.environ, scraped_every_seconds)
    try:
        with waiting() as told:
            return await examine(checks, seconds, told)
    finally:
        await evidence.close()
