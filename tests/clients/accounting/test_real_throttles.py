"""The accounts of real producers and consumers hold the throttle times of their responses, and agree with the broker."""

import logging
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import confluent_kafka
import kafka as kafka_python
import pytest
from tests.clients.logins import librdkafka, pure_python
from tests.cluster.cluster import Cluster
from tests.cluster.quotas import Quotas, Rule
from tests.cluster.traffic import Traffic
from tests.integration import agent
from tests.integration.eventually import eventually

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
"""Bytes/s, over some ten seconds: enough for two thirds of the records, which have 1000 bytes each, even when they take their time."""
RECORDS = 1_050
ENOUGH = 3
"""Throttles, after which the quota is raised: there is nothing new to count."""


@pytest.fixture
def client_id(quotas: Quotas) -> str:
    """A client id of alice's with a low quota on either side; the broker applies it before it answers."""
    name = f"counted-{uuid.uuid4().hex[:12]}"
    quotas.set(limits(name, RATE))
    return name


def limits(client_id: str, rate: float) -> Rule:
    return {"user": "alice", "client-id": client_id}, {"producer_byte_rate": rate, "consumer_byte_rate": rate}


class Reported(logging.Handler):
    """The throttle times that kafka-python logs, one warning for each response."""

    def __init__(self) -> None:
        super().__init__()
        self.times_ms: list[int] = []

    def emit(self, record: logging.LogRecord) -> None:
        if "throttled by broker" in str(record.msg):
            *_, throttle_ms = record.args or (0,)
            self.times_ms.append(int(str(throttle_ms)))


@pytest.fixture
def reported() -> Iterator[Reported]:
    handler = Reported()
    logger = logging.getLogger("kafka.net.connection")
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)


def relief(quotas: Quotas, client_id: str, times_ms: list[int]) -> Callable[[], None]:
    """To be called between requests."""

    def relieve() -> None:
        if len(times_ms) >= ENOUGH:
            quotas.set(limits(client_id, 1e9))

    return relieve


def only(account: ThrottleAccount) -> ClientTotals:
    (totals,) = account.totals()
    return totals


def agrees(totals: ClientTotals, times_ms: list[int]) -> None:
    """The account is exactly the throttle times, and there are some."""
    times_ms = [each for each in times_ms if each]
    assert len(times_ms) > 1
    assert totals.throttled_ms == sum(times_ms)
    assert totals.responses == len(times_ms)
    assert totals.longest_ms == totals.recent_longest_ms == max(times_ms)


def broker_ms(kafka: Cluster, request: str) -> float:
    """All throttle times of a request that the broker has counted (`RequestMetrics`, mean times count)."""
    bean = f"kafka.network:type=RequestMetrics,name=ThrottleTimeMs,request={request}"
    url = kafka.brokers[0].agents.jolokia
    (item,) = agent.ask(url, [{"type": "read", "mbean": bean}])
    return float(item["value"]["Mean"] * item["value"]["Count"])


def filled(kafka: Cluster, traffic: Traffic) -> str:
    """A topic with the records in batches of ten: one batch that is more than a quota's whole window is never delivered."""
    topic = traffic.topic()
    small = {"bootstrap.servers": kafka.admin, "batch.num.messages": 10}
    producer = confluent_kafka.Producer(small)
    for _ in range(RECORDS):
        producer.produce(topic, bytes(1_000))
    producer.flush(20)
    return topic


def confluent_produce(config: dict[str, Any], topic: str, between: Callable[[], None]) -> None:
    producer = confluent_kafka.Producer(config)
    for number in range(RECORDS):
        producer.produce(topic, bytes(1_000))
        if number % 10 == 9:
            producer.flush(20)
            between()
    producer.poll(0)


def confluent_fetch(config: dict[str, Any], topic: str, between: Callable[[], None]) -> None:
    few = {"max.partition.fetch.bytes": 20_000, "group.id": uuid.uuid4().hex}
    consumer = confluent_kafka.Consumer({**config, **few})
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    seen = 0
    while seen < RECORDS:
        seen += len(consumer.consume(RECORDS, 0.2))
        between()
    consumer.close()


def python_produce(config: dict[str, Any], topic: str, between: Callable[[], None]) -> None:
    with closing(kafka_python.KafkaProducer(**config)) as producer:
        for number in range(RECORDS):
            producer.send(topic, bytes(1_000))
            if number % 10 == 9:
                producer.flush(20)
                between()


def python_fetch(config: dict[str, Any], topic: str, between: Callable[[], None]) -> None:
    few = {"max_partition_fetch_bytes": 20_000, "auto_offset_reset": "earliest"}
    with closing(kafka_python.KafkaConsumer(**config, **few)) as consumer:
        consumer.assign([kafka_python.TopicPartition(topic, 0)])
        seen = 0
        while seen < RECORDS:
            seen += sum(len(found) for found in consumer.poll(200).values())
            between()


REQUESTS: dict[Side, str] = {"write": "Produce", "read": "FetchConsumer"}
SIDES = pytest.mark.parametrize("side", REQUESTS)


@SIDES
def test_confluent_kafka_is_counted_exactly(
    kafka: Cluster, quotas: Quotas, traffic: Traffic, client_id: str, side: Side
) -> None:
    """Each event counts once, beside the program's own callback, and the sum is the broker's but for a last response that was not waited for."""
    account = ThrottleAccount()
    events: list[int] = []
    config = {
        **librdkafka(kafka, "alice", client_id),
        "throttle_cb": lambda event: events.append(round(event.throttle_time * 1_000)),
    }
    counted = confluent_kafka_config(config, account, side=side)
    topic = traffic.topic() if side == "write" else filled(kafka, traffic)
    before = broker_ms(kafka, REQUESTS[side])
    run = confluent_produce if side == "write" else confluent_fetch
    run(counted, topic, relief(quotas, client_id, events))
    totals = only(account)
    agrees(totals, events)
    assert totals.client == ("alice", client_id, side)
    close_to_the_broker(kafka, REQUESTS[side], before, totals, exact=side == "write")


@SIDES
def test_kafka_python_is_counted_exactly(
    kafka: Cluster, quotas: Quotas, traffic: Traffic, client_id: str, reported: Reported, side: Side
) -> None:
    """Each response counts once, and the sum is the broker's but for a last response that was not waited for."""
    account = ThrottleAccount()
    config = kafka_python_config(pure_python(kafka, "alice", client_id), account, side=side)
    topic = traffic.topic() if side == "write" else filled(kafka, traffic)
    before = broker_ms(kafka, REQUESTS[side])
    run = python_produce if side == "write" else python_fetch
    run(config, topic, relief(quotas, client_id, reported.times_ms))
    totals = only(account)
    agrees(totals, reported.times_ms)
    assert totals.client == ("alice", client_id, side)
    close_to_the_broker(kafka, REQUESTS[side], before, totals, exact=side == "write")


def close_to_the_broker(kafka: Cluster, request: str, before: float, totals: ClientTotals, *, exact: bool) -> None:
    """The broker counts in whole ms, too, so that the sums are equal; of fetches it may have answered one more."""
    missing = 0 if exact else totals.longest_ms

    def look() -> None:
        counted = broker_ms(kafka, request) - before
        assert totals.throttled_ms - 0.5 <= counted <= totals.throttled_ms + missing + 0.5

    eventually(look, seconds=10)


def test_a_client_that_runs_can_be_watched(
    kafka: Cluster, traffic: Traffic, client_id: str, reported: Reported
) -> None:
    """From then on every response counts, and the client's own metrics have the sum."""
    account = ThrottleAccount()
    topic = traffic.topic()
    config = pure_python(kafka, "alice", client_id)
    with closing(kafka_python.KafkaProducer(**config)) as producer:
        producer.send(topic, bytes(1_000)).get(20)
        assert watch(producer, account, side="write")
        assert not watch(producer, account, side="write")
        seen = len(reported.times_ms)
        deadline = time.monotonic() + 60
        while len(reported.times_ms) < seen + 2 and time.monotonic() < deadline:
            producer.send(topic, bytes(200_000)).get(20)
        totals = only(account)
        agrees(totals, reported.times_ms[seen:])
        own = producer.metrics()["quotascope"]["throttle-time-total"]
        assert own == totals.throttled_ms
