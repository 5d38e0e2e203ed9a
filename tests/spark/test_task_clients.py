"""
Real clients in tasks that partly fail, against a real broker's quotas, as docs/guides/spark-tasks.md shows them.

The sums are the throttle times that the clients were sent.
"""

import re
import subprocess
import sys
import uuid
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient
from prometheus_client import CollectorRegistry
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
from tests.cluster.buckets import full_bucket, topic_names
from tests.cluster.cluster import Cluster
from tests.cluster.quotas import Quotas
from tests.cluster.traffic import Traffic
from tests.spark.process import variables
from tests.spark.reporting import Reported, Watched, first_attempt
from tests.spark.versions import RUNNING

from quotascope.clients.accounting import Side, ThrottleAccount, confluent_kafka_config, kafka_python_config
from quotascope.clients.throttled_admin.kafka_python import ThrottleAwareAdmin
from quotascope.spark_listener.exposition import JobCollector
from quotascope.spark_listener.task import throttle_scope

pytestmark = pytest.mark.real

RATE = 10_000.0
"""Bytes/s; Kafka lets about ten seconds of it pass first."""
FLUSHES = 8
"""Of ten records each, in each attempt: the second attempt with a client id is throttled, and the third."""
RECORDS = 10 * FLUSHES
CLIENTS = 4
"""
Of each library: two tasks, of which the second fails at first.

On a slow machine there is one more, so that it is throttled before.
"""


def librdkafka(login: Login, account: ThrottleAccount, side: Side, reported: Reported) -> dict[str, Any]:
    """Return a configuration that counts, and writes down what the library reports by itself."""

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
    """Return clients of alice's with a low quota in both directions, one for each library."""
    names = [f"{config.__name__}-{uuid.uuid4().hex[:12]}" for config in CONFIGS]
    limits = {"producer_byte_rate": RATE, "consumer_byte_rate": RATE}
    for name in names:
        quotas.set(({"user": "alice", "client-id": name}, limits))
        (tmp_path / name).mkdir()
    return [Reported(tmp_path / name, name) for name in names]


def run(spark: SparkSession, address: str, side: Side, topic: str, tolds: list[Reported]) -> None:
    """Run two tasks for each library; the first attempt at the second of each fails when it has done its work."""

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
    """
    Sums are right to the millisecond for each library, with attempts that fail.

    The broker says the same, but for fetches that no one waited for.
    """
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


MUTATION_RATE = 2.0
"""Partitions/s; Kafka lets a bucket hold eleven seconds of it."""
PARTITIONS = 10


@pytest.fixture
def client_id(quotas: Quotas, traffic: Traffic) -> str:
    """Return a client id of carol's with a full bucket that refills slowly."""
    return full_bucket(quotas, traffic, "job", MUTATION_RATE)


@pytest.fixture
def names(kafka: Cluster) -> Iterator[list[str]]:
    """Yield names of topics, of which four overdraw a bucket by seconds however long it was filled."""
    with topic_names(kafka, "job", 8) as names:
        yield names


def create(address: str, client_id: str, account: ThrottleAccount, names: list[str]) -> int:
    """Create the topics as carol, and return what was repeated."""
    admin = ThrottleAwareAdmin(account, **Login(address, client_id, "carol").pure_python())
    shape = {"num_partitions": PARTITIONS, "replication_factor": 1}
    with closing(admin):
        admin.create_topics(dict.fromkeys(names, shape))
    own_totals = [total for total in account.totals() if total.client.client_id == client_id]
    return own_totals[0].quota_retries


def shown(watched: Watched, client_id: str) -> float:
    registry = CollectorRegistry()
    registry.register(JobCollector(lambda: [watched.listener.snapshot()]))
    app = watched.listener.snapshot().app
    labels = {"app": app, "user": "carol", "client_id": client_id}
    name = "spark_kafka_admin_quota_retries_total"
    return registry.get_sample_value(name, labels) or 0


def test_retries_of_a_job_are_shown(watched: Watched, kafka: Cluster, client_id: str, names: list[str]) -> None:
    """Retries of the driver and of a task are shown, also when the task fails after it created its topics."""
    with throttle_scope() as account:
        in_driver = create(kafka.sasl, client_id, account, names[:4])
    assert in_driver > 0
    watched.counted(client_id)
    assert shown(watched, client_id) == in_driver
    address, others = kafka.sasl, names[4:]

    def work(_: Iterable[int]) -> list[int]:
        with throttle_scope() as account:
            if first_attempt():
                create(address, client_id, account, others)
                raise ValueError("no")
        return []

    watched.spark.sparkContext.parallelize(range(1), 1).mapPartitions(work).count()
    found = watched.counted(client_id)
    assert found.throttled_ms > 0
    assert shown(watched, client_id) > in_driver


PAGE = Path(__file__).parents[2] / "docs" / "guides" / "spark-tasks.md"


def blocks() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def test_the_examples_run(kafka: Cluster, tmp_path: Path) -> None:
    """The examples run against a real broker, on a real Spark, and print every client without a throttle."""
    with closing(KafkaAdminClient(bootstrap_servers=kafka.admin)) as admin:
        admin.delete_topics(["orders", "refunds"], raise_errors=False)
        shape = {"num_partitions": 1, "replication_factor": 1}
        admin.create_topics({"orders": shape}, wait_for_metadata=True)
    program = tmp_path / "job.py"
    program.write_text("\n".join(blocks()).replace("broker-1:9092", kafka.admin))
    done = subprocess.run(
        [sys.executable, str(program)],
        env=variables(RUNNING, tmp_path),
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-4_000:]
    assert len(blocks()) == 3
    printed = sorted(done.stdout.splitlines()[-3:])
    assert printed == ["billing write 0 0", "reports read 0 0", "topics admin 0 0"]
