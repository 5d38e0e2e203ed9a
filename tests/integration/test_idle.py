"""A broker after the load: averages linger while nothing happens, and maxima report what was missed."""

import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tests.cluster.cluster import Cluster
from tests.cluster.quotas import Quotas
from tests.cluster.traffic import Traffic
from tests.integration import agent
from tests.integration.eventually import eventually
from tests.integration.exporter import Exporter, serving, settings_for
from tests.integration.readings import agree, readings_of

pytestmark = pytest.mark.real


@pytest.fixture
def sampling(kafka: Cluster, tmp_path: Path) -> Iterator[Exporter]:
    """An exporter that reads the broker twice a second, scraped or not, and remembers maxima for as long as the test may take."""
    settings = settings_for(kafka.brokers, kafka.admin)
    settings["collection"]["sample_every_seconds"] = 0.5
    settings["collection"]["sample_window_seconds"] = 300
    with serving(tmp_path / "sampling", settings) as running:
        yield running


def queue_of(numbers: Mapping[agent.Key, float | None]) -> float:
    """How many clients are muted for their produce quota."""
    size = numbers["Produce", "", "", "queue-size"]
    assert size is not None
    return size


def test_throttle_lingers_while_no_one_is_muted(
    kafka: Cluster, quotas: Quotas, traffic: Traffic, exporter: Exporter, sampling: Exporter
) -> None:
    """
    The average of the last throttles stays after the load, exactly as the broker gives it, with no usage beside it.

    What reports that it is over is the delay queue, which the client has left. Scrapes before and after have seen nothing
    of the burst; the maxima of samples in between have, and each scrape shows them.
    """
    client_id = f"idle-{uuid.uuid4().hex[:12]}"  # its sensor has seen no one else, so that no throttle lasts for hours
    url = kafka.brokers[0].agents.jolokia
    sampling.page()
    quotas.set(({"user": "alice", "client-id": client_id}, {"producer_byte_rate": 20_000.0}))
    topic = traffic.topic()
    others = queue_of(agent.quota_numbers(url))
    assert traffic.produce("alice", client_id, topic, 2).throttled

    def idle() -> float:
        numbers = agent.quota_numbers(url)
        assert numbers["Produce", "alice", client_id, "byte-rate"] == 0
        queue = queue_of(numbers)
        assert queue <= others
        return queue

    queue = eventually(idle, seconds=120)
    agree(url, exporter.page, readings_of("produce", "alice", client_id))
    page = exporter.page()
    labels = {"quota_type": "produce", "broker": "1"}
    alice = {"user": "alice", "client_id": client_id}
    assert page.value("kafka_quota_throttle_time_seconds", **alice, **labels) > 0
    assert page.value("kafka_quota_produce_bytes_per_second", **alice) == 0
    assert page.value("kafka_quota_utilization_ratio", **alice, **labels) == 0
    assert page.value("kafka_quota_delay_queue_size", **labels) <= queue
    first, second = sampling.page(), sampling.page()
    alice |= labels
    assert first.value("kafka_quota_utilization_ratio", **alice) == 0
    assert first.value("kafka_quota_utilization_max_ratio", **alice) > 0.5
    assert first.value("kafka_quota_delay_queue_size", **labels) <= queue
    assert first.value("kafka_quota_delay_queue_size_max", **labels) >= queue + 1
    assert first.value("quotascope_samples_total") > 2
    for maximum, of in (("utilization_max_ratio", alice), ("delay_queue_size_max", labels)):
        assert second.value(f"kafka_quota_{maximum}", **of) == first.value(f"kafka_quota_{maximum}", **of)
