"""What drivers of the tests do with a listener, in processes of their own."""

import threading
import time
from typing import Any

from pyspark.sql import SparkSession

from quotascope.spark_listener import Listener, attach

CAPACITY = 1_000
BUSY_TASKS = 6_200


def tasks(spark: SparkSession, count: int) -> None:
    """So many tasks of the JVM, in one stage of one job."""
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
    return {**_told(listener), "was busy": spins > 0}


def stopped_and_started(spark: SparkSession) -> list[dict[str, Any]]:
    """Two applications in one driver, one after the other; each is stopped while a listener is attached."""
    told = []
    first = attach(spark, app="first", http_enabled=False, interval_seconds=3_600)
    session = spark
    for listener in (first, None):
        watching = listener or attach(session, app="second", http_enabled=False)
        tasks(session, 10)
        session.stop()
        watching.close()
        told.append(_told(watching))
        if listener is not None:
            session = _another(session)
    return told


def ends_with_its_application(spark: SparkSession) -> dict[str, Any]:
    """A listener that nobody closes, of an application that is stopped."""
    listener = attach(spark, http_enabled=False, interval_seconds=0.05)
    tasks(spark, 10)
    spark.stop()
    deadline = time.monotonic() + 60
    while not listener.ended and time.monotonic() < deadline:
        time.sleep(0.05)
    return {**_told(listener), "ended": listener.ended}


def _another(stopped: SparkSession) -> SparkSession:
    del stopped
    return SparkSession.builder.getOrCreate()


def _told(listener: Listener) -> dict[str, Any]:
    job = listener.snapshot()
    return {
        "app": job.app,
        "events": job.events,
        "lost": job.lost_events,
        "problems": [each.text for each in listener.problems],
    }
