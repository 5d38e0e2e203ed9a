r"""
Request logs from a Kafka topic, each message a line, into the same tables: exactly once, by Structured Streaming and Spark's own connector.

::

    spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0 pipeline/spark/stream.py \
        --bootstrap-servers broker-1:9092 --topic kafka-request-log --into /data/quota --checkpoint /data/quota/stream

A batch that was interrupted comes again with the same messages after a restart. It is committed under the query's id and its own number,
once; and what it had committed before it was interrupted is found in the table. Ingests of the same lines may run beside it: of two that
looked for what is new at the same time, the second looks again.
"""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from quotascope.pipeline.errors import LostCommit, PipelineError
from quotascope.pipeline.ingest import Options, Report, Tables
from quotascope.pipeline.ingest.committing import ATTEMPTS, Committer, repeated
from quotascope.pipeline.request_log.mutations import MutationLedger
from quotascope.pipeline.spark.ingest import log_options, options_of, told
from quotascope.pipeline.spark.lines import lines_of_topic, staged_lines

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


def stream(  # noqa: PLR0913 - a source, a sink, and what lies between
    spark: "SparkSession",
    source: Mapping[str, str],
    into: str,
    checkpoint: str,
    *,
    options: Options | None = None,
    trigger: Mapping[str, object] | None = None,
    done: Callable[[int, Report], None] = lambda _number, _report: None,
) -> "StreamingQuery":
    """
    Start a query that adds what a topic gets; it runs until it is stopped.

    Args:
        spark: the session, with Kafka's connector; not of Spark Connect, which cannot tell a batch which query it is of.
        source: options of the source: `kafka.bootstrap.servers`, `subscribe`, `kafka.security.protocol`, …
        into: folder of the tables.
        checkpoint: folder of the query's own state; two queries must not share it.
        options: what has to be known about the logs.
        trigger: of `DataStreamWriter.trigger`, such as `{"processingTime": "1 minute"}` or `{"availableNow": True}`.
        done: called with the number of each batch and what became of it.

    Raises:
        TableError: the tables cannot be made. Later errors end the query, which can be started again.

    """
    options = options or Options()
    tables = Tables.create(into)
    committer = Committer(tables, MutationLedger(options.topics()))
    messages = spark.readStream.format("kafka").option("startingOffsets", "earliest")
    lines = lines_of_topic(messages.options(**source).load())
    add = partial(_add, tables, committer, options, done)
    writer: Any = lines.writeStream.foreachBatch(add).option("checkpointLocation", checkpoint)  # fmt: skip
    query: StreamingQuery = writer.trigger(**(trigger or {})).start()
    return query


def _add(
    tables: Tables,
    committer: Committer,
    options: Options,
    done: Callable[[int, Report], None],
    lines: "DataFrame",
    number: int,
) -> None:
    name = f"stream {_query_id(lines)}"
    if all(table.holds(name, number) for table in tables):
        done(number, Report())
        return
    for _ in range(ATTEMPTS):
        requests, quarantine = (repeated(table, name, number) for table in tables)
        parts = staged_lines(lines, tables, options)
        with suppress(LostCommit):  # another run added rows, which may be the same
            done(number, committer.commit(parts, requests, quarantine))
            return
    raise LostCommit(tables.requests.storage.uri, f"others were quicker {ATTEMPTS} times")  # fmt: skip


def _query_id(lines: "DataFrame") -> str:
    """Id of the query whose batch this is; it is kept with the checkpoint."""
    context = lines.sparkSession.sparkContext
    return str(context.getLocalProperty("sql.streaming.queryId"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run as a program of its own, as spark-submit does, until it is stopped; return the exit code."""
    given = _parser().parse_args(arguments)
    from quotascope.pipeline.spark.session import session  # noqa: PLC0415 - `--help` is quick without

    try:
        query = stream(
            session(),
            _source(given),
            given.into,
            given.checkpoint,
            options=options_of(given),
            trigger=_trigger(given),
            done=_tell,
        )
        query.awaitTermination()
    except PipelineError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _tell(number: int, report: Report) -> None:
    sys.stdout.write(f"batch {number}: {told(report)}\n")
    sys.stdout.flush()


def _source(given: argparse.Namespace) -> dict[str, str]:
    more: dict[str, str] = dict(given.option)
    return {"kafka.bootstrap.servers": given.bootstrap_servers, "subscribe": given.topic, **more}  # fmt: skip


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return key, value


def _trigger(given: argparse.Namespace) -> dict[str, object]:
    return {"availableNow": True} if given.once else {"processingTime": given.every}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Read Kafka request logs from a topic into tables.")  # fmt: skip
    parser.add_argument("--bootstrap-servers", required=True, metavar="HOST:PORT,…")
    parser.add_argument("--topic", required=True, help="it has to be there: `quotascope request-topic` makes it")  # fmt: skip
    parser.add_argument("--checkpoint", required=True, metavar="FOLDER", help="state of this stream, of no other")  # fmt: skip
    parser.add_argument("--option", type=_pair, action="append", default=[], metavar="KEY=VALUE", help="of the source, such as kafka.security.protocol=SASL_SSL; may be given several times")  # fmt: skip
    parser.add_argument("--every", default="1 minute", metavar="TIME", help="how often (%(default)s)")  # fmt: skip
    parser.add_argument("--once", action="store_true", help="read what there is, then end")  # fmt: skip
    log_options(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
