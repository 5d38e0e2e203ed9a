"""The quotas beside the client quotas, on two real brokers: new connections and replication."""

import os
import socket
import threading
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress

import confluent_kafka
import kafka as kafka_python
import pytest
from tests.cluster.cluster import Cluster
from tests.cluster.configs import Configs
from tests.cluster.quotas import Quotas
from tests.integration import agent
from tests.integration.eventually import eventually
from tests.integration.exporter import Exporter, serving, settings_for
from tests.integration.readings import between


class Replicas:
    """
    Topics of one partition, and where their replicas are.

    Every replica is under the replication throttle, if there is one.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._admin = kafka_python.KafkaAdminClient(bootstrap_servers=cluster.admin)

    def topic(self, brokers: Sequence[int], records: int) -> str:
        """Create a topic with its replicas on these brokers, filled with records of 1000 bytes that do not compress."""
        name = f"replicas-{uuid.uuid4().hex[:12]}"
        throttled = {f"{side}.replication.throttled.replicas": "*" for side in ("leader", "follower")}
        shape = {"assignments": {0: list(brokers)}, "configs": throttled}
        self._admin.create_topics({name: shape}, wait_for_metadata=True)
        producer = confluent_kafka.Producer({"bootstrap.servers": self._cluster.admin, "log_level": 0})
        for _ in range(records):
            producer.produce(name, os.urandom(1000))
        assert producer.flush(20) == 0
        return name

    def move(self, topic: str, brokers: Sequence[int]) -> None:
        partition = kafka_python.TopicPartition(topic, 0)
        answer = self._admin.alter_partition_reassignments({partition: list(brokers)})
        assert answer == {partition: None}

    def moving(self) -> bool:
        return bool(self._admin.list_partition_reassignments())

    def close(self) -> None:
        self._admin.close()


pytestmark = pytest.mark.real

IP = "127.0.0.1"
REPLICATION_RATE = "kafka_quota_replication_bytes_per_second"
REPLICATION_LIMIT = "kafka_quota_replication_limit_bytes_per_second"


@pytest.fixture(scope="module")
def pair_exporter(pair_kafka: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exporter]:
    folder = tmp_path_factory.mktemp("pair-exporter") / "serve"
    settings = settings_for(pair_kafka.brokers, pair_kafka.admin)
    with serving(folder, settings) as exporter:
        yield exporter


@pytest.fixture
def configs(pair_kafka: Cluster) -> Iterator[Configs]:
    with closing(Configs(pair_kafka)) as configs:
        yield configs


@contextmanager
def knocking(address: str) -> Iterator[None]:
    """Connect to a listener and leave again, ten times a second."""
    host, port = address.split(":")
    stop = threading.Event()

    def knock() -> None:
        while not stop.wait(0.1):
            with suppress(OSError):
                socket.create_connection((host, int(port)), timeout=5).close()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(knock)
        try:
            yield
        finally:
            stop.set()


def test_connections_of_an_address_are_refused_beyond_its_limit(pair_kafka: Cluster, pair_exporter: Exporter) -> None:
    """The page has the rate, the limit and the delay of refusals; the address disappears with its rule."""
    rule = ({"ip": IP}, {"connection_creation_rate": 5.0})
    refusals = "kafka_quota_ip_connection_throttle_seconds"

    def refused() -> None:
        page = pair_exporter.page()
        assert page.value("kafka_quota_ip_connection_limit_per_second", broker="1") == 5
        labels = page.labels("kafka_quota_ip_connections_per_second", broker="1")
        assert labels == {"broker": "1", "ip": IP}
        assert page.value("kafka_quota_ip_connections_per_second", broker="1") > 4
        assert 0 < page.value(refusals, broker="1", listener="SASL") <= 1
        assert page.value(refusals, broker="1", listener="TLS") == 0

    def forgotten() -> None:
        names = pair_exporter.page().names()
        assert "kafka_quota_ip_connections_per_second" not in names
        assert "kafka_quota_ip_connection_limit_per_second" not in names

    with closing(Quotas(pair_kafka.connection())) as quotas:
        quotas.set(rule)
        try:
            with knocking(pair_kafka.sasl):
                eventually(refused)
        finally:
            quotas.remove(rule)
    eventually(forgotten)


def test_a_listener_waits_at_its_own_limit_or_the_broker_s(
    pair_kafka: Cluster, pair_exporter: Exporter, configs: Configs
) -> None:
    """A listener's key wins over the broker's, and that over the cluster's; without one there is no limit."""
    limit = "kafka_quota_listener_connection_limit_per_second"
    own_limit = {"listener.name.tls.max.connection.creation.rate": "2"}

    def held_back() -> None:
        page = pair_exporter.page()
        assert page.value(limit, broker="1", listener="TLS") == 2
        assert page.value(limit, broker="1", listener="SASL") == 900
        assert page.value(limit, broker="2", listener="TLS") == 900
        for broker in "12":
            name = "kafka_quota_broker_connection_limit_per_second"
            assert page.value(name, broker=broker) == 900
        labels = {"broker": "1", "listener": "TLS"}
        assert page.value("kafka_quota_listener_connections_per_second", **labels) > 1.5
        waits = "kafka_quota_listener_connection_throttle_seconds"
        assert 0 < page.value(waits, **labels) <= 1
        assert page.value(waits, broker="2", listener="TLS") == 0

    def unlimited() -> None:
        assert not [name for name in pair_exporter.page().names() if "connection_limit" in name]

    with (
        configs.with_broker(None, {"max.connection.creation.rate": "900"}),
        configs.with_broker(1, own_limit),
        knocking(pair_kafka.ssl),
    ):
        eventually(held_back)
    eventually(unlimited)


def test_a_throttled_move_shows_on_both_brokers(pair_kafka: Cluster, pair_exporter: Exporter, configs: Configs) -> None:
    """A replica moves while both ends are at their limits; without these it arrives, and the limits are gone."""
    ends = {("1", "leader"): 40_000, ("2", "follower"): 30_000}

    def throttled() -> None:
        for (broker, direction), limit in ends.items():
            url = pair_kafka.nodes[int(broker)].agents.jolokia
            labels = {"broker": broker, "direction": direction}
            rate_before = byte_rate(url, direction)
            page = pair_exporter.page()
            rate_after = byte_rate(url, direction)
            assert page.value(REPLICATION_LIMIT, **labels) == limit
            assert page.value(REPLICATION_RATE, **labels) > limit
            assert between(page.value(REPLICATION_RATE, **labels), rate_before, rate_after)

    def arrived() -> None:
        assert not replicas.moving()
        page = pair_exporter.page()
        assert not list(page.series(REPLICATION_LIMIT))
        assert page.get(REPLICATION_RATE, broker="2", direction="follower") is not None

    with closing(Replicas(pair_kafka)) as replicas:
        topic = replicas.topic([1], records=4000)
        with (
            configs.with_broker(1, {"leader.replication.throttled.rate": "40000"}),
            configs.with_broker(2, {"follower.replication.throttled.rate": "30000"}),
        ):
            replicas.move(topic, [1, 2])
            eventually(throttled)
            assert replicas.moving()
        eventually(arrived)


def byte_rate(url: str, direction: str) -> float | None:
    bean = f"kafka.server:type={direction.capitalize()}Replication,*"
    (item,) = agent.ask(url, [{"type": "read", "mbean": bean}])
    rates = [attributes["byte-rate"] for attributes in item.get("value", {}).values()]
    return float(rates[0]) if rates else None
