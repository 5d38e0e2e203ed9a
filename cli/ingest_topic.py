"""`quotascope ingest-topic`: request logs from a Kafka topic become tables of usage, as they come."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from . import options
from .ingest import Broker, BrokerPattern, Buckets, Into, LogZone, Topics, print_counts
from .pipeline_options import check_extra

if TYPE_CHECKING:
    from quotascope.pipeline.ingest import IngestReport

EXAMPLES = """
Examples:

spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0 "$(quotascope spark submit-script)" ingest-topic kafka-request-log --bootstrap-servers broker-1:9092 --into usage --checkpoint usage-stream

spark-submit … "$(quotascope spark submit-script)" ingest-topic kafka-request-log --bootstrap-servers broker-1:9092 --into usage --checkpoint usage-stream --once --option kafka.security.protocol=SSL
"""


def ingest_topic(
    topic: Annotated[
        str,
        typer.Argument(
            metavar="TOPIC",
            help="Each message is a line of a log. `quotascope request-topic` makes it.",
        ),
    ],
    *,
    bootstrap_servers: options.StreamServers,
    into: Into,
    checkpoint: Annotated[
        str,
        typer.Option(
            metavar="FOLDER",
            help="What this stream has read so far: a folder or URI of its own, to be kept.",
        ),
    ],
    every: options.Every = "1m",
    once: Annotated[
        bool, typer.Option("--once", help="Read what there is, then end.")
    ] = False,
    option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="Option of Spark's Kafka source, such as kafka.security.protocol=SSL or startingOffsets=latest; may be repeated.",
        ),
    ] = None,
    broker: Broker = None,
    broker_pattern: BrokerPattern = None,
    log_time_zone: LogZone = "UTC",
    topics: Topics = None,
    buckets: Buckets = 16,
) -> None:
    """
    Read request logs of Kafka brokers from a topic into a folder of usage history, as they come, by a stream of Spark.

    Each message counts once: a stream that was killed continues where it was when you start it again with the same checkpoint.
    """
    check_extra()
    from quotascope.exporter.config import seconds_of
    from quotascope.pipeline.ingest import IngestOptions
    from quotascope.pipeline.runs.ingest import ingest_topic as by_stream

    by_stream(
        {"kafka.bootstrap.servers": bootstrap_servers, "subscribe": topic, **_pairs(option)},
        into,
        checkpoint,
        IngestOptions(broker=broker, broker_pattern=broker_pattern, zone=log_time_zone, snapshot=topics),
        buckets=buckets,
        every=None if once else f"{round(1_000 * seconds_of(every, '--every'))} milliseconds",
        done=_show,
    )  # fmt: skip


def _pairs(option: list[str] | None) -> dict[str, str]:
    pairs = [each.partition("=") for each in option or ()]
    for key, equals, _ in pairs:
        if not (key and equals):
            raise typer.BadParameter("is not KEY=VALUE", param_hint="--option")
    return {key: value for key, _, value in pairs}


def _show(number: int, report: IngestReport) -> None:
    print_counts(report, of=f"batch {number}: ")
    sys.stdout.flush()
