"""
Jobs whose Kafka clients give up while a broker's quota keeps their connection muted (KIP-219).

Each has two tasks that write the same with the same patience: the first as a client with a limit, whose first attempt
fails, the second as a client without one, which succeeds.
"""

from collections.abc import Callable, Iterable
from contextlib import closing

from pyspark import TaskContext
from pyspark.sql import SparkSession
from tests.clients.real import Login

from quotascope.clients.accounting import ThrottleAccount, confluent_kafka_config, kafka_python_config
from quotascope.spark_listener.task import throttle_scope

LIMIT = {"producer_byte_rate": 1_000.0}
RECORDS = 3
RECORD = bytes(9_500)
"""Two of them in ten seconds are 90 % above the limit: nine seconds of throttle."""
PATIENCE_MS = 3_000
"""From the moment a record is sent; the third one meets a muted connection."""

Write = Callable[[Login, ThrottleAccount, str], None]


def confluent_throttled(spark: SparkSession, address: str, client_id: str, topic: str) -> None:
    """A record of confluent-kafka reaches its `message.timeout.ms`."""
    _run(spark, _confluent, Login(address, client_id), topic)


def kafka_python_throttled(spark: SparkSession, address: str, client_id: str, topic: str) -> None:
    """A record of kafka-python reaches its `delivery_timeout_ms`."""
    _run(spark, _kafka_python, Login(address, client_id), topic)


def _run(spark: SparkSession, write: Write, limited: Login, topic: str) -> None:
    unlimited = limited._replace(client_id=f"{limited.client_id}-unlimited")

    def work(index: int, rows: Iterable[int]) -> Iterable[int]:
        task = TaskContext.get()
        assert task is not None
        if index or task.attemptNumber() == 0:
            with throttle_scope() as account:
                write(unlimited if index else limited, account, topic)
        return rows

    spark.sparkContext.parallelize(range(4), 2).mapPartitionsWithIndex(work).count()


def _confluent(login: Login, account: ThrottleAccount, topic: str) -> None:
    from confluent_kafka import KafkaException, Producer  # noqa: PLC0415 - a task's

    config = {**login.librdkafka(), "message.timeout.ms": PATIENCE_MS}
    producer = Producer(confluent_kafka_config(config, account, side="write"))
    producer.list_topics(topic, 20)  # to connect takes nothing of its patience
    errors: list[object] = []
    for _ in range(RECORDS):
        producer.produce(topic, RECORD, on_delivery=lambda error, _: errors.append(error))
        producer.flush(20)
    if any(errors):
        raise KafkaException(next(filter(None, errors)))


def _kafka_python(login: Login, account: ThrottleAccount, topic: str) -> None:
    from kafka import KafkaProducer  # noqa: PLC0415 - a task's

    patience = {"linger_ms": 0, "request_timeout_ms": PATIENCE_MS, "delivery_timeout_ms": PATIENCE_MS}
    config = kafka_python_config(login.pure_python(), account, side="write")
    with closing(KafkaProducer(**config, **patience)) as producer:
        producer.partitions_for(topic)
        for _ in range(RECORDS):
            producer.send(topic, RECORD).get(20)
