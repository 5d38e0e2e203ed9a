"""
Sessions of roles on three brokers: users of a cloud's names, whose tokens nobody signed, and leaders that move.

As with IAM on Amazon MSK: a user is a role and a session that no one could list before, so that only a pattern, or the
default quota, can be about it.
"""

from __future__ import annotations

import base64
import json
import random
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import confluent_kafka
import kafka as kafka_python

from .cluster import Cluster, Plugin

ROLES: Final = ("etl", "fraud", "payments", "reports", "search")
PARTITIONS: Final = 20
_PREFIX: Final = "listener.name.sasl"
_MODULE: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
PLUGIN: Final = Plugin(
    logs_requests=True,
    settings={
        f"{_PREFIX}.sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{_PREFIX}.oauthbearer.sasl.jaas.config": f'{_MODULE} required unsecuredLoginStringClaim_sub="broker";',
        "log.segment.bytes": "16777216",
        "log.retention.bytes": "33554432",
        "log.retention.check.interval.ms": "5000",
    },
)
"""Brokers that take tokens without a signature, log each request, and keep little of what they are sent."""


def session(number: int) -> str:
    """Return the user of a session; each role has one of five."""
    role = ROLES[number % len(ROLES)]
    return f"arn:aws:sts::123456789012:assumed-role/{role}/session-{number:03d}"


def role(user: str) -> str:
    """Return the role of a session's user, empty for all other users."""
    name = user.removeprefix("arn:aws:sts::123456789012:assumed-role/").partition("/")[0]
    return name if name in ROLES else ""


def teams(price: float = 0.05) -> dict[str, Any]:
    """Return a file of teams: each owns the sessions of a role."""
    pattern = "arn:aws:sts::[0-9]+:assumed-role/{}/.*"
    return {
        "currency": "EUR",
        "teams": [
            {"team": role, "clients": [{"user_pattern": pattern.format(role)}], "price_per_gb_in": price}
            for role in ROLES
        ],
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """The bytes that all brokers together have counted since they started."""

    records_in: float
    """Record batches that clients produced (`BytesInPerSec`)."""
    records_out: float
    """Record batches that clients fetched (`BytesOutPerSec`)."""


def moved(cluster: Cluster) -> Moved:
    """Return the byte counters of the brokers, without copies among brokers, which have counters of their own."""
    sums = {}
    for name in ("BytesInPerSec", "BytesOutPerSec"):
        bean = f"kafka.server:type=BrokerTopicMetrics,name={name}"
        body = json.dumps([{"type": "read", "mbean": bean, "attribute": "Count"}]).encode()
        sums[name] = 0.0
        for broker in cluster.brokers:
            request = urllib.request.Request(broker.agents.jolokia, body)  # noqa: S310 - ours
            with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - ours
                (read,) = json.load(answer)
            sums[name] += read.get("value", 0)  # a broker without a request has no such bean
    return Moved(records_in=sums["BytesInPerSec"], records_out=sums["BytesOutPerSec"])


@dataclass(slots=True)
class Sessions:
    """
    Sessions that come and go: half of those that live produce, the others fetch what is produced.

    A producer sends requests of equal size at a steady pace to one partition. Brokers measure rates by windows that
    begin with a request: what a client sends seldom, they measure as more than it is.
    """

    cluster: Cluster
    topic: str
    count: int
    """Number of sessions over all the time."""
    seconds: float
    """Time in which they all have been there; the last ones stay."""
    living: int = 20
    size: int = 60_000
    """Bytes of a record, which is a request."""
    pace: float = 10.0
    """Records of a producer in a second."""
    started: int = 0
    waits: int = 0
    """Number of records that found a queue full, as of a session whose login takes long."""
    moves: int = 0
    """Number of leaders that were moved."""
    gaps: list[float] = field(default_factory=list)
    """Seconds between two records of a producer; longer than `pace` has it where the machine is busy."""

    def run(self, stop: threading.Event) -> None:
        """Drive all sessions until the event is set."""
        producers: dict[int, confluent_kafka.Producer] = {}
        consumers: dict[int, confluent_kafka.Consumer] = {}
        payload = random.Random(0).randbytes(self.size)  # noqa: S311 - no secret
        while self.started < self.living:
            self._replace(producers, consumers)
        begin = before = time.monotonic()
        step = 0
        while not stop.is_set():
            now = time.monotonic()
            if step:
                self.gaps.append(now - before)
            passed, before = now - begin, now
            due = self.living + int((self.count - self.living) * min(1.0, passed / self.seconds))
            while self.started < due:
                self._replace(producers, consumers)
            for number, producer in producers.items():
                try:
                    producer.produce(self.topic, payload, partition=number % PARTITIONS)
                except BufferError:
                    self.waits += 1
                producer.poll(0)
            for consumer in consumers.values():
                consumer.consume(100, 0)
            step += 1
            stop.wait(max(0.0, begin + step / self.pace - time.monotonic()))
        for producer in producers.values():
            producer.purge()
        for consumer in consumers.values():
            consumer.close()

    def _replace(
        self, producers: dict[int, confluent_kafka.Producer], consumers: dict[int, confluent_kafka.Consumer]
    ) -> None:
        """Start a session, and end the oldest one."""
        number = self.started
        self.started += 1
        if number // len(ROLES) % 2:
            consumers[number] = self._consumer(number)
        else:
            producers[number] = self._producer(number)
        gone = number - self.living
        if gone in producers:
            producers.pop(gone).purge()
        if gone in consumers:
            consumers.pop(gone).close()

    def move_leaders(self, stop: threading.Event, every_seconds: float) -> None:
        """Let another replica lead a partition, one after the other, until the event is set."""
        admin = kafka_python.KafkaAdminClient(bootstrap_servers=self.cluster.admin)
        brokers = [broker.node_id for broker in self.cluster.brokers]
        try:
            while not stop.wait(every_seconds):
                partition = self.moves % PARTITIONS
                place = (partition + 1 + self.moves // PARTITIONS) % len(brokers)
                replicas = [brokers[place], brokers[(place + 1) % len(brokers)]]
                target = kafka_python.TopicPartition(self.topic, partition)
                admin.alter_partition_reassignments({target: replicas})
                stop.wait(2)
                admin.elect_leaders(0, {self.topic: [partition]}, raise_errors=False)
                self.moves += 1
        finally:
            admin.close()

    def _settings(self, number: int) -> Mapping[str, Any]:
        return {
            "bootstrap.servers": self.cluster.sasl,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "oauth_cb": lambda _config: (_token(session(number)), time.time() + 3_600),
            "client.id": f"app-{number % 3}",
            "log_level": 0,
        }

    def _producer(self, number: int) -> confluent_kafka.Producer:
        own = {"acks": 1, "linger.ms": 0, "batch.num.messages": 1, "queue.buffering.max.messages": 200}
        return confluent_kafka.Producer({**self._settings(number), **own})

    def _consumer(self, number: int) -> confluent_kafka.Consumer:
        own = {"group.id": f"group-{number}", "enable.auto.commit": False, "fetch.wait.max.ms": 500}
        consumer = confluent_kafka.Consumer({**self._settings(number), **own})
        partition = (number - len(ROLES)) % PARTITIONS  # a producer that came just before sends to it
        consumer.assign([confluent_kafka.TopicPartition(self.topic, partition, confluent_kafka.OFFSET_END)])
        return consumer


def _token(user: str) -> str:
    """Return a JSON web token that nobody signed."""
    now = time.time()
    parts: Sequence[Mapping[str, Any]] = ({"alg": "none"}, {"sub": user, "iat": now, "exp": now + 3_600})
    return ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts) + "."


@contextmanager
def coming_and_going(sessions: Sessions, move_every_seconds: float) -> Iterator[None]:
    """Let sessions work and leaders move for the length of a `with` block."""
    stop = threading.Event()
    threads = [
        threading.Thread(target=sessions.run, args=(stop,)),
        threading.Thread(target=sessions.move_leaders, args=(stop, move_every_seconds)),
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def create_topic(cluster: Cluster, name: str) -> str:
    """Create the topic of the sessions, with two replicas, and return its name."""
    admin = kafka_python.KafkaAdminClient(bootstrap_servers=cluster.admin)
    try:
        admin.create_topics({name: {"num_partitions": PARTITIONS, "replication_factor": 2}}, wait_for_metadata=True)
    finally:
        admin.close()
    return name
