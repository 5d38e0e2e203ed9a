"""Topics that a job creates under a mutation quota, in its driver and in a task: what was repeated is in the job's metrics."""

import uuid
from collections.abc import Iterable, Iterator
from contextlib import closing

import pytest
from kafka import KafkaAdminClient
from prometheus_client import CollectorRegistry
from tests.clients.real import Login
from tests.cluster.buckets import full_bucket
from tests.cluster.cluster import Cluster
from tests.cluster.quotas import Quotas
from tests.cluster.traffic import Traffic
from tests.spark.reporting import Watched, first_attempt

from quotascope.clients.accounting import ThrottleAccount
from quotascope.clients.throttled_admin.kafka_python import ThrottleAwareAdmin
from quotascope.spark_listener.exposition import JobCollector
from quotascope.spark_listener.task import throttle_scope

pytestmark = pytest.mark.real

RATE = 2.0
"""Partitions/s; Kafka lets a bucket hold eleven seconds of it."""
PARTITIONS = 10


@pytest.fixture
def client_id(quotas: Quotas, traffic: Traffic) -> str:
    """A client id of carol's with a bucket that is full; it refills slowly."""
    return full_bucket(quotas, traffic, "job", RATE)


@pytest.fixture
def names(kafka: Cluster) -> Iterator[list[str]]:
    """Names of topics, of which four overdraw a bucket by seconds however long it was filled; all are deleted."""
    names = [f"job-{uuid.uuid4().hex[:12]}" for _ in range(8)]
    yield names
    with closing(KafkaAdminClient(bootstrap_servers=kafka.admin)) as admin:
        admin.delete_topics(names, raise_errors=False)


def create(address: str, client_id: str, account: ThrottleAccount, names: list[str]) -> int:
    """Create the topics as carol, and say what was repeated."""
    admin = ThrottleAwareAdmin(account, **Login(address, client_id, "carol").pure_python())
    shape = {"num_partitions": PARTITIONS, "replication_factor": 1}
    with closing(admin):
        admin.create_topics(dict.fromkeys(names, shape))
    found = [each for each in account.totals() if each.client.client_id == client_id]
    return found[0].quota_retries


def shown(watched: Watched, client_id: str) -> float:
    registry = CollectorRegistry()
    registry.register(JobCollector(lambda: [watched.listener.snapshot()]))
    app = watched.listener.snapshot().app
    labels = {"app": app, "user": "carol", "client_id": client_id}
    name = "spark_kafka_admin_quota_retries_total"
    return registry.get_sample_value(name, labels) or 0


def test_retries_of_a_job_are_shown(watched: Watched, kafka: Cluster, client_id: str, names: list[str]) -> None:
    """Those of its driver and of a task, also when that fails when it has created its topics."""
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
