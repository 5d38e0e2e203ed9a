"""Work of the tests' drivers with a listener, in processes of their own."""

import threading
from typing import Any

from pyspark.sql import SparkSession
from tests.integration.eventually import eventually

from quotascope.spark_listener import Listener, attach

CAPACITY = 1_000
BUSY_TASKS = 6_200


def tasks(spark: SparkSession, count: int) -> None:
    spark.range(0, count, 1, count).write.format("noop").mode("overwrite").save()


def busy(spark: SparkSession) -> dict[str, Any]:
    """A driver that computes in pure Python while its job runs, without ever letting go by itself."""
    listener = attach(spark, queue_capacity=CAPACITY, http_enabled=False)
    job = threading.Thread(target=tasks, args=(spark, BUSY_TASKS))
    job.start()
    spins = 0
    while job.is_alive():
        spins += sum(number * number for number in range(1_000))
    listener.close()
    return {**_reported(listener), "was busy": spins > 0}


def stopped_and_started(spark: SparkSession) -> list[dict[str, Any]]:
    """Run three applications in one driver, closing the listeners of the first two afterwards."""
    reported = [_stopped(spark, "first", interval_seconds=3_600)]
    reported.append(_stopped(SparkSession.builder.getOrCreate(), "second"))
    session = SparkSession.builder.getOrCreate()
    listener = attach(session, app="third", http_enabled=False, interval_seconds=0.05)
    tasks(session, 10)
    session.stop()

    def ended() -> None:
        assert listener.ended, "the listener has not seen the end"

    eventually(ended, 60)
    return [*reported, _reported(listener)]


def _stopped(session: SparkSession, app: str, **options: Any) -> dict[str, Any]:
    listener = attach(session, app=app, http_enabled=False, **options)
    tasks(session, 10)
    session.stop()
    listener.close()
    return _reported(listener)


def _reported(listener: Listener) -> dict[str, Any]:
    job = listener.snapshot()
    return {
        "app": job.app,
        "events": job.events,
        "lost": job.lost_events,
        "ended": listener.ended,
        "problems": [problem.text for problem in listener.problems],
    }
