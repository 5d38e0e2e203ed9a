"""
Jobs whose Python tasks fail, each in its own way; what the clients raise are their own errors.

Each job has two tasks. The first attempt at the first task fails, its second attempt succeeds, unless the job's
sentence says otherwise.
"""

import os
import socket
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Never

from pyspark import SparkContext, TaskContext
from pyspark.sql import SparkSession

Fail = Callable[[], object]


def run(spark: SparkSession, fail: Fail, *, always: bool = False) -> None:
    """Run two tasks, of which the first calls `fail` in its first attempt, or in each."""

    def work(rows: Iterable[int]) -> Iterable[int]:
        task = TaskContext.get()
        assert task is not None
        if task.partitionId() == 0 and (always or task.attemptNumber() == 0):
            fail()
        return rows

    context: SparkContext = spark.sparkContext
    context.parallelize(range(4), 2).mapPartitions(work).count()


def python_exception(spark: SparkSession) -> None:
    run(spark, _application)


def gives_up(spark: SparkSession) -> None:
    """Fail in each of four attempts, so that the job fails."""
    with suppress(Exception):
        run(spark, _application, always=True)


def _application() -> Never:
    raise ValueError("the fourth column is no number")


def confluent_quota(spark: SparkSession) -> None:
    run(spark, _confluent_quota)


def _confluent_quota() -> Never:
    from confluent_kafka import KafkaError, KafkaException  # noqa: PLC0415 - a task's

    code = KafkaError.THROTTLING_QUOTA_EXCEEDED
    raise KafkaException(KafkaError(code, "The throttling quota has been exceeded."))


def kafka_python_quota(spark: SparkSession) -> None:
    run(spark, _kafka_python_quota)


def _kafka_python_quota() -> Never:
    from kafka.errors import ThrottlingQuotaExceededError  # noqa: PLC0415 - a task's

    raise ThrottlingQuotaExceededError("The throttling quota has been exceeded.")


def chained_quota(spark: SparkSession) -> None:
    """An application's error `from` confluent-kafka's error 89, with a note of the application."""
    run(spark, _chained)


def _chained() -> Never:
    try:
        _confluent_quota()
    except Exception as cause:
        error = RuntimeError("could not create the topic")
        error.add_note("see the runbook\nof the platform team")
        raise error from cause


def handled_quota(spark: SparkSession) -> None:
    """An application's error while kafka-python's error 89 is handled (no `from`)."""
    run(spark, _while_handled)


def _while_handled() -> None:
    try:
        _kafka_python_quota()
    except Exception as error:  # noqa: BLE001 - what is tried
        raise KeyError(str(error)[:10])  # noqa: B904 - without `from`


def confluent_timeout(spark: SparkSession) -> None:
    """confluent-kafka could not deliver a record in time."""
    run(spark, _confluent_timeout)


def _confluent_timeout() -> None:
    from confluent_kafka import KafkaException, Producer  # noqa: PLC0415 - a task's

    failed = []
    with _silent() as address:
        settings = {"bootstrap.servers": address, "message.timeout.ms": 300}
        producer = Producer({**settings, "log_level": 0})
        producer.produce("topic", b"", on_delivery=lambda error, _: failed.append(error))
        producer.flush(10)
    raise KafkaException(failed[0])


def kafka_python_timeout(spark: SparkSession) -> None:
    """kafka-python got no metadata in time."""
    run(spark, _kafka_python_timeout)


def _kafka_python_timeout() -> None:
    from kafka import KafkaProducer  # noqa: PLC0415 - a task's

    with _silent() as address:
        producer = KafkaProducer(bootstrap_servers=address, api_version=(3, 9), max_block_ms=300)
        try:
            producer.send("topic", b"").get(5)
        finally:
            producer.close(0)


class _silent:  # noqa: N801 - used as a function
    """A server that accepts and never answers."""

    def __enter__(self) -> str:
        self._socket = socket.create_server(("127.0.0.1", 0))
        return f"127.0.0.1:{self._socket.getsockname()[1]}"

    def __exit__(self, *_: object) -> None:
        self._socket.close()


def confluent_other(spark: SparkSession) -> None:
    """Another error of confluent-kafka."""
    run(spark, _confluent_other)


def _confluent_other() -> Never:
    from confluent_kafka import KafkaError, KafkaException  # noqa: PLC0415 - a task's

    raise KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))


def quoted_source(spark: SparkSession) -> None:
    """Raise an application's error whose traceback quotes source lines that name quota errors."""
    run(spark, _quoted)


def _quoted() -> None:
    ThrottlingQuotaExceededError = int  # noqa: N806 - a quoted line is to say it
    ThrottlingQuotaExceededError("KafkaError{code=THROTTLING_QUOTA_EXCEEDED,val=89}"[:5])


def quoted_message(spark: SparkSession) -> None:
    """Raise an application's error whose message and notes have lines that look like quota errors."""
    run(spark, _quoted_message)


def _quoted_message() -> Never:
    line = "kafka.errors.ThrottlingQuotaExceededError: [Error 89] Quota exceeded"
    error = ValueError(f"a log of yesterday:\n{line}")
    error.add_note(f"cimpl.KafkaException: {line}")
    raise error


def exception_group(spark: SparkSession) -> None:
    """Raise a group of errors, one of them confluent-kafka's error 89."""
    run(spark, _group)


def _group() -> Never:
    errors: list[Exception] = []
    for fail in (_confluent_quota, _application):
        try:
            fail()
        except Exception as error:  # noqa: BLE001 - it is raised below
            errors.append(error)
    raise ExceptionGroup("two of three topics", errors)


def worker_exit(spark: SparkSession) -> None:
    """End the Python worker, as when the kernel kills it for its memory."""
    run(spark, _exit)


def _exit() -> Never:
    os._exit(137)
