"""Topics of a user whose mutations are limited, by both libraries' admin clients, on a real broker."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any, cast

import pytest
from confluent_kafka.cimpl import NewPartitions, NewTopic
from tests.clients.real import Login, throttles_logged
from tests.cluster.buckets import full_bucket, topic_names
from tests.cluster.cluster import Cluster
from tests.cluster.quotas import Quotas
from tests.cluster.traffic import Traffic
from tests.integration import agent
from tests.integration.eventually import eventually

from quotascope.clients.accounting import ThrottleAccount
from quotascope.clients.throttled_admin import confluent, kafka_python

pytestmark = pytest.mark.real

RATE = 5.0
"""Partitions/s; Kafka lets a bucket hold eleven seconds of it."""
PARTITIONS = 10
TOPICS = 7
"""One after the bucket is in debt."""


@pytest.fixture
def client_id(quotas: Quotas, traffic: Traffic) -> str:
    """Return a client id of carol's with a full bucket that refills slowly."""
    return full_bucket(quotas, traffic, "paced", RATE)


@pytest.fixture
def names(kafka: Cluster) -> Iterator[list[str]]:
    """Yield names of topics that together overdraw the bucket."""
    with topic_names(kafka, "paced", TOPICS) as names:
        yield names


def python_admin(kafka: Cluster, client_id: str, account: ThrottleAccount) -> kafka_python.ThrottleAwareAdmin:
    return kafka_python.ThrottleAwareAdmin(account, **Login(kafka.sasl, client_id, "carol").pure_python())


def confluent_admin(kafka: Cluster, client_id: str, account: ThrottleAccount) -> confluent.ThrottleAwareAdmin:
    return confluent.ThrottleAwareAdmin(Login(kafka.sasl, client_id, "carol").librdkafka(), account)


def test_kafka_python_creates_extends_and_deletes_at_the_pace_of_the_quota(
    kafka: Cluster, client_id: str, names: list[str]
) -> None:
    """All calls succeed although topics are refused at first, and the account is the sum of the responses."""
    account = ThrottleAccount()
    reported: list[int] = []
    shape = {"num_partitions": PARTITIONS, "replication_factor": 1}
    with (
        throttles_logged(reported.append),
        closing(python_admin(kafka, client_id, account)) as admin,
    ):
        created = admin.create_topics(dict.fromkeys(names, shape), wait_for_metadata=True)
        assert [entry["error_code"] for entry in created["topics"]] == [0] * TOPICS
        counted = account.totals()[0].quota_retries
        assert counted > 0
        extended = admin.create_partitions(dict.fromkeys(names[:2], PARTITIONS + 1))
        assert [entry.error_code for entry in extended.results] == [0, 0]
        deleted = admin.delete_topics(names[:2])
        assert [entry["error_code"] for entry in deleted["topics"]] == [0, 0]

        def gone() -> None:  # the controller has answered, and the broker hears of it
            assert not set(names[:2]) & set(cast("Any", admin).list_topics())

        eventually(gone)
    (totals,) = account.totals()
    assert totals.client == ("carol", client_id, "admin")
    assert (totals.throttled_ms, totals.responses) == (sum(reported), len(reported))
    assert totals.quota_retries > counted


def test_kafka_python_reports_the_wait_to_who_will_not_wait(kafka: Cluster, client_id: str, names: list[str]) -> None:
    """The error without retries, or at the end of the time, has the rest of the throttle."""
    account = ThrottleAccount()
    shape = {"num_partitions": PARTITIONS, "replication_factor": 1}
    with closing(python_admin(kafka, client_id, account)) as admin:
        with pytest.raises(kafka_python.QuotaExceeded) as caught:
            admin.create_topics(dict.fromkeys(names, shape), retry_on_quota_violation=False)
        assert caught.value.throttle_time_ms == account.totals()[0].longest_ms > 0
    reported_ms = account.totals()[0].longest_ms
    with closing(python_admin(kafka, client_id, account)) as admin:
        with pytest.raises(kafka_python.QuotaExceeded) as late:
            admin.create_partitions(dict.fromkeys(names[:1], 2 * PARTITIONS), timeout_ms=200)
        assert late.value.throttle_time_ms < reported_ms
    assert account.totals()[0].quota_retries == 0


def versions(kafka: Cluster, request: str) -> set[int]:
    """Return the versions in which the broker was sent a request so far."""
    bean = f"kafka.network:type=RequestMetrics,name=RequestsPerSec,request={request},*"
    (item,) = agent.ask(kafka.brokers[0].agents.jolokia, [{"type": "read", "mbean": bean}])
    return {int(name.rpartition("version=")[2]) for name in item["value"]}


def test_librdkafka_is_never_refused(kafka: Cluster, client_id: str, names: list[str]) -> None:
    """
    The library asks in versions without error 89.

    Everything is done at once, and the throttle that follows is counted.
    """
    account = ThrottleAccount()
    admin = confluent_admin(kafka, client_id, account)
    topics = [NewTopic(name, PARTITIONS, 1) for name in names]
    created = admin.create_topics(topics)
    assert [future.result(30) for future in created.values()] == [None] * TOPICS
    (totals,) = account.totals()
    assert totals.client == ("carol", client_id, "admin")
    debt = TOPICS * PARTITIONS - RATE * 11
    assert 0 < totals.throttled_ms <= debt / RATE * 1_000
    assert (totals.responses, totals.quota_retries) == (1, 0)
    extended = admin.create_partitions([NewPartitions(names[0], PARTITIONS + 1)])
    assert extended[names[0]].result(30) is None
    deleted = admin.delete_topics(names[:1])
    assert deleted[names[0]].result(30) is None
    strict = {"CreateTopics": 6, "CreatePartitions": 3, "DeleteTopics": 5}
    for request, first_version in strict.items():
        assert min(versions(kafka, request)) < first_version


def test_librdkafka_reports_errors_as_ever(kafka: Cluster, client_id: str, names: list[str]) -> None:
    """The library reports topics that exist, and wrong arguments, as without us."""
    admin = confluent_admin(kafka, client_id, ThrottleAccount())
    topic = [NewTopic(names[0], 1, 1)]
    admin.create_topics(topic)[names[0]].result(30)
    problem: Any = admin.create_topics(topic)[names[0]].exception(30)
    assert problem.args[0].name() == "TOPIC_ALREADY_EXISTS"
    with pytest.raises(TypeError):
        admin.create_topics(topic, nonsense=1)
