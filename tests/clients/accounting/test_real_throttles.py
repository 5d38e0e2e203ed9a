"""Accounts of real producers and consumers have the throttle times of their responses, and agree with the broker."""

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing

import confluent_kafka
import kafka as kafka_python
import pytest
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
from tests.cluster.quotas import Quotas, Rule
from tests.cluster.traffic import Traffic

from quotascope.clients.accounting import (
    ClientTotals,
    Side,
    ThrottleAccount,
    confluent_kafka_config,
    kafka_python_config,
    watch,
)

pytestmark = pytest.mark.real

RATE = 70_000.0
"""
Bytes/s, over some ten seconds: enough for two thirds of the records, which have 1000 bytes each, even when they take
their time.
"""
RECORDS = 1_050
ENOUGH = 3
"""Throttles, after which the quota is raised: there is nothing new to count."""


@pytest.fixture
def client_id(quotas: Quotas) -> str:
    """Return a client id of alice's with a low quota in both directions, once the broker applies it."""
    name = f"counted-{uuid.uuid4().hex[:12]}"
    quotas.set(limits(name, RATE))
    return name


def limits(client_id: str, rate: float) -> Rule:
    return {"user": "alice", "client-id": client_id}, {"producer_byte_rate": rate, "consumer_byte_rate": rate}


@pytest.fixture
def reported() -> Iterator[list[int]]:
    """The throttle times in ms that kafka-python logs."""
    times_ms: list[int] = []
    with throttles_logged(times_ms.append):
        yield times_ms


def relief(quotas: Quotas, client_id: str, times_ms: list[int]) -> Callable[[], None]:
    """Return a function to call between requests, which raises the quota after enough throttles."""

    def relieve() -> None:
        if len(times_ms) >= ENOUGH:
            quotas.set(limits(client_id, 1e9))

    return relieve


def only(account: ThrottleAccount) -> ClientTotals:
    (totals,) = account.totals()
    return totals


def agrees(totals: ClientTotals, times_ms: list[int]) -> None:
    """Assert that the account is exactly the throttle times, and that there are some."""
    times_ms = [time_ms for time_ms in times_ms if time_ms]
    assert len(times_ms) > 1
    assert totals.throttled_ms == sum(times_ms)
    assert totals.responses == len(times_ms)
    assert totals.longest_ms == totals.recent_longest_ms == max(times_ms)


def filled(kafka: Cluster, traffic: Traffic) -> str:
    """
    Yield a topic with the records in batches of ten.

    A single batch beyond a quota's whole window is never delivered.
    """
    topic = traffic.topic()
    small = {"bootstrap.servers": kafka.admin, "batch.num.messages": 10}
    producer = confluent_kafka.Producer(small)
    for _ in range(RECORDS):
        producer.produce(topic, bytes(1_000))
    producer.flush(20)
    return topic


@pytest.mark.parametrize("use", [confluent_produce, confluent_fetch, python_produce, python_fetch])
def test_each_response_is_counted_exactly(
    kafka: Cluster, quotas: Quotas, traffic: Traffic, client_id: str, reported: list[int], use: Use
) -> None:
    """
    The account's sum is the broker's. A last response that was not waited for may be missing.

    A program's own callback is called as well.
    """
    account, login = ThrottleAccount(), Login(kafka.sasl, client_id)
    side: Side = "read" if use in {confluent_fetch, python_fetch} else "write"
    if use in {python_produce, python_fetch}:
        few = {"max_partition_fetch_bytes": 20_000} if side == "read" else {}
        config = kafka_python_config({**login.pure_python(), **few}, account, side=side)
    else:
        few = {"max.partition.fetch.bytes": 20_000} if side == "read" else {}
        callback = {"throttle_cb": lambda event: reported.append(round(event.throttle_time * 1_000))}
        config = confluent_kafka_config({**login.librdkafka(), **few, **callback}, account, side=side)
    topic = traffic.topic() if side == "write" else filled(kafka, traffic)
    broker = BrokerAccount(kafka, side)
    use(config, topic, RECORDS, relief(quotas, client_id, reported))
    totals = only(account)
    agrees(totals, reported)
    assert totals.client == ("alice", client_id, side)
    broker.agrees(totals.throttled_ms, 0 if side == "write" else totals.longest_ms)


def test_a_client_that_runs_can_be_watched(
    kafka: Cluster, traffic: Traffic, client_id: str, reported: list[int]
) -> None:
    """Every response counts after `watch`, and the client's own metrics have the sum."""
    account = ThrottleAccount()
    topic = traffic.topic()
    config = Login(kafka.sasl, client_id).pure_python()
    with closing(kafka_python.KafkaProducer(**config)) as producer:
        producer.send(topic, bytes(1_000)).get(20)
        assert watch(producer, account, side="write")
        assert not watch(producer, account, side="write")
        reported_before = len(reported)
        deadline = time.monotonic() + 60
        while len(reported) < reported_before + 2 and time.monotonic() < deadline:
            producer.send(topic, bytes(200_000)).get(20)
        totals = only(account)
        agrees(totals, reported[reported_before:])
        total_ms = producer.metrics()["quotascope"]["throttle-time-total"]
        assert total_ms == totals.throttled_ms
