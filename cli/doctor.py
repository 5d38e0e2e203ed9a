"""`quotascope doctor`: a check of everything, with advice."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Final

import typer

from . import options, outputs
from .options import grouped
from .settings import SourceOptions

if TYPE_CHECKING:
    from quotascope.exporter.config import Config
    from quotascope.exporter.diagnosis.catalog import Finding

EXAMPLES = """
Examples:

quotascope doctor --config /etc/quotascope.yaml

quotascope doctor --bootstrap-servers broker-1:9092 --discover 'http://{host}:9404/metrics' --scrape-interval 30s

quotascope doctor --config /etc/quotascope.yaml --json | jq '.findings[] | select(.severity == "error")'

Exit code 0: everything works. 1: it works, but shows less than it could, or will stop working soon. 2: something does \
not work.
"""

_CODES: Final = {"ok": 0, "note": 0, "warning": 1, "error": 2}


@grouped
def doctor(
    *,
    sources: SourceOptions,
    scrape_interval: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="How often Prometheus scrapes the exporter, such as 15s; compared with the brokers' windows.",
        ),
    ] = None,
    timeout: Annotated[str, typer.Option(metavar="TIME", help="Longest time of each check.")] = "30s",
    json: options.Json = False,
) -> None:
    """Try everything in a configuration once: agents, Kafka, permissions, clocks, certificates; print what to do."""
    import asyncio

    from rich.console import Console

    from quotascope.exporter.config import seconds_of
    from quotascope.exporter.diagnosis.catalog import worst
    from quotascope.exporter.errors import ConfigError

    from .doctor_view import as_json, as_table, commands, configuration_findings, with_connection

    try:
        limit = seconds_of(timeout, "--timeout")
        interval = seconds_of(scrape_interval, "--scrape-interval") if scrape_interval else None
        settings = sources.configuration(log_level="error")
        findings = asyncio.run(run_checks(settings, limit, interval))
    except ConfigError as error:
        findings = configuration_findings(error)
    findings = with_connection(findings, sources.connection)
    if json:
        outputs.put_json(as_json(findings))
    else:
        Console().print(as_table(findings))
        for line in commands(findings):
            typer.echo(line)
    raise typer.Exit(_CODES[worst(findings)])


async def run_checks(config: Config, seconds: float, scraped_every_seconds: float | None) -> Sequence[Finding]:
    """Return the findings of all checks, each of which may take `seconds`; a terminal shows checks that still run."""
    from quotascope.exporter.diagnosis.doctor import Evidence, checks_of, examine
    from quotascope.exporter.logs import configure_logs
    from quotascope.metrics.catalog.thresholds import SharedThresholds

    from .compose import admin_of, alert_terms

    configure_logs(config.log)
    thresholds = alert_terms(config.alerts_config).thresholds if config.alerts_config else SharedThresholds()
    evidence = Evidence(config, admin_of, thresholds=thresholds)
    checks = checks_of(evidence, os.environ, scraped_every_seconds)
    try:
        with show_running_checks() as progress:
            return await examine(checks, seconds, progress)
    finally:
        await evidence.close()


@contextmanager
def show_running_checks() -> Iterator[Callable[[Sequence[str]], None]]:
    """Show the names of running checks on standard error until the block ends, if it is a terminal."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    with console.status("waiting") as status:
        yield lambda names: status.update(f"waiting for {', '.join(names) or 'nothing'}")
