"""`quotascope shadow`: limits that are evaluated on live traffic, and enforced by no broker."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from . import ingest, options, outputs, past, whatif
from .app import App
from .past import PrometheusOptions, PrometheusServer
from .settings import ConfigFile, RunningExporter, SourceOptions, configuration

if TYPE_CHECKING:
    from quotascope.pipeline.stream import ShadowedTopic, Step

_STATUS: Final = """
Examples:

quotascope shadow status --exporter http://quotascope:9749

quotascope shadow status --config /etc/quotascope.yaml --shadow candidates.yaml --json

Exit code 0: no shadow would throttle any client newly or for longer now. 3: one would. 4: none would as far as is \
known, but something is unknown. 1: nothing could be read.
"""
_STREAM: Final = f"""
Examples:

spark-submit --packages {options.CONNECTOR} "$(quotascope spark submit-script)" shadow \
stream --topic kafka://broker-1:9092/kafka-request-log --candidates candidates.yaml --into usage

quotascope shadow stream --topic kafka://broker-1:9092/kafka-request-log --candidates candidates.yaml --into usage \
--bind-address 0.0.0.0 --port 9750
"""
_VERIFY: Final = """
Examples:

quotascope shadow verify "half of it" --folder usage --since 2026-11-23T14:00:00Z

quotascope shadow verify "half of it" --prometheus http://prometheus:9090 --since 2026-11-23T14:00:00Z --tolerance 10 \
--html verify.html

Exit code 0: the same entities are throttled, and the throttle time is within the tolerance. 1: it is not. 2: there \
is nothing to compare.
"""
_BACKTEST: Final = """
Examples:

quotascope shadow backtest candidates.yaml --prometheus http://prometheus:9090 --days 14

quotascope shadow backtest candidates.yaml --prometheus http://prometheus:9090 --selector '{cluster="prod-eu"}' \
--html backtest.html --csv backtest.csv
"""
_THROTTLES: Final = 3
"""Exit code if a shadow would throttle a client newly or for longer."""
_UNKNOWN: Final = 4
"""Exit code if that is unknown of a client."""
_NOTHING: Final = 2
"""Exit code if there is nothing to compare."""
_HOLD: Final = "How long the newest requests of a broker wait for earlier ones, whose lines may come later."

shadow = App("shadow", "Evaluate limits on live traffic before they are set.")


@shadow.command(epilog=_STATUS)
@options.grouped
def status(
    *,
    running: RunningExporter,
    candidates: Annotated[str | None, options.SHADOW] = None,
    top: options.Top = 10,
    json: options.Json = False,
    sources: SourceOptions,
) -> None:
    """
    Show what each shadow would change at this moment: clients newly throttled, longer, shorter, no longer.

    Also shows what is unknown, and how to measure it.
    """
    import asyncio

    from rich.console import Console, Group
    from rich.text import Text

    from quotascope.exporter.api.answers import shadow_document
    from quotascope.exporter.api.documents import encoded

    from .cluster import observe
    from .shadow_view import advice_on, counts, nearest

    target = running.target()
    if target is not None and candidates is not None:
        raise typer.BadParameter("--shadow is for reading brokers: a running exporter has shadows of its own")
    settings = sources.configuration(log_level="error", shadow=candidates)
    snapshot, _ = asyncio.run(observe(lambda: settings, target))
    shadows, source_health = snapshot.shadows, snapshot.sources
    if not shadows:
        about = "give --shadow FILE, or `shadow:` in the configuration of the exporter"
        raise typer.BadParameter(f"there is no shadow: {about}")
    down = [source.name for source in source_health if not (source.up or source.stand_by_of)]
    advice = [*advice_on(snapshot), *(f"source {name} cannot be read: its clients are unknown" for name in down)]
    if json:
        documents = list(map(shadow_document, shadows))
        answer = {"taken_at": snapshot.taken_at, "shadows": documents, "advice": advice}
        typer.echo(encoded(answer, indent=2), nl=False)
    else:
        Console().print(Group(counts(shadows), *nearest(snapshot, top), *map(Text, advice)))
    if any(evaluated.worse for evaluated in shadows):
        raise typer.Exit(_THROTTLES)
    if down or any(evaluated.unevaluated or not evaluated.changes for evaluated in shadows):
        raise typer.Exit(_UNKNOWN)


@shadow.command(epilog=_STREAM)
def stream(
    *,
    topic: Annotated[
        str, typer.Option(metavar="kafka://SERVERS/TOPIC", help="Topic of the request logs, each message a line.")
    ],
    candidates: whatif.Candidates,
    into: ingest.Into,
    broker: ingest.Broker = None,
    broker_pattern: ingest.BrokerPattern = None,
    log_time_zone: ingest.LogZone = "UTC",
    topics: ingest.Topics = None,
    checkpoint: ingest.Checkpoint = None,
    every: ingest.Every = "10s",
    once: ingest.Once = False,
    option: ingest.SourceOptions = None,
    shards: ingest.Shards = 16,
    hold: Annotated[str, typer.Option(metavar="TIME", help=_HOLD)] = "10s",
    bind_address: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address for Prometheus.", rich_help_panel=options.SERVING)
    ] = "localhost",
    port: Annotated[int | None, options.PORT] = None,
    otlp_endpoint: Annotated[str | None, options.OTLP_ENDPOINT] = None,
) -> None:
    """
    Evaluate limits on the brokers' requests as they arrive, with Spark, and serve the throttles to Prometheus.

    The requests go into a folder of usage history, as `quotascope ingest` reads them, and the results into its table
    `shadow`. Start it again after a crash: every line counts once.
    """
    options.check_extra()
    from quotascope.exporter.config import seconds_of
    from quotascope.pipeline.ingest import IngestOptions
    from quotascope.pipeline.stream import ShadowedTopic
    from quotascope.quotas.candidates import read_candidates

    from .ingest_view import print_report

    servers, name = ingest.topic_of(topic, "--topic")
    source = {"kafka.bootstrap.servers": servers, "subscribe": name} | ingest.source_of(option)
    ingest_options = IngestOptions(broker=broker, broker_pattern=broker_pattern, zone=log_time_zone, snapshot=topics)
    rules, hold_s = read_candidates(candidates), seconds_of(hold, "--hold")
    every_ms = round(1_000 * seconds_of(every or "10s", "--every"))
    shadowed = ShadowedTopic(into, rules, hold_ms=round(1_000 * hold_s), shards=shards)
    last_note = ""

    def print_step(step: Step) -> None:
        nonlocal last_note
        if step.batch is not None and step.report is not None:
            print_report(step.report, step.batch)
        if step.decided and step.kafka.note != last_note:
            last_note = step.kafka.note
            typer.echo(f"  {last_note}")
        typer.echo(f"  shadows: {step.words}")
        sys.stdout.flush()

    with _publishing(shadowed, bind_address, port, otlp_endpoint):
        checkpoint = checkpoint or f"{into.rstrip('/')}/stream-{name}"
        shadowed.run(
            source, checkpoint, ingest_options, every=None if once else f"{every_ms} milliseconds", done=print_step
        )


@contextmanager
def _publishing(
    shadowed: ShadowedTopic, bind_address: str, port: int | None, otlp_endpoint: str | None
) -> Iterator[None]:
    """Serve the counters of a stream at the port, and push them to the endpoint, as far as these are set."""
    from quotascope.metrics.catalog.shadow_stream import STREAM_FAMILIES
    from quotascope.pipeline.runs.shadow import series_of
    from quotascope.spark_listener.exposition.collector import JobCollector
    from quotascope.spark_listener.exposition.page import DriverPage

    counters = shadowed.counters
    with ExitStack() as publishers:
        if port is not None:
            page = DriverPage(JobCollector(counters.read, None, STREAM_FAMILIES, series_of), bind_address, port)
            publishers.callback(page.close)
            typer.echo(f"metrics: http://{bind_address}:{page.port}/metrics")
        if otlp_endpoint is not None:
            from quotascope.spark_listener.exposition.otlp import JobPush
            from quotascope.spark_listener.settings import ListenerSettings

            push = JobPush(
                ListenerSettings(otlp_endpoint=otlp_endpoint),
                counters.read,
                app_id=f"shadow-{shadowed.shadow.rules}",
                families=STREAM_FAMILIES,
                series=series_of,
            )
            publishers.callback(push.close)
        yield


@shadow.command(epilog=_BACKTEST)
@options.grouped
def backtest(
    candidates: Annotated[
        Path, typer.Argument(metavar="CANDIDATES", help="YAML file of the quotas to try, as `whatif` reads it.")
    ],
    *,
    prometheus: PrometheusOptions,
    config: ConfigFile = None,
    results: outputs.Results,
) -> None:
    """
    Show which clients candidates would have throttled in the past weeks, by the samples of a Prometheus.

    Needs no request log: for which part of its active time each client was above its limit. Also shows what samples
    cannot say. Changes nothing.
    """
    options.check_extra()
    from quotascope.pipeline.prometheus import backtest as question
    from quotascope.quotas.candidates import read_candidates

    prometheus.check()
    outputs.check(*results.files)
    candidate_rules = read_candidates(candidates)
    with past.open_past(prometheus, configuration(config)) as opened, outputs.bar("asking for rates") as progress:
        answer = question.backtest(opened.past, candidate_rules, progress)
    outputs.write(
        results,
        report=partial(question.report, answer),
        document=partial(question.document, answer),
        csv=partial(question.as_csv, answer),
    )


@shadow.command(epilog=_VERIFY)
@options.grouped
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
    prometheus: PrometheusServer,
    config: ConfigFile = None,
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
    results: outputs.Results,
) -> None:
    """
    Compare what a shadow predicted with what the brokers did since its limits were set.

    With --folder, compares with the requests that `shadow stream` has read since. With --prometheus, compares what the
    exporter showed with what the brokers reported.
    """
    options.check_extra()
    from quotascope.pipeline.errors import NoHistory
    from quotascope.pipeline.prometheus.past import QueryRefused
    from quotascope.pipeline.prometheus.verify import verify_prometheus
    from quotascope.pipeline.runs import verify as question

    times_ms = _ms(since, "--since") or 0, _ms(until, "--until"), _ms(begin, "--from")
    if (folder is None) == (prometheus.prometheus is None):
        raise typer.BadParameter("give one of them", param_hint="--folder, --prometheus")
    outputs.check(*results.files)
    source = prometheus.prometheus or folder or ""
    try:
        if folder is None:
            settings = configuration(config)
            of_server = prometheus.config(settings)
            with past.open_server(prometheus, settings) as server:
                comparison = verify_prometheus(
                    server, shadow, *times_ms, selector=of_server.selector, check=past.check_exporters(of_server)
                )
        else:
            comparison = question.verify_log(folder, shadow, *times_ms)
    except (question.NotVerified, NoHistory, QueryRefused) as error:
        typer.echo(f"quotascope: {error}", err=True)
        raise typer.Exit(_NOTHING) from None
    outputs.write(
        results,
        report=partial(question.report, comparison, source, tolerance),
        document=partial(question.document, comparison, tolerance),
        csv=partial(question.as_csv, comparison),
    )
    raise typer.Exit(0 if comparison.agrees(tolerance / 100) else 1)


def _ms(text: str | None, name: str) -> int | None:
    """Return the Unix time in ms of the value of an option, in UTC if it names no zone; None without one."""
    time_s = options.time_of(text, name, UTC)
    return None if time_s is None else round(1_000 * time_s)
