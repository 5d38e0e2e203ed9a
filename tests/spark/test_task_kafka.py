"""Real clients in tasks that partly fail, against a real broker's quotas: the sums are what they got, and what the broker says."""

import logging
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import confluent_kafka
import kafka as kafka_python
import pytest
from pyspark import TaskContext
from pyspark.sql import SparkSession
from tests.cluster.cluster import Cluster
from tests.cluster.quotas import Quotas
from tests.cluster.traffic import Traffic
from tests.integration.eventually import eventually
from tests.spark.broker_account import reported_ms
from tests.spark.reporting import Reported, Watched
from tests.spark.server import Server

from quotascope.clients.accounting import Side, ThrottleAccount, confluent_kafka_config, kafka_python_config
from quotascope.spark_listener import attach
from quotascope.spark_listener.task import throttle_scope

pytestmark = pytest.mark.real

RATE = 10_000.0
"""Bytes/s; Kafka lets about ten seconds of it pass first."""
RECORD = bytes(1_000)
FLUSHES = 8
"""Of ten records each, in each attempt: the second attempt with a client id is throttled, and the third."""
RECORDS = 10 * FLUSHES
CLIENTS = 4
"""Of each library: two tasks, of which the second fails at first; on a slow machine one more, so that it is throttled before."""


class Logged(logging.Handler):
    """The throttle times that kafka-python logs, one warning for each response."""

    def __init__(self, reported: Reported) -> None:
        super().__init__()
        self._reported = reported

    def emit(self, record: logging.LogRecord) -> None:
        if "throttled by broker" in str(record.msg):
            *_, throttle_ms = record.args or (0,)
            self._reported.write(int(str(throttle_ms)))


def librdkafka(server: Server, account: ThrottleAccount, side: Side, reported: Reported) -> dict[str, Any]:
    """A configuration that counts, and writes down what the library says by itself."""

    def write(event: Any) -> None:
        if event.throttle_time:
            reported.write(round(event.throttle_time * 1_000))

    config = {**server.librdkafka(), "throttle_cb": write}
    return confluent_kafka_config(config, account, side=side)


def confluent_produce(server: Server, account: ThrottleAccount, topic: str, reported: Reported) -> None:
    producer = confluent_kafka.Producer(librdkafka(server, account, "write", reported))
    for _ in range(FLUSHES):
        for _ in range(10):
            producer.produce(topic, RECORD)
        producer.flush(20)
    producer.poll(0)


def confluent_fetch(server: Server, account: ThrottleAccount, topic: str, reported: Reported) -> None:
    few = {"max.partition.fetch.bytes": 10_000, "group.id": uuid.uuid4().hex}
    config = librdkafka(server, account, "read", reported)
    consumer = confluent_kafka.Consumer({**config, **few})
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    seen = 0
    while seen < RECORDS:
        seen += len(consumer.consume(RECORDS, 0.2))
    consumer.close()


def python_produce(server: Server, account: ThrottleAccount, topic: str, _reported: Reported) -> None:
    config = kafka_python_config(server.pure_python(), account, side="write")
    with closing(kafka_python.KafkaProducer(**config)) as producer:
        for _ in range(FLUSHES):
            for _ in range(10):
                producer.send(topic, RECORD)
            producer.flush(20)


def python_fetch(server: Server, account: ThrottleAccount, topic: str, _reported: Reported) -> None:
    few = {"max_partition_fetch_bytes": 10_000, "auto_offset_reset": "earliest"}
    config = kafka_python_config(server.pure_python(), account, side="read")
    with closing(kafka_python.KafkaConsumer(**config, **few)) as consumer:
        consumer.assign([kafka_python.TopicPartition(topic, 0)])
        seen = 0
        while seen < RECORDS:
            seen += sum(len(found) for found in consumer.poll(200).values())


Use = Callable[[Server, ThrottleAccount, str, Reported], None]
LIBRARIES = ("librdkafka", "pure-python")
USES: dict[Side, tuple[Use, Use]] = {
    "write": (confluent_produce, python_produce),
    "read": (confluent_fetch, python_fetch),
}


@pytest.fixture(scope="module")
def watched(spark: SparkSession) -> Iterator[Watched]:
    with attach(spark) as listener:
        yield Watched(spark, listener)


@pytest.fixture
def tolds(quotas: Quotas, tmp_path: Path) -> list[Reported]:
    """Clients of alice's with a low quota on either side, one for each library."""
    names = [f"{each}-{uuid.uuid4().hex[:12]}" for each in LIBRARIES]
    limits = {"producer_byte_rate": RATE, "consumer_byte_rate": RATE}
    for name in names:
        quotas.set(({"user": "alice", "client-id": name}, limits))
        (tmp_path / name).mkdir()
    return [Reported(tmp_path / name, name) for name in names]


def run(spark: SparkSession, address: str, side: Side, topic: str, tolds: list[Reported]) -> None:
    """Two tasks for each library; the first attempt at the second of each fails when it has done its work."""
    uses = USES[side]

    def work(index: int, _: Iterable[int]) -> list[int]:
        second, library = divmod(index, 2)
        reported = tolds[library]
        handler = Logged(reported)
        logger = logging.getLogger("kafka.net.connection")
        logger.addHandler(handler)
        try:
            with throttle_scope() as account:
                server = Server(address, reported.client_id)
                uses[library](server, account, topic, reported)
                task = TaskContext.get()
                if second and task is not None and task.attemptNumber() == 0:
                    attempt = str(task.taskAttemptId())
                    while not (reported.folder / attempt).exists():  # on a slow machine, as much once more
                        uses[library](server, account, topic, reported)
                    reported.failed.write_text(attempt)
                    raise RuntimeError("could not go on")
        finally:
            logger.removeHandler(handler)
        return []

    numbers = spark.sparkContext.parallelize(range(4), 4)
    numbers.mapPartitionsWithIndex(work).count()


@pytest.mark.parametrize("side", ["write", "read"])
def test_the_sums_are_what_brokers_reported(
    watched: Watched, kafka: Cluster, traffic: Traffic, tolds: list[Reported], side: Side
) -> None:
    """For each library to the millisecond, with attempts that fail; the broker says the same, but for fetches that no one waited for."""
    topic = traffic.topic(records=RECORDS if side == "read" else 0)
    before = reported_ms(kafka, side)
    run(watched.spark, kafka.sasl, side, topic, tolds)
    total = 0
    for reported in tolds:
        truth = reported.truth()
        assert (reported.folder / reported.failed.read_text()).exists()
        assert watched.counted(reported.client_id)[:2] == (sum(truth), len(truth))
        total += sum(truth)
    longest = max(max(reported.truth()) for reported in tolds)
    missing = 0 if side == "write" else len(tolds) * CLIENTS * longest

    def look() -> None:
        counted = reported_ms(kafka, side) - before
        assert total - 0.5 <= counted <= total + missing + 0.5

    eventually(look, seconds=10)
