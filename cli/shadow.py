"""`quotascope shadow`: limits that are evaluated on live traffic, and enforced by no broker."""

from __future__ import annotations

import asyncio
import sys
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC
from typing import TYPE_CHECKING, Annotated, Final

import typer

from . import ingest, options, outputs, whatif
from .settings import RunningExporter, SourceOptions

if TYPE_CHECKING:
    from quotascope.pipeline.ingest import IngestReport

_STATUS: Final = """
Examples:

quotascope shadow status --exporter http://quotascope:9749

quotascope shadow status --config /etc/quotascope.yaml --shadow candidates.yaml --json

Exit code 0: no shadow would throttle any client now. 3: one would. 4: none would as far as is known, but something is unknown. 1: nothing could be read.
"""
_STREAM: Final = """
Examples:

spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0 "$(quotascope spark submit-script)" shadow stream --topic kafka://broker-1:9092/kafka-request-log --candidates candidates.yaml --into usage

quotascope shadow stream --topic kafka://broker-1:9092/kafka-request-log --candidates candidates.yaml --into usage --bind-address 0.0.0.0 --port 9750
"""
_VERIFY: Final = """
Examples:

quotascope shadow verify "half of it" --folder usage --since 2026-11-23T14:00:00Z

quotascope shadow verify "half of it" --prometheus http://prometheus:9090 --since 2026-11-23T14:00:00Z --tolerance 10 --json

Exit code 0: the same entities are throttled, and the throttle time is within the tolerance. 1: it is not. 2: there is nothing to compare.
"""
_THROTTLES: Final = 3
_UNKNOWN: Final = 4
_NOTHING: Final = 2
_HOLD: Final = "How long the newest requests of a broker wait for earlier ones, whose lines may come later."

shadow = typer.Typer(name="shadow", help="Evaluate limits on live traffic before they are set.", no_args_is_help=True)


@shadow.command(epilog=_STATUS)
@options.grouped
def status(
    *,
    running: RunningExporter,
    candidates: Annotated[str | None, options.SHADOW] = None,
    top: options.Top = 10,
    json: options.Json = False,
    read: SourceOptions,
) -> None:
    """Show which clients each shadow would throttle at this moment, what is unknown, and how to measure it."""
    from rich.console import Console, Group
    from rich.text import Text

    from quotascope.exporter.api.documents import encoded, shadow_document

    from .cluster import observe
    from .shadow_view import advice_on, counts, nearest

    target = running.target()
    if target is not None and candidates is not None:
        raise typer.BadParameter("--shadow is for reading brokers: a running exporter has shadows of its own")
    settings = read.configuration(log_level="error", shadow=candidates)
    snapshot, _ = asyncio.run(observe(settings, target))
    shadows, sources = snapshot.shadows, snapshot.sources
    if not shadows:
        about = "give --shadow FILE, or `shadow:` in the configuration of the exporter"
        raise typer.BadParameter(f"there is no shadow: {about}")
    down = [each.name for each in sources if not (each.up or each.stand_by_of)]
    advice = [*advice_on(snapshot), *(f"source {name} cannot be read: its clients are unknown" for name in down)]
    if json:
        documents = list(map(shadow_document, shadows))
        answer = {"taken_at": snapshot.taken_at, "shadows": documents, "advice": advice}
        typer.echo(encoded(answer, indent=2), nl=False)
    else:
        Console().print(Group(counts(shadows), *nearest(snapshot, top), *map(Text, advice)))
    if any(any(each.throttled.values()) for each in shadows):
        raise typer.Exit(_THROTTLES)
    if down or any(each.unevaluated or not each.evaluated for each in shadows):
        raise typer.Exit(_UNKNOWN)


@shadow.command(epilog=_STREAM)
def stream(
    *,
    topic: Annotated[
        str, typer.Option(metavar="kafka://SERVERS/TOPIC", help="Topic of the request logs, each message a line.")
    ],
    candidates: whatif.Candidates,
    into: ingest.Into,
    broker_pattern: ingest.BrokerPattern = None,
    log_time_zone: ingest.LogZone = "UTC",
    topics: ingest.Topics = None,
    checkpoint: ingest.Checkpoint = None,
    every: ingest.Every = "10s",
    once: ingest.Once = False,
    option: ingest.SourceOptions = None,
    buckets: ingest.Buckets = 16,
    hold: Annotated[str, typer.Option(metavar="TIME", help=_HOLD)] = "10s",
    bind_address: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address for Prometheus.", rich_help_panel=options.SERVING)
    ] = "localhost",
    port: Annotated[int | None, options.PORT] = None,
    otlp_endpoint: Annotated[str | None, options.OTLP_ENDPOINT] = None,
) -> None:
    """
    Evaluate limits on the brokers' requests as they arrive, with Spark, and serve what they would throttle to Prometheus.

    The requests go into a folder of usage history, as `quotascope ingest` reads them, and the results into its table `shadow`. Start it
    again after a crash: every line counts once.
    """
    options.check_extra()
    from quotascope.exporter.config import seconds_of
    from quotascope.metrics.catalog.shadow_stream import STREAM_FAMILIES
    from quotascope.pipeline.history import History
    from quotascope.pipeline.ingest import IngestOptions
    from quotascope.pipeline.runs.engine import Engine, run_of
    from quotascope.pipeline.runs.ingest import ingest_topic
    from quotascope.pipeline.runs.shadow import ShadowCounters, ShadowStream, series_of
    from quotascope.quotas.candidates import read_candidates
    from quotascope.spark_listener.exposition.collector import JobCollector
    from quotascope.spark_listener.exposition.page import DriverPage

    servers, name = ingest.topic_of(topic, "--topic")
    source = {"kafka.bootstrap.servers": servers, "subscribe": name} | ingest.source_of(option)
    given = IngestOptions(broker_pattern=broker_pattern, zone=log_time_zone, snapshot=topics)
    rules, hold_s = read_candidates(candidates), seconds_of(hold, "--hold")
    every_ms = round(1_000 * seconds_of(every or "10s", "--every"))
    shadow = ShadowStream(into, History.create(into, buckets), rules, hold_ms=round(1_000 * hold_s))
    counters = ShadowCounters(shadow.counted().to_pylist(), shadow.late)

    run = run_of(Engine.SPARK, "shadow of buckets")

    def decide(*, all_of_it: bool = False) -> None:
        step = shadow.step(run, all_of_it=all_of_it)
        throttled = step.results.to_pylist()
        counters.add(throttled, step.late, step.until_ms)
        count = sum(row["throttled_requests"] for row in throttled)
        about = f"{step.decided:,} requests decided, {count:,} throttled, {step.late:,} late, {step.waiting:,} waiting"
        typer.echo(f"  shadows: {about}")
        sys.stdout.flush()

    def done(number: int, report: IngestReport) -> None:
        ingest.print_report(report, number)
        decide()

    with ExitStack() as shown:
        if port is not None:
            page = DriverPage(JobCollector(counters.read, None, STREAM_FAMILIES, series_of), bind_address, port)
            shown.callback(page.close)
            typer.echo(f"metrics: http://{bind_address}:{page.port}/metrics")
        if otlp_endpoint is not None:
            from quotascope.spark_listener.exposition.otlp import JobPush
            from quotascope.spark_listener.settings import ListenerSettings

            push = JobPush(
                ListenerSettings(otlp_endpoint=otlp_endpoint),
                counters.read,
                app_id=f"shadow-{shadow.rules}",
                families=STREAM_FAMILIES,
                series=series_of,
            )
            shown.callback(push.close)
        at = checkpoint or f"{into.rstrip('/')}/stream-{name}"
        ingest_topic(source, into, at, given, every=None if once else f"{every_ms} milliseconds", done=done)
        decide(all_of_it=True)


@shadow.command(epilog=_VERIFY)
def verify(
    shadow: Annotated[str, typer.Argument(metavar="SHADOW", help="Name of the candidate.")],
    *,
    since: Annotated[str, typer.Option(metavar="TIME", help="When its limits were set, as ISO 8601.")],
    folder: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER", help="Compare what `shadow stream` decided with the requests that it has read since."
        ),
    ] = None,
    prometheus: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Compare what the exporter showed with what the brokers reported since."),
    ] = None,
    begin: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="TIME",
            help="Begin of the prediction.",
            show_default="at most as long before as until after",
        ),
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="End of the comparison.", show_default="now")
    ] = None,
    tolerance: Annotated[
        float,
        typer.Option(
            min=0, max=100, metavar="PERCENT", help="By how much the throttle time of all entities together may differ."
        ),
    ] = 10.0,
    json: options.Json = False,
) -> None:
    """Compare what a shadow predicted with what the brokers did since its limits were set."""
    options.check_extra()
    from quotascope.pipeline.errors import NoHistory
    from quotascope.pipeline.runs.verify import NotVerified, verify_log, verify_prometheus

    times_ms = _ms(since, "--since") or 0, _ms(until, "--until"), _ms(begin, "--from")
    if (folder is None) == (prometheus is None):
        raise typer.BadParameter("give one of them", param_hint="--folder, --prometheus")
    try:
        compare = verify_log if prometheus is None else verify_prometheus
        found = compare(prometheus or folder or "", shadow, *times_ms)
    except (NotVerified, NoHistory) as error:
        typer.echo(f"quotascope: {error}", err=True)
        raise typer.Exit(_NOTHING) from None
    agrees, off_percent = found.agrees(tolerance / 100), 100 * found.off()
    if json:
        document = {"agrees": agrees, "off_percent": round(off_percent, 3), "tolerance_percent": tolerance}
        outputs.put_json(document | asdict(found))
    else:
        from rich.console import Console

        from .shadow_view import verified

        Console().print(verified(found))
        differ, count = sum(not each.agrees for each in found.entities), len(found.entities)
        about = f"the throttle time is off by {off_percent:.1f} %, {differ} of {count} entities differ"
        typer.echo(f"{'agrees' if agrees else 'differs'}: {about}")
    raise typer.Exit(0 if agrees else 1)


def _ms(text: str | None, name: str) -> int | None:
    at = options.time_of(text, name, UTC)
    return None if at is None else round(1_000 * at)
