"""One client of a real broker: rules that change, an empty client-id, and averages that linger after the load."""

import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import closing
from math import inf
from pathlib import Path

import pytest
from kafka import KafkaProducer
from tests.cluster.cluster import Cluster
from tests.cluster.quotas import Quotas
from tests.cluster.traffic import Traffic, in_background
from tests.integration import agent
from tests.integration.eventually import eventually
from tests.integration.exporter import Exporter, serving, settings_for
from tests.integration.page import Page
from tests.integration.readings import LIMITS, agree, delay_queue_of, readings_of

pytestmark = pytest.mark.real

ENTITY = {"user": "alice"}
LIMIT = "kafka_quota_produce_limit_bytes_per_second"
RATE = "kafka_quota_produce_bytes_per_second"


def test_rule_is_followed_from_its_beginning_to_its_end(
    kafka: Cluster, quotas: Quotas, traffic: Traffic, exporter: Exporter
) -> None:
    """A new limit, another value and its removal show with the next refresh, and each is counted and logged once."""
    topic = traffic.topic()
    seen_changes = _changes(_refreshed(exporter))
    seen_lines = len(exporter.log())
    with in_background(lambda t: t.produce("alice", "changes", topic, inf, pause=0.05), cluster=kafka):
        quotas.set((ENTITY, {"producer_byte_rate": 300_000.0}))
        assert _refreshed(exporter).value(LIMIT, user="alice") == 300_000
        eventually(lambda: _measured(exporter.page()))

        quotas.set((ENTITY, {"producer_byte_rate": 400_000.0}))
        assert _refreshed(exporter).value(LIMIT, user="alice") == 400_000

        stale = _stale(exporter.page())
        quotas.remove((ENTITY, {"producer_byte_rate": 400_000.0}))
        page = _refreshed(exporter)
    for family in (LIMIT, RATE, "kafka_quota_rule_info"):
        assert not list(page.series(family, user="alice")), family
    assert _stale(page) > stale
    assert _changes(page) == seen_changes + 3
    reported = [
        (line["quota_key"], line["entity"], line["old"], line["new"])
        for line in exporter.log()[seen_lines:]
        if line["msg"] == "limit changed"
    ]
    assert reported == [
        ("producer_byte_rate", "user alice", None, 300_000),
        ("producer_byte_rate", "user alice", 300_000, 400_000),
        ("producer_byte_rate", "user alice", 400_000, None),
    ]


def _refreshed(exporter: Exporter) -> Page:
    """Return the first page whose limits were read after now."""
    refreshed_since = time.time()

    def refreshed() -> Page:
        page_time = time.time()
        page = exporter.page()
        assert page_time - page.value("quotascope_limits_age_seconds") > refreshed_since
        return page

    return eventually(refreshed)


def _measured(page: Page) -> None:
    assert page.value(RATE, user="alice") > 0


def _changes(page: Page) -> float:
    return page.value("quotascope_limit_changes_total", quota_key="producer_byte_rate")


def _stale(page: Page) -> float:
    return page.value("kafka_quota_stale_entities", quota_type="produce", broker="1")


def test_one_bean_is_shown_as_two_things(kafka: Cluster, quotas: Quotas, traffic: Traffic, exporter: Exporter) -> None:
    """
    The rate of the nameless is an entity with two empty labels, and the queue size stays the broker's.

    Kafka has no limit for them under a default client-id rule; neither limit nor rule is shown.
    """
    quotas.set(({"client-id": None}, {"producer_byte_rate": 1_000_000.0}))
    topic = traffic.topic()
    # librdkafka would have sent an id of its own
    with closing(KafkaProducer(bootstrap_servers=kafka.admin, client_id="")) as client:
        for _ in range(100):
            client.send(topic, bytes(1000))
        client.flush(60)

    def measured() -> None:
        family = "kafka_quota_produce_bytes_per_second"
        assert exporter.page().value(family, user="", client_id="") > 0

    eventually(measured)
    url = kafka.brokers[0].agents.jolokia
    untagged = {key[3] for key in agent.quota_numbers(url) if key[:3] == ("Produce", "", "")}
    assert untagged == {"byte-rate", "throttle-time", "queue-size"}
    agree(url, exporter.page, [*readings_of("produce", "", ""), delay_queue_of("produce")])
    page = exporter.page()
    for family in (LIMITS["produce"], "kafka_quota_rule_info", "kafka_quota_utilization_ratio"):
        assert not list(page.series(family, user="", client_id="")), family


@pytest.fixture
def sampling(kafka: Cluster, tmp_path: Path) -> Iterator[Exporter]:
    """
    Yield an exporter that reads the broker twice a second, scraped or not.

    It remembers maxima for as long as the test may take.
    """
    settings = settings_for(kafka.brokers, kafka.admin)
    settings["collection"]["sample_every_seconds"] = 0.5
    settings["collection"]["sample_window_seconds"] = 300
    with serving(tmp_path / "sampling", settings) as running:
        yield running


def queue_of(numbers: Mapping[agent.Key, float | None]) -> float:
    """Return the number of clients that are muted for their produce quota."""
    size = numbers["Produce", "", "", "queue-size"]
    assert size is not None
    return size


def test_throttle_lingers_while_no_one_is_muted(
    kafka: Cluster, quotas: Quotas, traffic: Traffic, exporter: Exporter, sampling: Exporter
) -> None:
    """
    The average of the last throttles stays after the load, exactly as the broker gives it, with no usage beside it.

    The delay queue, which the client has left, shows that the throttle is over. Scrapes before and after saw nothing of
    the burst; samples in between did, and each scrape shows their maxima.
    """
    client_id = f"idle-{uuid.uuid4().hex[:12]}"  # its sensor has seen no one else, so that no throttle lasts for hours
    url = kafka.brokers[0].agents.jolokia
    sampling.page()
    quotas.set(({"user": "alice", "client-id": client_id}, {"producer_byte_rate": 20_000.0}))
    topic = traffic.topic()
    queue_after = queue_of(agent.quota_numbers(url))
    assert traffic.produce("alice", client_id, topic, 2).throttled

    def idle() -> float:
        numbers = agent.quota_numbers(url)
        assert numbers["Produce", "alice", client_id, "byte-rate"] == 0
        queue = queue_of(numbers)
        assert queue <= queue_after
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
    earlier, later = sampling.page(), sampling.page()
    alice |= labels
    assert earlier.value("kafka_quota_utilization_ratio", **alice) == 0
    assert earlier.value("kafka_quota_utilization_max_ratio", **alice) > 0.5
    assert earlier.value("kafka_quota_delay_queue_size", **labels) <= queue
    assert earlier.value("kafka_quota_delay_queue_size_max", **labels) >= queue + 1
    assert earlier.value("quotascope_samples_total") > 2
    for maximum, selector in (("utilization_max_ratio", alice), ("delay_queue_size_max", labels)):
        assert later.value(f"kafka_quota_{maximum}", **selector) == earlier.value(f"kafka_quota_{maximum}", **selector)
