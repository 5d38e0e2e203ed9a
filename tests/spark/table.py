"""Fates of tasks, and the counts that a listener must have: one row a job that does it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import SparkSession
from tests.integration.eventually import eventually
from tests.spark import failures, impatient, losses, streams
from tests.spark.settling import settle

from quotascope.spark_listener import attach

Case = Callable[[SparkSession], None]
ThrottledCase = Callable[[SparkSession, str, str, str], None]
"""Takes the address of a broker, the id of a client that has a limit there, and a topic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A job, and the exact counts of what it loses."""

    case: Case
    failures: Mapping[str, int] = field(default_factory=dict)
    """Failed attempts by cause."""
    retries: Mapping[str, int] | None = None
    """Attempts that repeated them; None when there are as many."""
    stage_retries: int = 0
    executors_lost: int = 0

    def counts(self) -> dict[str, Any]:
        """Return the counts as `watched` reports them."""
        retries = self.failures if self.retries is None else self.retries
        return {
            "failures": dict(self.failures),
            "retries": dict(retries),
            "stage_retries": self.stage_retries,
            "executors_lost": self.executors_lost,
            "lost_events": 0,
            "problems": [],
            "sources": ["pull"],
        }


LOCAL_ROWS = (
    Row(case=failures.python_exception, failures={"other": 1}),
    Row(case=failures.gives_up, failures={"other": 4}, retries={"other": 3}),
    Row(case=failures.confluent_quota, failures={"kafka_quota": 1}),
    Row(case=failures.kafka_python_quota, failures={"kafka_quota": 1}),
    Row(case=failures.chained_quota, failures={"kafka_quota": 1}),
    Row(case=failures.handled_quota, failures={"kafka_quota": 1}),
    Row(case=failures.confluent_timeout, failures={"kafka_timeout": 1}),
    Row(case=failures.kafka_python_timeout, failures={"kafka_timeout": 1}),
    Row(case=failures.confluent_other, failures={"kafka_other": 1}),
    Row(case=failures.quoted_source, failures={"other": 1}),
    Row(case=failures.quoted_message, failures={"other": 1}),
    Row(case=failures.exception_group, failures={"kafka_quota": 1}),
    Row(case=failures.worker_exit, failures={"python_worker_died": 1}),
    Row(case=losses.cancelled),
    Row(case=losses.killed, failures={"killed": 1}),
    Row(case=streams.restarted, failures={"kafka_quota": 4}, retries={"kafka_quota": 3}),
)
ALONE = Row(case=losses.shuffle_lost, failures={"fetch_failed": 1}, stage_retries=2)
"""
For a Spark that ends soon: in local mode a failed fetch takes the driver out of the block manager's books, it cannot
come back, and after ten minutes of refused heartbeats its executor, which is the JVM itself, exits.
"""
CLUSTER_ROWS = (
    Row(case=losses.jvm_quota, failures={"kafka_quota": 1}),
    Row(case=losses.jvm_timeout, failures={"kafka_timeout": 1}),
    Row(case=losses.executor_killed, failures={"executor_lost": 2}, executors_lost=1),
    Row(
        case=losses.shuffle_lost_with_executor,
        failures={"executor_lost": 1, "fetch_failed": 1},
        stage_retries=2,
        executors_lost=1,
    ),
)

THROTTLED_CASES: tuple[ThrottledCase, ...] = (impatient.confluent_throttled, impatient.kafka_python_throttled)
"""Each fails one attempt as `kafka_timeout_throttled`."""


def watched(spark: SparkSession, name: str) -> dict[str, Any]:
    """Attach, run the row's job, and report the listener's counts."""
    rows = {row.case.__name__: row for row in (*LOCAL_ROWS, ALONE, *CLUSTER_ROWS)}
    row = rows[name]
    return counted(spark, row.case, executors_lost=row.executors_lost)


def counted(spark: SparkSession, case: Case, *, executors_lost: int = 0) -> dict[str, Any]:
    """
    The counts of a listener that watches one job.

    A lost executor counts only when it has been gone for some seconds.
    """

    def all_lost() -> None:
        assert listener.snapshot().executors_lost >= executors_lost

    with attach(spark, http_enabled=False) as listener:
        case(spark)
        settle(spark)
        eventually(all_lost, 30)
        sources = listener.source.split("+")
    books = listener.snapshot()
    return {
        "failures": {cause: count for cause, count in books.failures.items() if count},
        "retries": {cause: count for cause, count in books.retries.items() if count},
        "stage_retries": books.stage_retries,
        "executors_lost": books.executors_lost,
        "lost_events": books.lost_events,
        "problems": list(books.problems),
        "sources": sources,
    }
