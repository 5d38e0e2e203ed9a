"""
Clients of both libraries at a real broker.

How they log in, what they do there, and what they and the broker say of throttle times.
"""

import logging
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from math import inf
from typing import Any, NamedTuple

import confluent_kafka
import kafka as kafka_python
from tests.cluster.cluster import Cluster
from tests.cluster.users import USERS
from tests.integration import agent
from tests.integration.eventually import eventually

from quotascope.clients import ClientError, QuotaAdmin
from quotascope.clients.accounting import ClientTotals, Side
from quotascope.clients.quota_admin import BrokerSettings


def settings_of(admin: QuotaAdmin) -> BrokerSettings:
    """Return the settings of broker 1; raise the error in their place."""
    settings = admin.describe_all_settings([1], inf)[1]
    if isinstance(settings, ClientError):
        raise settings
    return settings


class Login(NamedTuple):
    """A client that logs in by SASL/PLAIN as one of `USERS`."""

    address: str
    client_id: str = ""
    user: str = "alice"

    def librdkafka(self) -> dict[str, Any]:
        return {
            "bootstrap.servers": self.address,
            "client.id": self.client_id,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": self.user,
            "sasl.password": USERS[self.user],
            "log_level": 0,
        }

    def pure_python(self) -> dict[str, Any]:
        return {
            "bootstrap_servers": self.address,
            "client_id": self.client_id,
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "PLAIN",
            "sasl_plain_username": self.user,
            "sasl_plain_password": USERS[self.user],
        }

    def java(self) -> dict[str, str]:
        """Return the configuration of Kafka's own clients, without the client id."""
        module = "org.apache.kafka.common.security.plain.PlainLoginModule"
        return {
            "bootstrap.servers": self.address,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f'{module} required username="{self.user}" password="{USERS[self.user]}";',
        }


Use = Callable[[dict[str, Any], str, int, Callable[[], None]], None]
"""
Writes or reads records of 1000 bytes, by a configuration, in a topic, so many; what it calls between its requests.
"""


def confluent_produce(config: dict[str, Any], topic: str, records: int, between: Callable[[], None]) -> None:
    producer = confluent_kafka.Producer(config)
    for number in range(records):
        producer.produce(topic, bytes(1_000))
        if number % 10 == 9:
            producer.flush(20)
            between()
    producer.poll(0)


def confluent_fetch(config: dict[str, Any], topic: str, records: int, between: Callable[[], None]) -> None:
    consumer = confluent_kafka.Consumer({**config, "group.id": uuid.uuid4().hex})
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    consumed = 0
    while consumed < records:
        consumed += len(consumer.consume(records, 0.2))
        between()
    consumer.close()


def python_produce(config: dict[str, Any], topic: str, records: int, between: Callable[[], None]) -> None:
    with closing(kafka_python.KafkaProducer(**config)) as producer:
        for number in range(records):
            producer.send(topic, bytes(1_000))
            if number % 10 == 9:
                producer.flush(20)
                between()


def python_fetch(config: dict[str, Any], topic: str, records: int, between: Callable[[], None]) -> None:
    with closing(kafka_python.KafkaConsumer(**config, auto_offset_reset="earliest")) as consumer:
        consumer.assign([kafka_python.TopicPartition(topic, 0)])
        consumed = 0
        while consumed < records:
            consumed += sum(len(batch) for batch in consumer.poll(200).values())
            between()


class _Passing(logging.Handler):
    def __init__(self, note: Callable[[int], object]) -> None:
        super().__init__()
        self._note = note

    def emit(self, record: logging.LogRecord) -> None:
        if "throttled by broker" in str(record.msg):
            *_, throttle_ms = record.args or (0,)
            self._note(int(str(throttle_ms)))


@contextmanager
def throttles_logged(note: Callable[[int], object]) -> Iterator[None]:
    """Pass on the throttle times in ms that kafka-python logs, one warning for each response that has one."""
    handler, logger = _Passing(note), logging.getLogger("kafka.net.connection")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def _reported_ms(kafka: Cluster, side: Side) -> float:
    request = {"read": "FetchConsumer", "write": "Produce"}[side]
    bean = f"kafka.network:type=RequestMetrics,name=ThrottleTimeMs,request={request}"
    (item,) = agent.ask(kafka.brokers[0].agents.jolokia, [{"type": "read", "mbean": bean}])
    return float(item["value"]["Mean"] * item["value"]["Count"])


class BrokerAccount:
    """A broker's account of throttle times since its creation, to compare with that of a client."""

    def __init__(self, kafka: Cluster, side: Side) -> None:
        self._count = partial(_reported_ms, kafka, side)
        self._before = self._count()

    def agrees(self, throttled_ms: int, unread_ms: int = 0, tolerance_ms: float = 0.5) -> None:
        """
        Assert that the broker counts the same in whole ms.

        It may have answered a few more fetches, whose answers were not read.
        """

        def look() -> None:
            difference_ms = self._count() - self._before - throttled_ms
            assert -tolerance_ms <= difference_ms <= unread_ms + tolerance_ms

        eventually(look, seconds=10)

    def agrees_with_estimate(self, totals: ClientTotals) -> None:
        """
        Assert that the account of a Java client, computed from means and counts, agrees within 1 ms.

        One more fetch may have been answered.
        """
        assert totals.throttled_ms > 1_000
        assert totals.throttled_ms <= totals.responses * totals.longest_ms
        self.agrees(totals.throttled_ms, totals.longest_ms if totals.client.side == "read" else 0, 1)
