"""Real clients in tasks that partly fail, against a real broker's quotas: the sums are what they got, and what the broker says."""

import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from pyspark import TaskContext
from pyspark.sql import SparkSession
from tests.clients.real import (
    BrokerAccount,
    Login,
    Use,
    confluent_fetch,
    confluent_produce,
    python_fetch,
    python_produce,
    throttles_logged,
)
from tests.cluster.cluster import Cluster
from tests.cluster.quotas import Quotas
from tests.cluster.traffic import Traffic
from tests.spark.reporting import Reported, Watched

from quotascope.clients.accounting import Side, ThrottleAccount, confluent_kafka_config, kafka_python_config
from quotascope.spark_listener.task import throttle_scope

pytestmark = pytest.mark.real

RATE = 10_000.0
"""Bytes/s; Kafka lets about ten seconds of it pass first."""
FLUSHES = 8
"""Of ten records each, in each attempt: the second attempt with a client id is throttled, and the third."""
RECORDS = 10 * FLUSHES
CLIENTS = 4
"""Of each library: two tasks, of which the second fails at first; on a slow machine one more, so that it is throttled before."""


def librdkafka(login: Login, account: ThrottleAccount, side: Side, reported: Reported) -> dict[str, Any]:
    """A configuration that counts, and writes down what the library says by itself."""

    def write(event: Any) -> None:
        if event.throttle_time:
            reported.write(round(event.throttle_time * 1_000))

    few = {} if side == "write" else {"max.partition.fetch.bytes": 10_000}
    return confluent_kafka_config({**login.librdkafka(), **few, "throttle_cb": write}, account, side=side)


def pure_python(login: Login, account: ThrottleAccount, side: Side, _reported: Reported) -> dict[str, Any]:
    few = {} if side == "write" else {"max_partition_fetch_bytes": 10_000}
    return kafka_python_config({**login.pure_python(), **few}, account, side=side)


CONFIGS = (librdkafka, pure_python)
USES: dict[Side, tuple[Use, Use]] = {
    "write": (confluent_produce, python_produce),
    "read": (confluent_fetch, python_fetch),
}


@pytest.fixture
def tolds(quotas: Quotas, tmp_path: Path) -> list[Reported]:
    """Clients of alice's with a low quota on either side, one for each library."""
    names = [f"{each.__name__}-{uuid.uuid4().hex[:12]}" for each in CONFIGS]
    limits = {"producer_byte_rate": RATE, "consumer_byte_rate": RATE}
    for name in names:
        quotas.set(({"user": "alice", "client-id": name}, limits))
        (tmp_path / name).mkdir()
    return [Reported(tmp_path / name, name) for name in names]


def run(spark: SparkSession, address: str, side: Side, topic: str, tolds: list[Reported]) -> None:
    """Two tasks for each library; the first attempt at the second of each fails when it has done its work."""

    def work(index: int, _: Iterable[int]) -> list[int]:
        second, library = divmod(index, 2)
        reported = tolds[library]

        def use() -> None:
            config = CONFIGS[library](Login(address, reported.client_id), account, side, reported)
            USES[side][library](config, topic, RECORDS, lambda: None)

        with throttles_logged(reported.write), throttle_scope() as account:
            use()
            task = TaskContext.get()
            if second and task is not None and task.attemptNumber() == 0:
                attempt = str(task.taskAttemptId())
                while not (reported.folder / attempt).exists():  # on a slow machine, as much once more
                    use()
                reported.failed.write_text(attempt)
                raise RuntimeError("could not go on")
        return []

    numbers = spark.sparkContext.parallelize(range(4), 4)
    numbers.mapPartitionsWithIndex(work).count()


@pytest.mark.parametrize("side", ["write", "read"])
def test_the_sums_are_what_brokers_reported(
    watched: Watched, kafka: Cluster, traffic: Traffic, tolds: list[Reported], side: Side
) -> None:
    """For each library to the millisecond, with attempts that fail; the broker says the same, but for fetches that no one waited for."""
    topic = traffic.topic(records=RECORDS if side == "read" else 0)
    broker = BrokerAccount(kafka, side)
    run(watched.spark, kafka.sasl, side, topic, tolds)
    total = 0
    for reported in tolds:
        truth = reported.truth()
        assert (reported.folder / reported.failed.read_text()).exists()
        assert watched.counted(reported.client_id)[:2] == (sum(truth), len(truth))
        total += sum(truth)
    longest = max(max(reported.truth()) for reported in tolds)
    broker.agrees(total, 0 if side == "write" else len(tolds) * CLIENTS * longest)
