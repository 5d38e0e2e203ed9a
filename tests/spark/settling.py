"""Waits until a job is over for its listeners, too."""

from typing import Any

from pyspark.sql import SparkSession
from tests.integration.eventually import eventually

MARK = "the end of a case"
"""The group of the job that stands between two cases."""


def settle(spark: SparkSession, seconds: float = 60) -> None:
    """
    Wait until no task runs any more, and until each listener has had everything.

    An assertion fails when that does not come.
    """
    context = spark.sparkContext._jsc.sc()
    eventually(lambda: _is_idle(context), seconds, pause=0.05)
    context.listenerBus().waitUntilEmpty()  # raises when it takes 10 s


def _is_idle(context: Any) -> None:
    executors = context.statusStore().executorList(True)  # noqa: FBT003 - the JVM's
    active = {executors.apply(index).id(): executors.apply(index).activeTasks() for index in range(executors.size())}
    assert not any(active.values()), f"tasks still run, by executor: {active}"


def mark(spark: SparkSession) -> None:
    """Run a job that makes Spark write out what it holds back of the case before it."""
    settle(spark)
    spark.sparkContext.setJobGroup(MARK, MARK)
    spark.range(1).rdd.count()
    spark.sparkContext.setJobGroup("", "")
    settle(spark)
