"""
Work done by Spark's Python workers, and its name and progress in Spark; the session of commands that Spark does the work of.

What is sent are functions of this package, paths, and the names of files; rows go straight between the workers and the tables' files,
without the JVM. Every worker needs this package with its extra `pipeline`, and must reach the tables' paths.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import pyarrow as pa

from ..table.table import Answer, Item, Progress
from .arrow import ANSWER, answer_of, answers_in, collected, map_in_arrow

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame, SparkSession

_DESCRIPTION: Final = "spark.job.description"
_LOOK_S: Final = 0.25
"""Between two looks at the tasks; Spark itself updates its figures ten times a second."""


SMALL_TABLES: Final = {
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "16",
}
"""With Delta's jar in the session: tasks to read a table's log (50 by default) and to list its folders for VACUUM (10,000)."""


def session() -> "SparkSession":
    """
    The one that is there, as it is; else a new one, of local[*] unless Spark's own settings or spark-submit say otherwise.

    A new one runs its workers by this interpreter unless PYSPARK_PYTHON names one, and has `SMALL_TABLES` where nothing else is set.
    """
    from pyspark import SparkContext  # noqa: PLC0415 - as late as can be
    from pyspark.sql import SparkSession  # noqa: PLC0415 - as above

    if SparkContext._active_spark_context is not None:  # noqa: SLF001 - PySpark asks so itself
        return SparkSession.builder.getOrCreate()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    made = SparkSession.builder.appName("quotascope").getOrCreate()
    given = made.sparkContext.getConf()
    for name, value in SMALL_TABLES.items():
        if not given.contains(name):
            made.conf.set(name, value)
    return made


@dataclass(frozen=True)
class SparkRun:
    """Gives each item to a task of its own (`quotascope.pipeline.table.Run`)."""

    spark: "SparkSession"
    doing: str = "parts of tables"
    """What Spark's UI calls the items: `quotascope: replay of buckets 1 to 16`, of which task 0 does the first."""

    def __call__(
        self, work: Callable[[Item], Answer], items: Sequence[Item], progress: Progress | None = None
    ) -> Iterable[Answer]:
        """Return the answers in the order of the items; raises what `collected` raises."""
        if not items:
            return []
        with shown(self.spark, f"{self.doing} 1 to {len(items)}", progress):
            answers = by_tasks(self.spark, items, lambda item: [answer_of(work(item))], ANSWER)
            return answers_in(collected(answers))


def by_tasks(
    spark: "SparkSession", items: Sequence[Item], work: Callable[[Item], Iterable[pa.RecordBatch]], schema: str
) -> "DataFrame":
    """What the work makes of each item, by a task each; `schema` is DDL."""

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for place in batch.column("id").to_numpy().tolist():
                yield from work(items[place])

    return map_in_arrow(spark.range(0, len(items), 1, max(1, len(items))), rows, schema)


@contextmanager
def shown(spark: "SparkSession", doing: str, progress: Progress | None = None) -> Iterator[None]:
    """
    Give the jobs and stages of a block a name in Spark's UI, and report their tasks.

    Spark has no names for tasks. With Spark Connect there are only tags of operations, and no progress: the client does not know the tasks.
    Spark 3 reports none either.

    Args:
        spark: the session; what the program has set for its own jobs is set again afterwards.
        doing: what the UI shows after `quotascope: `.
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
    before: Any = context.getLocalProperty(_DESCRIPTION)
    context.setJobDescription(name)
    context.addJobTag(tag)
    try:
        with _reported(context, tag, progress) if progress else nullcontext():
            yield
    finally:
        with suppress(Exception):  # of a JVM that is gone
            context.removeJobTag(tag)
            context.setJobDescription(before)


@contextmanager
def _reported(context: "SparkContext", tag: str, report: Progress) -> Iterator[None]:
    """Report the tasks of the jobs with a tag while the block runs, and that all are done where it raises nothing."""
    over = Event()

    def look() -> None:
        while not over.wait(_LOOK_S):
            with suppress(Exception):  # of a JVM that is going
                report(*tasks_of(context, tag))

    thread = Thread(target=look, name="quotascope progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    with suppress(Exception):  # of Spark 3, which finds no jobs by tags
        _, count = tasks_of(context, tag)
        report(count, count)


def tasks_of(context: "SparkContext", tag: str) -> tuple[int, int]:
    """How many tasks of the jobs with a tag are done, and of how many that Spark has planned by now and not skipped."""
    jvm: Any = context._jsc.sc()  # noqa: SLF001 - PySpark's own tracker knows no tags
    store, done, count = jvm.statusStore(), 0, 0
    for number in jvm.statusTracker().getJobIdsForTag(tag):
        job = store.job(number)
        done += job.numCompletedTasks()
        count += job.numTasks() - job.numSkippedTasks()
    return done, count
