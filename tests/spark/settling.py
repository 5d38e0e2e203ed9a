"""When a job is over for its listeners, too."""

import time
from typing import Any

from pyspark.sql import SparkSession

MARK = "the end of a case"
"""The group of the job that stands between two cases."""


def settle(spark: SparkSession) -> None:
    """Wait until no task runs any more, and until each listener was told everything."""
    context = spark.sparkContext._jsc.sc()
    deadline = time.monotonic() + 60
    while _active(context) and time.monotonic() < deadline:
        time.sleep(0.05)
    context.listenerBus().waitUntilEmpty()


def _active(context: Any) -> int:
    executors = context.statusStore().executorList(True)  # noqa: FBT003 - the JVM's
    return sum(executors.apply(at).activeTasks() for at in range(executors.size()))


def mark(spark: SparkSession) -> None:
    """A job that makes Spark write out what it holds back of the case before it."""
    settle(spark)
    spark.sparkContext.setJobGroup(MARK, MARK)
    spark.range(1).rdd.count()
    spark.sparkContext.setJobGroup("", "")
    settle(spark)
