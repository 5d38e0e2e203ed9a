"""`quotascope ingest-prometheus`: a table of the samples of clients, of a server or of dumps of its blocks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from . import options, outputs, past
from .options import INTO, EngineName, Json, check_extra, grouped, span_of, zone_of
from .past import PrometheusPast
from .settings import ConfigFile, configuration

if TYPE_CHECKING:
    from quotascope.pipeline.prometheus.recording import IngestedSamples
    from quotascope.pipeline.runs.engine import EngineChoice

EXAMPLES = """
Examples:

quotascope ingest-prometheus --prometheus http://prometheus:9090 --selector '{job="kafka"}' --days 14 --into samples

quotascope ingest-prometheus --prometheus https://mimir:8080/prometheus --selector '{cluster="prod-eu"}' \
--prometheus-header X-Scope-OrgID=kafka --begin 2026-11-23 --end 2026-11-24 --into samples

quotascope ingest-prometheus november.txt.gz --into blocks

spark-submit --master yarn "$(quotascope spark submit-script)" ingest-prometheus --prometheus http://prometheus:9090 \
--selector '{job="kafka"}' --days 365 --into hdfs:///kafka/samples
"""

_SETTLED_S: Final = 300.0
"""Seconds after the end of an hour in which late samples of it still come: it is read once, for good."""

Dumps = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="[DUMPS]…",
        help=(
            "Files that promtool tsdb dump wrote of blocks, plain, gzip or zstd; instead of --prometheus. A file that "
            "was read before is not read again."
        ),
    ),
]
Into = Annotated[str, INTO]


@grouped
def ingest_prometheus(
    dumps: Dumps = None,
    *,
    into: Into,
    begin: options.Begin = None,
    end: options.End = None,
    time_zone: options.TimeZone = "UTC",
    engine: EngineName = "auto",
    prometheus: PrometheusPast,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """
    Copy each sample of clients from a Prometheus into a table, which --samples of other commands reads.

    For a year and thousands of brokers, where a server should not add up, or no longer has the samples. Reads by remote
    read (Prometheus, Mimir, Cortex), or dumps of blocks (Thanos, too).
    """
    if (prometheus.prometheus is None) == (not dumps):
        raise typer.BadParameter("give one of them", param_hint="DUMPS, --prometheus")
    check_extra()
    from quotascope.pages.words import counted
    from quotascope.pipeline.runs.engine import EngineChoice

    span = span_of(begin, end, zone_of(time_zone))
    if dumps:
        if span != (None, None):
            raise typer.BadParameter("is for a server: promtool takes --min-time and --max-time", param_hint="--begin")
        report, series = _of_dumps([str(path) for path in dumps], into, EngineChoice(engine))
    else:
        report, series = _of_server(prometheus, config, span, into, EngineChoice(engine))
    if json:
        outputs.put_json({
            "samples": report.samples,
            "series": series,
            "hours": report.hours,
            "known_hours": report.known_hours,
            "known_dumps": list(report.known_dumps),
        })  # fmt: skip
    else:
        known = f", {counted(report.known_hours, 'hour')} known before" if report.known_hours else ""
        known += f", {counted(len(report.known_dumps), 'dump')} known before" if report.known_dumps else ""
        hours = f" of {counted(report.hours, 'hour')}" if report.hours else ""
        typer.echo(f"{counted(report.samples, 'sample')}{hours} added, {series:,} series{known}")


def _of_server(
    prometheus: PrometheusPast,
    config: Path | None,
    span: tuple[float | None, float | None],
    into: str,
    engine: EngineChoice,
) -> tuple[IngestedSamples, int]:
    """Read a server; return the report and the number of series."""
    from quotascope.exporter.config import usable
    from quotascope.pipeline.prometheus.recording import ingest_remote

    from .samples import Remote, settings_of, wanted_of

    with past.open_survey(prometheus, configuration(config), span, settled_s=_SETTLED_S) as survey:
        wanted = wanted_of(survey.stock)
        server, period = survey.config, (survey.begin, survey.end)
    with usable(f"source {server.label!r}"):
        remote = Remote(server.with_secrets())
    with outputs.bar("reading samples") as progress:
        report = ingest_remote(
            into,
            {"address": server.label, "selector": server.selector},
            settings_of(server),
            wanted,
            period,
            remote,
            engine=engine,
            progress=progress,
        )
    return report, sum(series.has_samples for series in wanted)


def _of_dumps(dumps: list[str], into: str, engine: EngineChoice) -> tuple[IngestedSamples, int]:
    """Read dumps of blocks; return the report and the number of series."""
    from quotascope.pipeline.errors import UnreadableLog
    from quotascope.pipeline.prometheus.recording import ingest_dumps, listed

    from .samples import Listed, inventory_of, settings_of, wanted_of

    with outputs.bar("listing the series") as progress:
        listed_dumps = listed(dumps, engine, progress)
    for dump in listed_dumps:
        if not dump.series:
            raise UnreadableLog(dump.dump.path, "has no sample: did promtool print an error?")
    settings = settings_of(past.default_config())
    stock = inventory_of(
        Listed(labels for dump in listed_dumps for labels in dump.series), settings, "", (0.0, 0.0), by_exporter=None
    )
    wanted = wanted_of(stock)
    with outputs.bar("reading samples") as progress:
        report = ingest_dumps(into, settings, listed_dumps, wanted, engine=engine, progress=progress)
    return report, sum(series.has_samples for series in wanted)
