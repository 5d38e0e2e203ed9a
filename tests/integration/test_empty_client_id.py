"""Clients with an empty client id, which a broker measures under the bean that also counts the muted connections."""

from contextlib import closing

import pytest
from kafka import KafkaProducer
from tests.cluster.cluster import Cluster
from tests.cluster.quotas import Quotas
from tests.cluster.traffic import Traffic
from tests.integration import agent
from tests.integration.eventually import eventually
from tests.integration.exporter import Exporter
from tests.integration.readings import LIMITS, agree, delay_queue_of, readings_of

pytestmark = pytest.mark.real


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
