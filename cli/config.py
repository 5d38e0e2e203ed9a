"""`quotascope config`: check a configuration without running anything."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from . import options, outputs
from .app import App
from .settings import configuration

if TYPE_CHECKING:
    from quotascope.exporter.config import Config
    from quotascope.exporter.diagnosis.catalog import Finding

_LONGEST_SECONDS: Final = 5.0
"""Longest time to read files of targets, as reads from a network file system that hangs never end."""
config = App("config", "Check a configuration, or print the reference.")


@config.command(
    epilog=(
        "Examples:\n\nquotascope config check /etc/quotascope.yaml\n\nquotascope config example | quotascope config "
        "check - --json"
    )
)
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="YAML file; - is standard input.")],
    *,
    json: options.Json = False,
) -> None:
    """
    Report all mistakes in a configuration, and files of targets that cannot be read now, without any connection.

    Exit code 0: it can be used, as far as this is known without a connection. 1: it cannot.
    """
    from quotascope.exporter.errors import ConfigError
    from quotascope.exporter.untrusted import one_line
    from quotascope.quotas import named

    from .doctor_view import as_json, configuration_findings

    try:
        settings = _checked(file)
    except ConfigError as error:
        if not json:
            raise
        outputs.put_json(as_json(configuration_findings(error)))
        raise typer.Exit(1) from None
    findings = _target_findings(settings)
    if json:
        outputs.put_json(as_json(findings))
        return
    count = len(settings.sources)
    discovered = ", and those that are found" if settings.finds_nodes else ""
    typer.echo(f"{named(file)}: fine, {count} source{'' if count == 1 else 's'}{discovered}")
    for finding in findings:
        typer.echo(f"quotascope: {finding.severity}: {one_line(finding.text)}. {finding.advice}", err=True)


def _target_findings(settings: Config) -> list[Finding]:
    """Return problems of files with targets. The exporter only logs them, as the files may be written later."""
    import asyncio

    from quotascope.exporter.diagnosis.catalog import Catalog
    from quotascope.exporter.discovery.files import FileFinder

    files = settings.discovery.file_sd
    if files is None:
        return []

    async def problem_of_files() -> str | None:
        try:
            async with asyncio.timeout(_LONGEST_SECONDS):
                return (await FileFinder(files).find()).problem
        except TimeoutError:
            return (
                f"a file is not read to its end after {_LONGEST_SECONDS:.0f} s: is it on a network file system that "
                "hangs?"
            )

    problem = asyncio.run(problem_of_files())
    seconds = files.refresh_interval_seconds
    return [] if problem is None else [Catalog.TARGETS_MISSING.found("file_sd", problem=problem, seconds=seconds)]


def _checked(file: Path) -> Config:
    """Return the configuration in a file. Raises ``ConfigError``, also for problems that the exporter's parts find."""
    from quotascope.exporter.errors import ConfigError
    from quotascope.quotas import named

    from .compose import build_exporter

    settings = configuration(file)
    try:
        build_exporter(settings)
    except ConfigError as error:
        subject = named(file) if error.subject == "configuration" else f"{named(file)}: {error.subject}"
        raise ConfigError(subject, error.problems) from None
    return settings


@config.command(epilog="Examples:\n\nquotascope config example > /etc/quotascope.yaml")
def example() -> None:
    """Print the reference configuration: every key with its default and what it means."""
    from quotascope.exporter.config.reference import reference

    typer.echo(reference(), nl=False)
