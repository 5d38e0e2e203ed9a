"""The attempt of a task, and the streaming query, that runs in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pyspark import SparkContext, TaskContext

QUERY_PROPERTY = "sql.streaming.queryId"
"""The local property with the id of the streaming query that a task belongs to (StreamExecution.QUERY_ID_KEY)."""


class AttemptKey(NamedTuple):
    """An attempt of a task, by the numbers that Spark's events have, too."""

    stage: int
    number: int
    """Number of the attempt: 0 for the first attempt of this task in this attempt of the stage."""
    task: int
    """Id that is unique in the application: `TaskContext.taskAttemptId()`, "Task ID" in events."""


def running_task() -> TaskContext | None:
    """Return the task that runs in this process; None in a driver, and where there is no Spark."""
    try:
        from pyspark import TaskContext  # noqa: PLC0415 - there is none outside of Spark
    except ImportError:
        return None
    return TaskContext.get()


def attempt_of(task: TaskContext) -> AttemptKey:
    """Return the key of a running task."""
    return AttemptKey(task.stageId(), task.attemptNumber(), task.taskAttemptId())


def query_of(task: TaskContext) -> str:
    """Return the id of the streaming query that a task belongs to; empty if it belongs to none."""
    return task.getLocalProperty(QUERY_PROPERTY) or ""


def active_context() -> SparkContext | None:
    """Return the driver's context; None where none runs in this process."""
    try:
        from pyspark import SparkContext  # noqa: PLC0415 - as above
    except ImportError:
        return None
    return SparkContext._active_spark_context  # noqa: SLF001 - what getOrCreate() asks, which would create one


def query_of_thread() -> str:
    """
    Return, in a driver, the id of the streaming query that calls this thread (foreachBatch).

    Empty when there is none.
    """
    context = active_context()
    return (context and context.getLocalProperty(QUERY_PROPERTY)) or ""
