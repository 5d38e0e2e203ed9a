"""A broker after the load: averages linger while nothing happens."""

import pytest
from tests.cluster.cluster import Cluster
from tests.cluster.quotas import Quotas
from tests.cluster.traffic import Traffic
from tests.integration import agent
from tests.integration.eventually import eventually
from tests.integration.exporter import Exporter
from tests.integration.readings import agree, readings_of

pytestmark = pytest.mark.real


def test_throttle_lingers_while_nobody_is_muted(
    kafka: Cluster, quotas: Quotas, traffic: Traffic, exporter: Exporter
) -> None:
    """
    The average of the last throttles stays after the load, exactly as the broker gives it, with no usage beside it.

    What tells that it is over is the delay queue, which is empty.
    """
    quotas.set(({"user": "alice"}, {"producer_byte_rate": 20_000.0}))
    topic = traffic.topic()
    assert traffic.produce("alice", "idle", topic, 2).throttled
    url = kafka.brokers[0].agents.jolokia

    def idle() -> None:
        numbers = agent.quota_numbers(url)
        assert numbers["Produce", "alice", "", "byte-rate"] == 0
        assert numbers["Produce", "", "", "queue-size"] == 0

    eventually(idle)
    agree(url, exporter.page, readings_of("produce", "alice", ""))
    page = exporter.page()
    labels = {"quota_type": "produce", "broker": "1"}
    assert page.value("kafka_quota_throttle_time_seconds", user="alice", **labels) > 0
    assert page.value("kafka_quota_produce_bytes_per_second", user="alice") == 0
    assert page.value("kafka_quota_utilization_ratio", user="alice", **labels) == 0
    assert page.value("kafka_quota_delay_queue_size", **labels) == 0
