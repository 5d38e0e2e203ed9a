"""Work of a Spark with Delta Lake on a table; each function runs in the driver's process."""

import io
import json
import sys
from collections.abc import Iterable
from contextlib import chdir, redirect_stdout
from typing import Any

from pyspark.sql import SparkSession

from quotascope.pipeline.spark.session import session

PARTITIONS = "int(timestamp div 86400000) AS day", "int(crc32(user) % {}) AS shard"
"""Of a row, as docs/guides/history.md has them."""


def append(spark: SparkSession, table: str, rows: list[Any], shards: int) -> None:
    """Append rows in an order of Spark's, with the columns in another order than the table's, and no statistics."""
    schema = spark.read.format("delta").load(table).drop("day", "shard").schema
    lines = spark.sparkContext.parallelize([json.dumps(row) for row in rows], 1)
    day, shard = PARTITIONS
    frame = spark.read.schema(schema).json(lines).selectExpr("*", day, shard.format(shards))
    backwards = frame.select(*reversed(frame.columns)).orderBy("completed", ascending=False)
    spark.conf.set("spark.databricks.delta.stats.collect", "false")
    try:
        backwards.write.format("delta").mode("append").save(table)
    finally:
        spark.conf.unset("spark.databricks.delta.stats.collect")


def sql(spark: SparkSession, table: str, *statements: str) -> list[Any]:
    """The rows of the last statement; `$TABLE` is the table in that folder."""
    here = f"delta.`{table}`"
    answer_rows = [spark.sql(statement.replace("$TABLE", here)).collect() for statement in statements][-1]
    rows: list[Any] = json.loads(json.dumps([row.asDict() for row in answer_rows], default=str))
    return rows


def count(spark: SparkSession, table: str) -> int:
    return spark.read.format("delta").load(table).count()


def python(spark: SparkSession, code: str) -> str:
    """Return the output of code that has a session."""
    with redirect_stdout(io.StringIO()) as printed:
        exec(code, {"spark": spark})  # noqa: S102 - from a page of ours
    return printed.getvalue()


def z_order(spark: SparkSession, table: str, column: str) -> None:
    """Optimize a table by z-order, with the call that `DeltaTable.optimize` of delta-spark makes."""
    jvm: Any = spark._jvm
    gateway: Any = spark.sparkContext._gateway
    columns = gateway.new_array(jvm.java.lang.String, 1)
    columns[0] = column
    delta_table = jvm.io.delta.tables.DeltaTable.forPath(spark._jsparkSession, table)
    delta_table.optimize().executeZOrderBy(columns)


def example(spark: SparkSession, lines: str, folder: str) -> list[Any]:
    """Run lines of the guide in a folder; return their `results` and their output."""
    made: dict[str, Any] = {"spark": spark}
    output = io.StringIO()
    with chdir(folder), redirect_stdout(output):
        exec(lines, made)  # noqa: S102 - of our own page
        rows = [row.asDict() for row in made["results"].collect()]
    return [rows, output.getvalue()]


def tasks(spark: SparkSession) -> int:
    context: Any = spark.sparkContext._jsc
    return int(context.sc().taskScheduler().newTaskId())


def made(spark: SparkSession) -> list[Any]:
    """Return Spark's version, the Python of driver and worker, and whether the session is used again."""

    def run(_: Iterable[int]) -> Iterable[str]:
        yield sys.executable

    workers = spark.sparkContext.parallelize([0], 1).mapPartitions(run).collect()
    return [spark.version, sys.executable, *workers, session() is spark]
