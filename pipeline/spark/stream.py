"""
Request logs from a Kafka topic, each message a line, into a usage history: exactly once, by Structured Streaming and Spark's own connector.

A batch that was interrupted comes again with the same messages after a restart. It is committed under the query's id and its own number,
once; and what it had committed before it was interrupted is found in the tables. The history follows the table of requests, each of its
commits once. Ingests of the same lines may run beside it: of two that looked for what is new at the same time, the second looks again.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ..errors import PipelineError, SparkFailed
from ..history.store import BUCKETS, History
from ..ingest import IngestOptions, IngestReport, IngestTables
from ..ingest.committing import Committer, repeated
from ..request_log.mutations import MutationLedger
from .arrow import error_of
from .lines import lines_of_topic, staged_lines
from .run import SparkRun

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

Done = Callable[[int, IngestReport], None]
"""Called with the number of each batch and what became of it."""

_NO_CONNECTOR: Final = "this Spark has no Kafka connector: run it by spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:{} (docs/spark-connector.md names versions)"


def stream(  # noqa: PLR0913 - a source, a sink, and what lies between
    spark: "SparkSession",
    source: Mapping[str, str],
    into: str,
    checkpoint: str,
    *,
    options: IngestOptions | None = None,
    buckets: int = BUCKETS,
    every: str | None = None,
    done: Done = lambda _number, _report: None,
) -> None:
    """
    Add what a topic gets to a folder of usage history, until the query ends or an exception, such as a keyboard interrupt, stops it.

    Args:
        spark: the session, with Kafka's connector; not of Spark Connect, where a batch does not know its query.
        source: options of the source: `kafka.bootstrap.servers`, `subscribe`, `kafka.security.protocol`, …
        into: folder of the tables.
        checkpoint: folder of the query's own state; two queries must not share it.
        options: what has to be known about the logs.
        buckets: into how many parts users are spread, if the history is new.
        every: how often a batch begins, such as `1 minute`; None reads what there is, and ends.
        done: called after each batch.

    Raises:
        PipelineError: what a batch could not read or write; a query that is started again continues from there.
        SparkFailed: there is no connector, the topic cannot be read, or Spark gave up for another reason.

    """
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # noqa: PLC0415 - comes with Spark
    from pyspark.errors import PySparkException  # noqa: PLC0415 - as late as can be

    options = options or IngestOptions()
    batches = _Batches(spark, into, options, buckets, done)
    messages = spark.readStream.format("kafka").option("startingOffsets", "earliest")
    try:
        lines = lines_of_topic(messages.options(**source).load())
        writer: Any = lines.writeStream.foreachBatch(batches.add).option("checkpointLocation", checkpoint)  # fmt: skip
        trigger = {"processingTime": every} if every else {"availableNow": True}
        query: StreamingQuery = writer.trigger(**trigger).start()
        try:
            query.awaitTermination()
        finally:
            with suppress(Exception):  # of a JVM that is gone
                query.stop()
    except (PySparkException, Py4JError) as error:
        if batches.failed is not None:
            raise batches.failed from error
        if "data source: kafka" in str(error):
            raise SparkFailed(_NO_CONNECTOR.format(spark.version)) from error
        raise error_of(str(error)) from error


class _Batches:
    """What becomes of each micro-batch."""

    def __init__(
        self,
        spark: "SparkSession",
        into: str,
        options: IngestOptions,
        buckets: int,
        done: Done,
    ) -> None:
        self.failed: PipelineError | None = None
        """Why the last batch was not added: through the JVM only its text would come."""
        self._tables = IngestTables.create(into)
        self._history = History.create(into, buckets)
        self._committer = Committer(self._tables, MutationLedger(options.topics()))
        self._options = options
        self._run = SparkRun(spark)
        self._done = done

    def add(self, lines: "DataFrame", number: int) -> None:
        """Add a batch to the tables, and what they have got to the history."""
        try:
            report = self._report(lines, number)
            self._history.update(self._tables.requests, self._run)
        except PipelineError as error:
            self.failed = error
            raise
        self._done(number, report)

    def _report(self, lines: "DataFrame", number: int) -> IngestReport:
        name = f"stream {_query_id(lines)}"
        if all(table.holds(name, number) for table in self._tables):
            return IngestReport()
        stage = partial(staged_lines, lines, self._tables, self._options)
        return self._committer.add(stage, partial(repeated, name=name, epoch=number))


def _query_id(lines: "DataFrame") -> str:
    """Id of the query of a batch; it is kept with the checkpoint."""
    context = lines.sparkSession.sparkContext
    return str(context.getLocalProperty("sql.streaming.queryId"))
