"""
What a job does with Kafka: it reads or writes a topic, as a batch or as a stream.

Each runs in the driver's process.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pyspark import TaskContext
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StringType
from tests.integration.eventually import eventually
from tests.spark.table import counted

from quotascope.spark_listener import attach
from quotascope.spark_listener.jvm import PluginTotals
from quotascope.spark_listener.task import throttle_scope

Options = dict[str, str]
"""Of a source or a sink, without the `kafka.` before them but for the topic."""
PATIENCE_MS = 2_000
"""Of a producer that gives up."""
ROW_MS = 100
"""How long a sink is throttled for each row."""


def batch_write(spark: SparkSession, kafka: Options, topic: str, rows: int) -> str:
    """Rows of a thousand bytes."""
    values = spark.range(rows, numPartitions=1).selectExpr("repeat('x', 1000) AS value")
    values.write.format("kafka").options(**kafka).option("topic", topic).save()
    return ""


def gives_up(spark: SparkSession, kafka: Options, topic: str, rows: int) -> dict[str, Any]:
    """Write with little patience; the second attempt has nothing to write. Return the listener's counts."""
    patience = {"kafka.request.timeout.ms": str(PATIENCE_MS), "kafka.delivery.timeout.ms": str(PATIENCE_MS)}

    def at_first(values: Iterable[str]) -> Iterable[str]:
        task = TaskContext.get()
        return values if task is None or task.attemptNumber() == 0 else []

    def write(session: SparkSession) -> None:
        values = session.sparkContext.parallelize(["x" * 1_000] * rows, 1)
        frame = session.createDataFrame(values.mapPartitions(at_first), StringType())
        options = {**kafka, **patience, "topic": topic}
        frame.write.format("kafka").options(**options).save()

    return counted(spark, write)


def batch_read(spark: SparkSession, kafka: Options, topic: str, rows: int) -> str:
    """Read all that the topic holds."""
    stream = spark.read.format("kafka").options(**kafka).option("subscribe", topic)
    assert _bytes(stream.load()) == rows * 1_000
    return ""


def stream_read(spark: SparkSession, kafka: Options, topic: str, rows: int, checkpoint: str) -> str:
    """Read all that the topic holds; return the id of the query."""
    sums: list[int] = []
    source = spark.readStream.format("kafka").options(**kafka).option("subscribe", topic)
    sink = source.option("startingOffsets", "earliest").load().writeStream
    query = _finished(sink.foreachBatch(lambda batch, _: sums.append(_bytes(batch))), checkpoint)
    assert sum(sums) == rows * 1_000
    return query


def stream_in_parts(spark: SparkSession, kafka: Options, topic: str, rows: int, checkpoint: str) -> list[str]:
    """Read the topic in micro-batches of so many rows; return the JSON of each one's progress."""
    source = spark.readStream.format("kafka").options(**kafka).option("subscribe", topic)
    parts = source.options(startingOffsets="earliest", maxOffsetsPerTrigger=rows).load()
    query = parts.writeStream.format("noop").option("checkpointLocation", checkpoint).start()
    query.processAllAvailable()
    query.stop()
    return [json.dumps(json.loads(progress.json)) for progress in query.recentProgress]


def stream_write(spark: SparkSession, kafka: Options, topic: str, source: Options, checkpoint: str) -> str:
    """Write from an unlimited topic to a limited one; return the id of the query."""
    rows = spark.readStream.format("kafka").options(**source).load().select("value")
    return _finished(rows.writeStream.format("kafka").options(**kafka).option("topic", topic), checkpoint)


def real_time(
    spark: SparkSession, kafka: Options, topic: str, folder: str, *, batch: str, ends: bool
) -> dict[str, Any]:
    """
    Return what a listener shows of a query in Real-Time Mode with a sink that is throttled at each row.

    It is read while the first batch runs, unless that is to end, and after the query was stopped.
    """
    rows = Path(folder, "rows")

    def each(_row: Row) -> None:
        with throttle_scope() as account:
            account.client("", "sink", "write").throttled(ROW_MS)
        with rows.open("a") as file:
            file.write("\n")

    def truth() -> int:
        return ROW_MS * rows.stat().st_size if rows.exists() else 0

    def shown() -> dict[str, int]:
        throttles = listener.collect().throttles
        return {totals.client.side: totals.throttled_ms for name, totals in throttles if name == str(query.id)}

    def at_work() -> dict[str, Any]:
        assert bool(query.recentProgress) == ends
        found = shown()
        running = found.get("write", 0)
        assert running == truth() > 0
        assert "read" in found or ends
        (state,) = (each for each in listener.snapshot().queries if each.active)
        return {"running": running, "trigger": state.trigger_seconds}

    source = spark.readStream.format("kafka").options(**kafka).option("subscribe", topic)
    sink = source.option("startingOffsets", "earliest").load().writeStream.foreach(each).outputMode("update")
    trigger: dict[str, Any] = {"realTime": batch}  # PySpark's types lack it
    with attach(spark, http_enabled=False) as listener:
        query = sink.option("checkpointLocation", f"{folder}/checkpoint").trigger(**trigger).start()
        try:
            found = eventually(at_work, 60)
        finally:
            query.stop()
        return {**found, "shown": shown().get("write", 0), "truth": truth()}


def reported(spark: SparkSession) -> list[Any]:
    plugin = PluginTotals.of(spark)
    assert plugin is not None
    return plugin.totals()


def _finished(writer: Any, checkpoint: str) -> str:
    query: StreamingQuery = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    query.awaitTermination()
    return str(query.id)


def _bytes(rows: DataFrame) -> int:
    (row,) = rows.selectExpr("coalesce(sum(length(value)), 0) AS bytes").collect()
    return int(row["bytes"])
