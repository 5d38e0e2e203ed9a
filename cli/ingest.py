"""`quotascope ingest`: tables of usage from request logs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from functools import partial
from typing import Annotated, Final

import typer

from . import outputs
from .options import CONNECTOR, INTO, EngineName, Json, check_extra, named_values, zone_of

EXAMPLES = f"""
Examples:

quotascope ingest /var/log/kafka/ --names 'kafka-request.log*' --broker 1 --into usage

quotascope ingest logs/ --broker-pattern '/broker-([0-9]+)/' --topics topics.json --into usage

zcat kafka-request.log.gz | quotascope ingest - --broker 1 --into usage --json

spark-submit --master yarn "$(quotascope spark submit-script)" ingest hdfs:///logs/kafka --broker-pattern \
'/broker-([0-9]+)/' --into hdfs:///kafka/usage

spark-submit --packages {CONNECTOR} "$(quotascope spark submit-script)" ingest \
kafka://broker-1:9092,broker-2:9092/kafka-request-log --into usage
"""
_reading_option = partial(typer.Option, rich_help_panel="How logs are read")
_topic_option = partial(typer.Option, rich_help_panel="When a topic is read")
_KAFKA: Final = "kafka://"
_NO_LOG = (
    "no line is a request{seems}: give the log of kafka.request.logger at DEBUG, of Kafka 2.8 or later; "
    "the documentation (The request log) says how to get one"
)
_BEGINNING: Final = 4096
"""Number of bytes at the beginning of a file from which `content_hint` recognizes its contents."""
_CONTENTS: Final = (
    (rb"Completed request", "request lines that cannot be read, for the reasons above"),
    (rb"\0|\A[^\n]*\x1b[^\[]", "binary data"),
    (rb"\A\s*[\[{]\s*[\"{\[\]}]", "JSON, as log shippers write it (the message of each alone is a line of the log)"),
    (rb"\A# (?:HELP|TYPE) ", "metrics for Prometheus"),
    (rb"\A\s*<", "HTML or XML"),
    (rb"\A\[?\d{4}-\d\d-\d\d.*(?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL) ", "the log of another logger, such as server.log"),
)  # fmt: skip
"""Beginnings of files, and the contents that they suggest; the first match counts."""


def _known_zone(name: str) -> str:
    """Return the name of a time zone as it is. Raises ``typer.BadParameter`` for any other text."""
    zone_of(name, "--log-time-zone")
    return name


Logs = Annotated[
    list[str],
    typer.Argument(
        metavar="LOGS…",
        help=(
            "Files and folders, plain, gzip or zstd; - is standard input; kafka://SERVERS/TOPIC is a topic with a "
            "line in each message, read as they arrive."
        ),
    ),
]
Into = Annotated[str, INTO]
Broker = Annotated[
    str | None,
    _reading_option(
        metavar="NAME",
        help=(
            "Name of the broker that wrote all of these logs; needed unless each line names its node, or all lines "
            "have the same address."
        ),
    ),
]
BrokerPattern = Annotated[
    str | None,
    _reading_option(
        metavar="REGEX",
        help=(
            "A regular expression with the broker's name as its group, for the path of a file or TOPIC-PARTITION: "
            "such as '/broker-([0-9]+)/' or '-([0-9]+)$'. Of several groups, the one that is called broker counts."
        ),
    ),
]
LogZone = Annotated[
    str,
    _reading_option(
        "--log-time-zone",
        metavar="ZONE",
        help="Zone of the times in the logs, such as Europe/Berlin.",
        callback=_known_zone,
    ),
]
Topics = Annotated[
    str | None,
    _reading_option(
        metavar="FILE",
        help=(
            "File with the partitions of each topic before the logs began; without it, the cost of DeleteTopics and "
            "CreatePartitions is often unknown."
        ),
    ),
]
Names = Annotated[str, _reading_option(metavar="PATTERN", help="Which files of a folder are request logs.")]
FollowLinks = Annotated[
    bool,
    _reading_option(
        "--follow-links",
        help="Also follow links that lead out of a folder; use it only where no other user may write into the folder.",
    ),
]
Shards = Annotated[
    int,
    typer.Option(
        min=1,
        max=4096,
        metavar="N",
        help="Number of shards that users are divided into by hash; fixed when the folder is created.",
    ),
]


Checkpoint = Annotated[
    str | None,
    _topic_option(
        metavar="FOLDER",
        help="Folder or URI that records what this stream has read; keep it.",
        show_default="stream-TOPIC in the folder",
    ),
]
Every = Annotated[
    str | None, _topic_option(metavar="TIME", help="How often to read again, such as 5s or 1m.", show_default="1m")
]
Once = Annotated[bool, _topic_option("--once", help="Read what the topic has now, then end.")]
SourceOptions = Annotated[
    list[str] | None,
    _topic_option(
        metavar="KEY=VALUE",
        help=(
            "Option of Spark's Kafka source, such as kafka.security.protocol=SSL or startingOffsets=latest; may be "
            "repeated."
        ),
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
    checkpoint: Checkpoint = None,
    every: Every = None,
    once: Once = False,
    option: SourceOptions = None,
    shards: Shards = 16,
    engine: EngineName = "auto",
    json: Json = False,
) -> None:
    """
    Read request logs of Kafka brokers (kafka.request.logger) into a folder of usage history.

    Lines that cannot be read go to a quarantine with the reason. Every line counts once: start again what was \
interrupted.
    """
    check_extra()
    from quotascope.exporter.untrusted import one_line
    from quotascope.pipeline.ingest import IngestOptions
    from quotascope.pipeline.ingest.files import STANDARD_INPUT
    from quotascope.pipeline.runs.engine import EngineChoice
    from quotascope.pipeline.runs.ingest import ingest_logs, ingest_topic

    from .ingest_view import print_report

    ingest_options = IngestOptions(
        broker=broker,
        broker_pattern=broker_pattern,
        zone=log_time_zone,
        snapshot=topics,
        names=names,
        follow_links=follow_links,
    )
    if any(log.startswith(_KAFKA) for log in logs):
        if len(logs) > 1:
            raise typer.BadParameter(
                "a topic is read by a command of its own, several of a cluster as kafka://SERVERS/TOPIC,TOPIC",
                param_hint="LOGS",
            )
        from quotascope.exporter.config import seconds_of  # imported here, as it imports the whole configuration

        if once and every:
            raise typer.BadParameter(
                "--once reads what there is and ends, --every reads again and again: give one of them",
                param_hint="--once",
            )
        if engine == "local":
            raise typer.BadParameter("a topic is read by Spark", param_hint="--engine")
        servers, topic = topic_of(logs[0], "LOGS")
        interval_ms = round(1_000 * seconds_of(every or "1m", "--every"))
        ingest_topic(
            {"kafka.bootstrap.servers": servers, "subscribe": topic, **source_of(option)},
            into,
            checkpoint or f"{into.rstrip('/')}/stream-{topic}",
            ingest_options,
            shards=shards,
            every=None if once else f"{interval_ms} milliseconds",
            done=lambda number, report: print_report(report, number, json=json)
        )  # fmt: skip
        return
    topic_options = {"--checkpoint": checkpoint, "--every": every, "--once": once, "--option": option}
    for name, value in topic_options.items():
        if value:
            raise typer.BadParameter(f"{name} is for a topic, kafka://SERVERS/TOPIC", param_hint=name)
    with outputs.bar("reading", initial_name="listing files") as progress:
        report = ingest_logs(logs, into, ingest_options, shards=shards, engine=EngineChoice(engine), progress=progress)
    print_report(report, json=json)
    if report.nothing_readable and (report.read or not report.broken):
        hint = content_hint(logs, names, follow_links=follow_links)
        if not hint and not report.read and STANDARD_INPUT in logs:
            hint = "standard input is empty"
        seems = f", {one_line(hint)}" if hint else ""
        typer.echo(f"quotascope: {_NO_LOG.format(seems=seems)}", err=True)
    if report.broken or report.nothing_readable or report.unread_apis:
        raise typer.Exit(1)


def source_of(options: list[str] | None) -> dict[str, str]:
    """Return the options of Spark's source, whose names it compares in any case. Raises ``typer.BadParameter``."""
    return named_values(options, "--option", "KEY=VALUE", may_be_empty=True)


def topic_of(uri: str, param_hint: str) -> tuple[str, str]:
    """Return the servers and the topic of kafka://SERVERS/TOPIC. Raises BadParameter for any other text."""
    servers, _, topic = uri.removeprefix(_KAFKA).partition("/")
    if not uri.startswith(_KAFKA) or not servers or not topic or "/" in topic or "@" in uri:
        raise typer.BadParameter(
            "a topic is kafka://SERVERS/TOPIC, such as kafka://broker-1:9092,broker-2:9092/kafka-request-log; users "
            "and passwords belong in a JAAS file",
            param_hint=param_hint,
        )
    return servers, topic


def content_hint(paths: Iterable[str], names: str = "*", *, follow_links: bool = False) -> str:
    """
    Return why files are no request logs: what the first one that is not empty seems to hold, or that all are empty.

    The hint is empty if that is unknown: standard input and pipes were read already, a URI is not read again, and files
    that cannot be read are left out.
    """
    from quotascope.pages.words import counted
    from quotascope.pipeline.errors import UnreadableLog
    from quotascope.pipeline.ingest.files import STANDARD_INPUT, log_files
    from quotascope.pipeline.ingest.local import lines_of

    local_paths = [path for path in paths if path != STANDARD_INPUT and "://" not in path]
    empty: list[str] = []
    files, _ = log_files(local_paths, names, follow_links=follow_links)
    for file in filter(os.path.isfile, files):
        try:
            first_line = next((line for lines, _ in lines_of(file) for line in lines if line), None)
        except UnreadableLog:
            continue
        if first_line is not None:
            kinds = (kind for begin, kind in _CONTENTS if re.search(begin, first_line[:_BEGINNING]))
            return f"{file} seems to hold {next(kinds, 'text of another kind')}"
        empty.append(file)
    if len(empty) > 1:
        return f"{empty[0]} and {counted(len(empty) - 1, 'other file')} are empty"
    return f"{empty[0]} is empty" if empty else ""
