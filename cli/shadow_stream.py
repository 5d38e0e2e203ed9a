"""`quotascope shadow stream`: shadows over each request of the brokers' logs, as they come."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from . import ingest, options, whatif

if TYPE_CHECKING:
    from quotascope.pipeline.ingest import IngestReport
    from quotascope.pipeline.replay.continued import Part

EXAMPLES = """
Examples:

spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0 "$(quotascope spark submit-script)" shadow stream --topic kafka://broker-1:9092/kafka-request-log --candidates candidates.yaml --into usage

quotascope shadow stream --topic kafka://broker-1:9092/kafka-request-log --candidates candidates.yaml --into usage --bind-address 0.0.0.0 --port 9750
"""


_HOLD = "How long the newest requests of a broker wait for earlier ones, whose lines may come later."


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
    Evaluate limits on the brokers' requests as they come, by Spark, and show what they would throttle to Prometheus.

    The requests go into a folder of usage history, as `quotascope ingest` reads them, and the results into its table `shadow`. Start it
    again after a crash: every line counts once.
    """
    options.check_extra()
    from quotascope.exporter.config import seconds_of
    from quotascope.metrics.catalog.shadow import STREAM_FAMILIES
    from quotascope.pipeline.history import History
    from quotascope.pipeline.ingest import IngestOptions
    from quotascope.pipeline.runs.shadow import ShadowStream, shadow_topic
    from quotascope.quotas.candidates import read_candidates
    from quotascope.spark_listener.exposition.collector import JobCollector
    from quotascope.spark_listener.exposition.page import DriverPage

    from .shadow_counters import ShadowCounters, series_of

    servers, name = ingest.topic_of(topic, "--topic")
    source = {"kafka.bootstrap.servers": servers, "subscribe": name} | ingest.source_of(option)
    given = IngestOptions(broker_pattern=broker_pattern, zone=log_time_zone, snapshot=topics)
    rules, hold_s = read_candidates(candidates), seconds_of(hold, "--hold")
    every_ms = round(1_000 * seconds_of(every or "10s", "--every"))
    shadow = ShadowStream(into, History.create(into, buckets), rules, hold_ms=round(1_000 * hold_s))
    counters = ShadowCounters(shadow.counted().to_pylist(), shadow.late)

    def done(number: int, report: IngestReport, step: Part) -> None:
        if number >= 0:
            ingest.print_report(report, number)
        throttled = step.results.to_pylist()
        counters.add(throttled, step.late, step.until_ms)
        count = sum(row["throttled_requests"] for row in throttled)
        about = f"{step.decided:,} requests decided, {count:,} throttled, {step.late:,} late, {step.waiting:,} waiting"
        typer.echo(f"  shadows: {about}")
        sys.stdout.flush()

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
        shadow_topic(
            shadow,
            source,
            checkpoint or f"{into.rstrip('/')}/stream-{name}",
            given,
            every=None if once else f"{every_ms} milliseconds",
            done=done,
        )
