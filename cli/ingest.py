"""`quotascope ingest` and `ingest-topic`: request logs become tables of usage, from files or as they come from a Kafka topic."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from . import options
from .pipeline_options import EngineName, check_extra

if TYPE_CHECKING:
    from quotascope.pipeline.ingest import IngestReport

EXAMPLES = """
Examples:

quotascope ingest /var/log/kafka/ --names 'kafka-request.log*' --broker 1 --into usage

quotascope ingest logs/ --broker-pattern '/broker-([0-9]+)/' --topics topics.json --into usage

zcat kafka-request.log.gz | quotascope ingest - --broker 1 --into usage

spark-submit --master yarn "$(quotascope spark submit-script)" ingest hdfs:///logs/kafka --into hdfs:///kafka/usage
"""
TOPIC_EXAMPLES = """
Examples:

spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0 "$(quotascope spark submit-script)" ingest-topic kafka-request-log --bootstrap-servers broker-1:9092 --into usage --checkpoint usage-stream

spark-submit … "$(quotascope spark submit-script)" ingest-topic kafka-request-log --bootstrap-servers broker-1:9092 --into usage --checkpoint usage-stream --once --option kafka.security.protocol=SSL
"""
_READING = "How logs are read"
_MOST_LEFT_OUT = 10
_NO_LOG = "no line is a request: is this the log of kafka.request.logger at DEBUG, of Kafka 2.8 or later? docs/request-log.md says how to get one"

Logs = Annotated[
    list[str],
    typer.Argument(
        metavar="LOGS…",
        help="Files and folders, plain, gzip or zstd; - is standard input.",
    ),
]
Into = Annotated[
    str,
    typer.Option(
        metavar="FOLDER",
        help="Is made if need be. What was read before adds nothing again.",
    ),
]
Broker = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The broker that wrote all of these logs; else its address in them.",
        rich_help_panel=_READING,
    ),
]
BrokerPattern = Annotated[
    str | None,
    typer.Option(
        metavar="REGEX",
        help="A regular expression with the broker's name as its group, for the path of a file or TOPIC-PARTITION: such as '/broker-([0-9]+)/' or '-([0-9]+)$'.",
        rich_help_panel=_READING,
    ),
]
LogZone = Annotated[
    str,
    typer.Option(
        "--log-time-zone",
        metavar="ZONE",
        help="Zone of the times in the logs, such as Europe/Berlin.",
        rich_help_panel=_READING,
    ),
]
Topics = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Partitions by topic before the logs began: without them, what a DeleteTopics or CreatePartitions cost is often unknown.",
        rich_help_panel=_READING,
    ),
]
Names = Annotated[
    str,
    typer.Option(
        metavar="PATTERN",
        help="Which files of a folder are request logs.",
        rich_help_panel=_READING,
    ),
]
FollowLinks = Annotated[
    bool,
    typer.Option(
        "--follow-links",
        help="Also follow links that lead out of a folder; use it only where no other user may write into the folder.",
        rich_help_panel=_READING,
    ),
]
Buckets = Annotated[
    int,
    typer.Option(
        min=1,
        max=4096,
        metavar="N",
        help="Into how many parts users are spread; counts when the folder is made.",
    ),
]


def ingest(
    logs: Logs,
    *,
    into: Into,
    broker: Broker = None,
    broker_pattern: BrokerPattern = None,
    log_time_zone: LogZone = "UTC",
    topics: Topics = None,
    names: Names = "*",
    follow_links: FollowLinks = False,
    buckets: Buckets = 16,
    engine: EngineName = "auto",
) -> None:
    """
    Read request logs of Kafka brokers (kafka.request.logger) into a folder of usage history.

    Lines that cannot be read go to a quarantine with the reason. Every line is accounted for.
    """
    check_extra()
    from quotascope.pipeline.ingest import IngestOptions
    from quotascope.pipeline.runs.engine import Engine
    from quotascope.pipeline.runs.ingest import ingest_logs

    from .terminal import bar

    reading = IngestOptions(
        broker=broker,
        broker_pattern=broker_pattern,
        zone=log_time_zone,
        snapshot=topics,
        names=names,
        follow_links=follow_links,
    )
    with bar("reading") as progress:
        report = ingest_logs(logs, into, reading, buckets=buckets, engine=Engine(engine), progress=progress)  # fmt: skip
    _print_report(report)


def ingest_topic(
    topic: Annotated[
        str,
        typer.Argument(
            metavar="TOPIC",
            help="Each message is a line of a log. `quotascope request-topic` makes it.",
        ),
    ],
    *,
    bootstrap_servers: Annotated[str, options.BOOTSTRAP_SERVERS],
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

    pairs = [each.partition("=") for each in option or ()]
    if not all(key and equals for key, equals, _ in pairs):
        raise typer.BadParameter("is not KEY=VALUE", param_hint="--option")
    given = {key: value for key, _, value in pairs}

    def show(number: int, report: IngestReport) -> None:
        print_counts(report, of=f"batch {number}: ")
        sys.stdout.flush()

    by_stream(
        {"kafka.bootstrap.servers": bootstrap_servers, "subscribe": topic, **given},
        into,
        checkpoint,
        IngestOptions(broker=broker, broker_pattern=broker_pattern, zone=log_time_zone, snapshot=topics),
        buckets=buckets,
        every=None if once else f"{round(1_000 * seconds_of(every, '--every'))} milliseconds",
        done=show,
    )  # fmt: skip


def _print_report(report: IngestReport) -> None:
    """The counts on standard output, what is broken on standard error, with exit code 1."""
    from quotascope.exporter.untrusted import one_line

    print_counts(report)
    for file, why in report.broken.items():
        typer.echo(f"quotascope: {one_line(file)}: {one_line(why)}", err=True)
    if report.broken:
        raise typer.Exit(1)


def print_counts(report: IngestReport, of: str = "") -> None:
    """What became of the lines on standard output, `of` in front; on standard error that none of them was a request."""
    from quotascope.exporter.untrusted import one_line

    known = report.duplicates + report.quarantined_before
    typer.echo(
        f"{of}{report.read:,} lines: {report.kept:,} requests added, {report.forwarded:,} second lines of forwarded requests, "
        f"{known:,} known before, {report.quarantined:,} quarantined"
    )
    for reason, count in report.reasons.most_common():
        typer.echo(f"  quarantined: {count:,} {one_line(reason)}")
    if report.nothing_readable:
        typer.echo(f"quotascope: {_NO_LOG}", err=True)
    for file, why in list(report.left_out.items())[:_MOST_LEFT_OUT]:
        typer.echo(
            f"quotascope: {one_line(file)} was not read: {one_line(why)}", err=True
        )
    if len(report.left_out) > _MOST_LEFT_OUT:
        typer.echo(f"quotascope: {len(report.left_out):,} files and folders were not read", err=True)  # fmt: skip
