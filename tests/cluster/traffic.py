"""Real clients that bounce off real quotas, for a bounded time, and report how they were throttled."""

import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import confluent_kafka
import kafka as kafka_python
from kafka.errors import NodeNotReadyError
from kafka.protocol.admin import CreateTopicsRequest, DescribeClusterRequest

from quotascope.clients.kafka_python import private_send
from quotascope.clients.throttled_admin.kafka_python import ThrottleAwareAdmin

from .cluster import Cluster
from .users import USERS

_SILENT: Final[dict[str, Any]] = {"log_level": 0}
Result = TypeVar("Result")
ANONYMOUS: Final = "ANONYMOUS"
"""The user of the plaintext listener."""
_PERMISSIVE: Final = 5
"""The last version of CreateTopics that is never refused for its quota; 6 and later are (KIP-599)."""


@dataclass(frozen=True, slots=True)
class Load:
    """The work of a client, with each throttle time that it got."""

    count: int
    """Records or requests."""
    throttles_ms: list[int] = field(default_factory=list)

    @property
    def throttled(self) -> bool:
        return any(self.throttles_ms)


@dataclass(frozen=True, slots=True)
class Mutation:
    """The answer to one CreateTopics."""

    error: int
    """0, or 89 when its quota refused it."""
    throttle_ms: int
    topic: str


class Traffic:
    """
    Clients of one cluster.

    They log in by SASL as one of `users.USERS`, with PLAIN or another mechanism, or use the plaintext listener as
    ANONYMOUS.

    All methods block. Those that take `seconds` end early when `stop` is set.
    """

    def __init__(self, cluster: Cluster, stop: threading.Event | None = None, mechanism: str = "PLAIN") -> None:
        self._cluster = cluster
        self._mechanism = mechanism
        self._stop = stop or threading.Event()

    def topic(self, *, partitions: int = 1, records: int = 0) -> str:
        """Create a topic of a new name, and fill it with records of 1000 bytes, by no quota's user."""
        name = f"topic-{uuid.uuid4().hex[:12]}"
        admin = kafka_python.KafkaAdminClient(bootstrap_servers=self._cluster.admin)
        shape = {"num_partitions": partitions, "replication_factor": 1}
        admin.create_topics({name: shape}, wait_for_metadata=True)
        admin.close()
        producer = confluent_kafka.Producer({"bootstrap.servers": self._cluster.admin, **_SILENT})
        for _ in range(records):
            producer.produce(name, bytes(1000))
        producer.flush(20)
        return name

    def produce(
        self, user: str, client_id: str, topic: str, seconds: float, size: int = 1000, pause: float = 0
    ) -> Load:
        """Produce records of `size` bytes as fast as the broker takes them, or with a pause of seconds after each."""
        return self._produce(user, client_id, topic, seconds, {}, size=size, pause=pause)

    def produce_batches(self, user: str, client_id: str, topic: str, seconds: float, records: int) -> Load:
        """
        Produce records of 1000 bytes as fast as the broker takes them.

        One request at a time has a number of records.
        """
        batches = {"batch.num.messages": records, "max.in.flight": 1}
        return self._produce(user, client_id, topic, seconds, batches)

    def fetch(self, user: str, client_id: str, topic: str, seconds: float) -> Load:
        """Fetch partition 0 from its beginning, again and again, at most 100 kB at a time."""
        throttles: list[int] = []
        small_fetches = {"max.partition.fetch.bytes": 100_000, "queued.max.messages.kbytes": 100}
        group = {"group.id": uuid.uuid4().hex, "enable.auto.commit": False, "enable.partition.eof": True}
        consumer = confluent_kafka.Consumer({**self._config(user, client_id, throttles), **small_fetches, **group})
        beginning = confluent_kafka.TopicPartition(topic, 0, 0)
        consumer.assign([beginning])
        count = 0
        for _ in self._until(seconds):
            message = consumer.poll(0.05)
            if message is not None and message.error():
                consumer.assign([beginning])
            count += message is not None
        consumer.close()
        return Load(count, throttles)

    def produce_all(self, user: str, client_id: str, topic: str, records: int) -> None:
        """Produce so many records of 1000 bytes, in small requests one after the other, however long it takes."""
        small = {"batch.num.messages": 5, "max.in.flight": 1, "acks": 1}
        producer = confluent_kafka.Producer({**self._config(user, client_id, []), **small})
        for _ in range(records):
            producer.produce(topic, bytes(1000))
        producer.flush(120)

    def produce_one(self, user: str, client_id: str, topic: str, size: int) -> None:
        """Produce one record on a connection of its own, which the broker may mute for as long as it likes."""
        producer = confluent_kafka.Producer({**self._config(user, client_id, []), "acks": 1})
        producer.produce(topic, bytes(size))
        unsent = producer.flush(20)
        assert unsent == 0

    def read_all(self, user: str, client_id: str, topic: str, records: int) -> None:
        """Read the records of partition 0, at most 50 kB at a time, until so many are there, however long it takes."""
        consumer = confluent_kafka.Consumer(
            {
                **self._config(user, client_id, []),
                "fetch.message.max.bytes": 50_000,
                "group.id": uuid.uuid4().hex,
                "enable.auto.commit": False,
            }
        )
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
        received = 0
        for _ in self._until(120):
            message = consumer.poll(0.1)
            received += message is not None and not message.error()
            if received >= records:
                break
        consumer.close()

    def request(self, user: str, client_id: str, seconds: float, max_requests: int | None = None) -> Load:
        """
        Send small requests (DescribeCluster) one after the other, as fast as they are answered.

        Their number is at most `max_requests`.
        """
        throttles: list[int] = []
        count = 0
        with self._admin(user, client_id) as admin:
            for _ in self._until(seconds):
                if count == max_requests:
                    break
                try:
                    throttle = private_send(admin, DescribeClusterRequest())["throttle_time_ms"]
                except NodeNotReadyError:  # the library waits out its throttle
                    time.sleep(0.02)
                    continue
                count += 1
                throttles += [throttle] if throttle else []
        return Load(count, throttles)

    def mutate(
        self, user: str, client_id: str, partitions: int, *, strict: bool = True, validate_only: bool = False
    ) -> Mutation:
        """
        Create one topic of so many partitions on a new connection; strict requests may be refused with error 89.

        A request that only validates is charged like any other.
        """
        new_topic = CreateTopicsRequest.CreatableTopic(
            name=_name(), num_partitions=partitions, replication_factor=1, assignments=[], configs=[]
        )
        newest = None if strict else _PERMISSIVE
        request = CreateTopicsRequest(
            topics=[new_topic], timeout_ms=10_000, validate_only=validate_only, max_version=newest
        )
        with self._admin(user, client_id) as admin:
            controller = None  # under KRaft any broker forwards it
            if self._cluster.zookeeper is not None:
                controller = private_send(admin, DescribeClusterRequest())["controller_id"]
            answer = private_send(admin, request, controller)
        (topic,) = answer["topics"]
        return Mutation(topic["error_code"], answer["throttle_time_ms"], topic["name"])

    def mutate_all(self, user: str, client_id: str, sizes: Sequence[int]) -> None:
        """Create a topic of each size on one connection, and repeat what is refused when its throttle is over."""
        shape = {"replication_factor": 1}
        with closing(ThrottleAwareAdmin(**self._library(user, client_id))) as admin:
            for size in sizes:
                topic = {_name(): {**shape, "num_partitions": size}}
                admin.create_topics(topic, timeout_ms=120_000)

    def overdraw(self, user: str, client_id: str, partitions: int, seconds: float) -> Load:
        """Ask for topics, without creating any, once a second: a limited bucket of mutations stays in debt."""
        throttles: list[int] = []
        count = 0
        for _ in self._until(seconds):
            answer = self.mutate(user, client_id, partitions, validate_only=True)
            count += 1
            throttles += [answer.throttle_ms] if answer.throttle_ms else []
            self._stop.wait(1)
        return Load(count, throttles)

    def _produce(  # noqa: PLR0913 - of two methods
        self,
        user: str,
        client_id: str,
        topic: str,
        seconds: float,
        settings: dict[str, Any],
        *,
        size: int = 1000,
        pause: float = 0,
    ) -> Load:
        throttles: list[int] = []
        config = {**self._config(user, client_id, throttles), **settings}
        producer = confluent_kafka.Producer({**config, "queue.buffering.max.messages": 100, "acks": 1})
        count = 0
        for _ in self._until(seconds):
            try:
                producer.produce(topic, bytes(size))
                count += 1
            except BufferError:
                producer.poll(0.02)
            producer.poll(0)
            self._stop.wait(pause)
        producer.purge()
        producer.poll(0)
        return Load(count, throttles)

    def _config(self, user: str, client_id: str, throttles: list[int]) -> dict[str, Any]:
        return {
            **self._listener(user),
            "client.id": client_id,
            "throttle_cb": lambda event: throttles.append(round(event.throttle_time * 1000)),
            **_SILENT,
        }

    def _listener(self, user: str) -> dict[str, str]:
        if user == ANONYMOUS:
            return {"bootstrap.servers": self._cluster.admin}
        return {
            "bootstrap.servers": self._cluster.sasl,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": self._mechanism,
            "sasl.username": user,
            "sasl.password": USERS[user],
        }

    def _until(self, seconds: float) -> Iterator[None]:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not self._stop.is_set():
            yield

    @contextmanager
    def _admin(self, user: str, client_id: str) -> Iterator[kafka_python.KafkaAdminClient]:
        admin = kafka_python.KafkaAdminClient(**self._library(user, client_id))
        try:
            yield admin
        finally:
            admin.close()

    def _library(self, user: str, client_id: str) -> dict[str, Any]:
        return {
            "bootstrap_servers": self._cluster.sasl,
            "client_id": client_id,
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": self._mechanism,
            "sasl_plain_username": user,
            "sasl_plain_password": USERS[user],
        }


def _name() -> str:
    return f"mutation-{uuid.uuid4().hex[:12]}"


def together(*calls: Callable[[], Result]) -> list[Result]:
    """Run several loads at the same time: `together(lambda: traffic.produce(…), lambda: traffic.fetch(…))`."""
    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result() for future in [pool.submit(call) for call in calls]]


@contextmanager
def in_background(*calls: Callable[[Traffic], Load], cluster: Cluster, mechanism: str = "PLAIN") -> Iterator[None]:
    """Run loads, such as `lambda traffic: traffic.produce(…, inf)`, for the length of a `with` block."""
    stop = threading.Event()
    traffic = Traffic(cluster, stop, mechanism)
    with _quiet_library(), ThreadPoolExecutor(len(calls)) as pool:
        futures = [pool.submit(call, traffic) for call in calls]
        try:
            yield
        finally:
            stop.set()
    for future in futures:
        future.result()


@contextmanager
def _quiet_library() -> Iterator[None]:
    """Keep a line for each throttle out of the report of a test that fails for another reason."""
    logger = logging.getLogger("kafka")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
