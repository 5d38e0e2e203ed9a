"""
A job that waits for Kafka in all the ways that there are.

The functions are called in its driver, or run in its tasks.
"""

import threading
import uuid
from collections.abc import Callable, Iterable
from contextlib import closing
from functools import partial
from typing import Any

import confluent_kafka
import kafka as kafka_python
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from tests.cluster.users import USERS

from quotascope.clients.accounting import ThrottleAccount, confluent_kafka_config, kafka_python_config
from quotascope.clients.throttled_admin.kafka_python import ThrottleAwareAdmin
from quotascope.spark_listener import Listener, attach
from quotascope.spark_listener.jvm import REPORTER
from quotascope.spark_listener.task import throttle_scope

_BURST, _BURSTS = 10, 3
_RECORD = bytes(1_000)
_STOP = threading.Event()
_THREADS: list[threading.Thread] = []
_LISTENERS: list[Listener] = []

Kafka = dict[str, str]
"""Kafka of a broker: `sasl`, and `plain`, where every user is ANONYMOUS; and topics, `written` and `read`."""


def begin(spark: SparkSession, kafka: Kafka, options: dict[str, Any]) -> str | None:
    """Attach, begin to work and return where the page is."""
    listener = attach(spark, **options)
    _LISTENERS.append(listener)
    _queries(spark, kafka)
    for work in (partial(_write_round, spark, kafka), partial(_topic_round, spark, kafka)):
        thread = threading.Thread(target=_again, args=(work,), daemon=True)
        thread.start()
        _THREADS.append(thread)
    return listener.url


def end(spark: SparkSession) -> list[str]:
    """Stop working, close the listener and return its problems."""
    _STOP.set()
    for query in spark.streams.active:
        query.stop()
    for thread in _THREADS:
        thread.join(60)
    listener = _LISTENERS.pop()
    listener.close()
    return [f"{problem.part}: {problem.text}" for problem in listener.problems]


def _again(work: Callable[[], None]) -> None:
    while not _STOP.wait(0.1):
        work()


def _write_round(spark: SparkSession, kafka: Kafka) -> None:
    kinds = spark.sparkContext.parallelize(range(len(_WRITERS)), len(_WRITERS))
    kinds.foreachPartition(partial(_write, kafka))


def _topic_round(spark: SparkSession, kafka: Kafka) -> None:
    task = spark.sparkContext.parallelize([0], 1)
    task.foreachPartition(partial(_ask_for_topics, kafka))


def _write(kafka: Kafka, kinds: Iterable[int]) -> None:
    for kind in kinds:
        with throttle_scope() as account:
            _WRITERS[kind](kafka, account)


def _pair(kafka: Kafka, account: ThrottleAccount) -> None:
    config = {**_sasl(kafka, "alice"), "client.id": "spark-pair"}
    _confluent(config, kafka["written"], account)


def _user(kafka: Kafka, account: ThrottleAccount) -> None:
    config = {**_sasl(kafka, "bob"), "client.id": "spark-user"}
    _confluent(config, kafka["written"], account)


def _anonymous(kafka: Kafka, account: ThrottleAccount) -> None:
    config = {"bootstrap.servers": kafka["plain"], "client.id": "spark-anonymous"}
    _confluent(config, kafka["written"], account)


def _client_id(kafka: Kafka, account: ThrottleAccount) -> None:
    config = {**_pure(kafka, "carol"), "client_id": "spark-client"}
    producer = kafka_python.KafkaProducer(**kafka_python_config(config, account, side="write"))
    for _ in range(_BURSTS):
        for _ in range(_BURST):
            producer.send(kafka["written"], _RECORD)
        producer.flush(60)
    producer.close()


_WRITERS = (_pair, _user, _client_id, _anonymous)


def _confluent(config: dict[str, Any], topic: str, account: ThrottleAccount) -> None:
    quiet = {**config, "log_level": 0}
    producer = confluent_kafka.Producer(confluent_kafka_config(quiet, account, side="write"))
    for _ in range(_BURSTS):
        for _ in range(_BURST):
            producer.produce(topic, _RECORD)
        producer.flush(60)
    producer.poll(0)


def _ask_for_topics(kafka: Kafka, _partition: Iterable[int]) -> None:
    """Ask for topics: the first attempt gives up at the first refusal, the second one waits for its turn."""
    task = TaskContext.get()
    assert task is not None
    patient = task.attemptNumber() > 0
    shape = {"num_partitions": 10, "replication_factor": 1}
    with throttle_scope() as account:
        config = {**_pure(kafka, "bob"), "client_id": "spark-topics"}
        with closing(ThrottleAwareAdmin(account, **config)) as admin:
            for _ in range(1 if patient else 8):
                admin.create_topics(
                    {f"never-{uuid.uuid4().hex}": shape}, validate_only=True, retry_on_quota_violation=patient
                )


def _queries(spark: SparkSession, kafka: Kafka) -> None:
    """
    Run two queries: one that keeps reporting its progress, and one whose first batch takes long.

    Our reporter names the user and the query of the latter.
    """
    reporter = {"kafka.metric.reporters": REPORTER}
    for name, offsets, extra in (("clicks", 200, {}), ("backlog", 10**6, reporter)):
        options = {**_connector(kafka, f"spark-{name}"), **extra}
        source = spark.readStream.format("kafka").options(**options)
        source = source.option("maxOffsetsPerTrigger", offsets)
        rows = source.option("subscribe", kafka["read"]).load()
        rows.writeStream.queryName(name).trigger(processingTime="1 second").foreachBatch(_count).start()


def _count(batch: DataFrame, _: int) -> None:
    batch.selectExpr("sum(length(value))").collect()


def _sasl(kafka: Kafka, user: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": kafka["sasl"],
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": USERS[user],
    }


def _pure(kafka: Kafka, user: str) -> dict[str, Any]:
    return {
        "bootstrap_servers": kafka["sasl"],
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": user,
        "sasl_plain_password": USERS[user],
    }


def _connector(kafka: Kafka, client_id: str) -> dict[str, str]:
    login = f'username="mallory" password="{USERS["mallory"]}"'
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    return {
        "kafka.bootstrap.servers": kafka["sasl"],
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": f"{module} required {login};",
        "kafka.client.id": client_id,
        "kafka.max.partition.fetch.bytes": "20000",
        "startingOffsets": "earliest",
    }
