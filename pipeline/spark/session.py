"""The session of commands that Spark runs; its jobs, with their names and progress."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import pyarrow as pa

from ..engine.base import Item
from ..meanwhile import repeated
from ..table import Progress
from .arrow import errors_restored, map_in_arrow

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame, SparkSession

_DESCRIPTION: Final = "spark.job.description"
_LOOK_S: Final = 0.25
"""Time between two looks at the tasks; Spark itself updates its figures ten times a second."""


SMALL_TABLES: Final = {
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "16",
}
"""
Settings of a session with Delta's jar.

They are the tasks to read a table's log (50 by default) and to list its folders for VACUUM (10,000).
"""


def session() -> "SparkSession":
    """
    Return the session that exists, as it is.

    Else return a new one, of local[*] unless Spark's own settings or spark-submit say otherwise.

    A new one runs its workers by this interpreter unless PYSPARK_PYTHON names one, and has `SMALL_TABLES` unless other
    values are set. Raises `SparkFailed` if no session can be created, as without Java.
    """
    from pyspark import SparkContext  # noqa: PLC0415 - as late as can be
    from pyspark.sql import SparkSession  # noqa: PLC0415 - as above

    with errors_restored():
        if SparkContext._active_spark_context is not None:  # noqa: SLF001 - PySpark asks so itself
            return SparkSession.builder.getOrCreate()
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        spark = SparkSession.builder.appName("quotascope").getOrCreate()
        settings = spark.sparkContext.getConf()
        for name, value in SMALL_TABLES.items():
            if not settings.contains(name):
                spark.conf.set(name, value)
        return spark


def by_tasks(
    spark: "SparkSession", items: Sequence[Item], work: Callable[[Item], Iterable[pa.RecordBatch]], schema: str
) -> "DataFrame":
    """Return the result of the work on each item, by a task each; `schema` is DDL."""

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the result for the items whose indices the batches have."""
        for batch in batches:
            for index in batch.column("id").to_numpy().tolist():
                yield from work(items[index])

    return map_in_arrow(spark.range(0, len(items), 1, max(1, len(items))), rows, schema)


@contextmanager
def shown(spark: "SparkSession", doing: str, progress: Progress | None = None) -> Iterator[None]:
    """Do what `_shown` does; raises what `errors_restored` raises, also where Spark ends before or after the block."""
    with errors_restored(), _shown(spark, doing, progress):
        yield


@contextmanager
def _shown(spark: "SparkSession", doing: str, progress: Progress | None) -> Iterator[None]:
    """
    Give the jobs and stages of a block a name in Spark's UI, and report their tasks.

    Spark has no names for tasks. With Spark Connect there are only tags of operations, and no progress: the client does
    not know the tasks. Spark 3 reports none either.

    Args:
        spark: the session; the program's own description of jobs is set again afterwards.
        doing: text that the UI shows after `quotascope: `.
        progress: called with the tasks that are done, of those that Spark has planned by now; from another thread.

    """
    name, tag = f"quotascope: {doing}", f"quotascope-{uuid4().hex}"
    if not hasattr(spark, "_jsparkSession"):
        tag = name.replace(",", "")
        spark.addTag(tag)
        try:
            yield
        finally:
            spark.removeTag(tag)
        return
    context = spark.sparkContext
    description: Any = context.getLocalProperty(_DESCRIPTION)
    context.setJobDescription(name)
    context.addJobTag(tag)
    try:
        with _reported(context, tag, progress) if progress else nullcontext():
            yield
    finally:
        with suppress(Exception):  # of a JVM that is gone
            context.removeJobTag(tag)
            context.setJobDescription(description)


@contextmanager
def _reported(context: "SparkContext", tag: str, report: Progress) -> Iterator[None]:
    """Report the tasks of the jobs with a tag while the block runs, and that all are done where it raises nothing."""

    def look() -> None:
        """Report the tasks that are done by now."""
        with suppress(Exception):  # of a JVM that is going
            report(*tasks_of(context, tag))

    with repeated(look, _LOOK_S, "quotascope progress"):
        yield
    with suppress(Exception):  # of Spark 3, which finds no jobs by tags
        _, count = tasks_of(context, tag)
        report(count, count)


def tasks_of(context: "SparkContext", tag: str) -> tuple[int, int]:
    """Return the number of done tasks of the jobs with a tag, and that of planned tasks without skipped ones."""
    jvm: Any = context._jsc.sc()  # noqa: SLF001 - PySpark's own tracker knows no tags
    store, done, count = jvm.statusStore(), 0, 0
    for number in jvm.statusTracker().getJobIdsForTag(tag):
        job = store.job(number)
        done += job.numCompletedTasks()
        count += job.numTasks() - job.numSkippedTasks()
    return done, count
