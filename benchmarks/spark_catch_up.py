"""
Accuracy of the listener's predictions of when a throttled stream has read its backlog.

`make bench-catch-up`, about 13 minutes.

A broker with Kafka's default quota windows limits each of three queries of one Spark, which read backlogs of 2, 5 and
10 minutes and of one minute before. A fourth query reads a topic that producers fill faster than its limit, a fifth is
slow by itself and has no quota. The broker decides the rates, so that a busy machine changes little. The last table is
what `quotascope spark report` prints of the application.
"""

import argparse
import json
import math
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import confluent_kafka
from benchmarks.output import write_json
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table
from tests.clients.real import Login
from tests.cluster.cluster import Cluster, Layout, running
from tests.cluster.quotas import Quotas
from tests.cluster.traffic import Traffic
from tests.spark.connector.provision import jars
from tests.spark.process import spark_process
from tests.spark.versions import CONNECTOR

from quotascope.cli.report import show
from quotascope.spark_listener import attach
from quotascope.spark_listener.jvm import PLUGIN, REPORTER, write_jar
from quotascope.spark_listener.report import read_application, report

LIMIT = 100_000.0
"""Bytes per second that brokers let each user read."""
ROWS = 50.0
"""Rows per second that a query reads at this limit, as measured: a fetch brings ten of a thousand bytes."""
BACKLOGS = {"carol": 2, "bob": 5, "alice": 10}
"""Minutes that a user needs at its limit."""
FED, SLOW = "mallory", "svc:team a"
FED_ROWS = 15
"""Rows that are added ten times a second: one and a half times the limit."""
SMALL = {"kafka.batch.size": "20000", "kafka.max.partition.fetch.bytes": "20000"}
Sample = tuple[float, float]
"""Seconds since 1970, and the seconds until the backlog is read that the listener shows then."""


def watched(
    spark: SparkSession, sources: dict[str, dict[str, str]], ends: dict[str, int], folder: str
) -> dict[str, Any]:
    """
    Return the listener's numbers of each second, in the driver.

    Each query that `ends` has the time when it has read that many rows.
    """
    with attach(spark, http_enabled=False, summary_file=f"{folder}/summary.json") as listener:
        queries = {}
        for user, options in sources.items():
            rows = spark.readStream.format("kafka").options(**options).load()
            if user == SLOW:
                rows = rows.selectExpr("java_method('java.lang.Thread', 'sleep', 20L)")
            writer = rows.writeStream.format("noop").queryName(user)
            queries[user] = writer.option("checkpointLocation", f"{folder}/{user}").start()
        samples: dict[str, list[Sample]] = {user: [] for user in sources}
        over: dict[str, float] = {}
        while ends.keys() - over.keys():
            time.sleep(1)
            for state in listener.snapshot().queries:
                if state.name in over:
                    continue
                if state.catch_up is not None:
                    samples[state.name].append((time.time(), state.catch_up.seconds))
                progress = queries[state.name].lastProgress
                if progress and position(progress) >= ends.get(state.name, math.inf):
                    over[state.name] = time.time()
        for query in queries.values():
            query.stop()
    return {"samples": samples, "over": over}


def position(progress: Any) -> int:  # noqa: ANN401 - half typed
    """Return the offset up to which a query has read its topic of one partition."""
    end_offset = json.loads(progress.sources[0].endOffset or "{}")
    return sum(sum(offsets.values()) for offsets in end_offset.values())


def filled(kafka: Cluster, rows: int) -> str:
    """Return a topic with a number of records, in batches of ten."""
    topic = Traffic(kafka).topic()
    with producing(kafka) as producer:
        for _ in range(rows):
            producer.produce(topic, bytes(1_000))
            producer.poll(0)
    return topic


@contextmanager
def producing(kafka: Cluster) -> Iterator[confluent_kafka.Producer]:
    """Yield a producer without a quota, whose batches are ten records."""
    producer = confluent_kafka.Producer({"bootstrap.servers": kafka.admin, "batch.num.messages": 10})
    yield producer
    assert producer.flush(120) == 0


def feed(kafka: Cluster, topic: str, over: threading.Event) -> None:
    """Add rows to a topic until it is over."""
    with producing(kafka) as producer:
        while not over.wait(0.1):
            for _ in range(FED_ROWS):
                producer.produce(topic, bytes(1_000))
            producer.poll(0)


def results(minutes: float, folder: Path) -> dict[str, Any]:
    """Let all queries run; backlogs are those of `BACKLOGS` times `minutes` minutes."""
    write_jar(folder / "plugin.jar")
    logs = folder / "logs"
    logs.mkdir()
    names = ",".join(str(jar) for jar in (*jars(), folder / "plugin.jar"))
    conf = {
        "spark.plugins": PLUGIN,
        "spark.jars": names,
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": logs.as_uri(),
    }
    over = threading.Event()
    with running(Layout.COMBINED, folder / "kafka") as kafka:
        with closing(Quotas(kafka.connection())) as quotas:
            for user in (*BACKLOGS, FED):
                quotas.set(({"user": user}, {"consumer_byte_rate": LIMIT}))
        ends = {user: int((60 * minutes * backlog + 60) * ROWS) for user, backlog in BACKLOGS.items()}
        longest = max(ends.values())
        topics = {
            user: filled(kafka, ends.get(user, 2_000 if user == FED else longest)) for user in (*BACKLOGS, FED, SLOW)
        }
        sources = {user: source(kafka, user, topic) for user, topic in topics.items()}
        feeding = threading.Thread(target=feed, args=(kafka, topics[FED], over))
        with spark_process(folder / "spark", version=CONNECTOR, master="local[8]", conf=conf) as driver:
            feeding.start()
            try:
                driver.send(["benchmarks.spark_catch_up:watched", [sources, ends, str(folder)], {}])
                measured: dict[str, Any] = driver.receive()
            finally:
                over.set()
                feeding.join()
    return measured


def source(kafka: Cluster, user: str, topic: str) -> dict[str, str]:
    """Return the options of a stream that reads a topic as that user."""
    return {
        **{f"kafka.{key}": value for key, value in Login(kafka.sasl, user=user).java().items()},
        **SMALL,
        "kafka.metric.reporters": REPORTER,
        "startingOffsets": "earliest",
        "subscribe": topic,
        "maxOffsetsPerTrigger": "400" if user != SLOW else "100",
    }


def table(measured: dict[str, Any], minutes: float) -> Table:
    """Predicted and measured seconds, when so many minutes of backlog were left."""
    result_table = Table("backlog", "predicted s", "measured s", "error %", "largest error % until 2 minutes before")
    for user, backlog in BACKLOGS.items():
        over = measured["over"][user]
        samples = [(over - moment, seconds) for moment, seconds in measured["samples"][user]]
        remaining, seconds = min(samples, key=lambda sample: abs(sample[0] - 60 * minutes * backlog))
        errors = [abs(guess / rest_s - 1) for rest_s, guess in samples if rest_s >= 120 * minutes]
        result_table.add_row(
            f"{backlog * minutes:g} min",
            f"{seconds:.0f}",
            f"{remaining:.0f}",
            f"{100 * (seconds / remaining - 1):+.1f}",
            f"{100 * max(errors, default=math.nan):.1f}",
        )
    fed = [seconds for _, seconds in measured["samples"][FED]]
    result_table.add_row("grows", f"{fed[-1]:.0f}", "never", "", f"{sum(map(math.isfinite, fed))} of {len(fed)} finite")
    return result_table


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--minutes", type=float, default=1.0, help="what a minute of backlog lasts")
    parser.add_argument("--json", type=Path, help="file to write the samples to")


def main(options: argparse.Namespace) -> int:
    """Print the tables."""
    console = Console(width=150)
    with tempfile.TemporaryDirectory(prefix="quotascope-bench-") as name:
        folder = Path(name)
        measured = results(options.minutes, folder)
        write_json(options.json, measured)
        console.print(table(measured, options.minutes))
        (log,) = (folder / "logs").iterdir()
        show(console, report(read_application(log, folder / "summary.json")))
    return 0
