"""Topics of a user whose mutations are limited, on a real broker."""

import time
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import pairwise

import pytest
from kafka import KafkaAdminClient
from kafka.errors import NodeNotReadyError
from kafka.protocol.admin import CreateTopicsRequest
from tests.cluster.buckets import full_bucket, topic_names
from tests.cluster.cluster import Cluster
from tests.cluster.quotas import Quotas
from tests.cluster.traffic import Traffic
from tests.integration.eventually import eventually

from quotascope.clients import AdminUnreachable, MutationThrottled, SecurityProtocol
from quotascope.clients.kafka_python import connect, private_send
from quotascope.clients.throttling import ApiError, MutationAnswer, RetryOptions, mutate
from quotascope.metrics.kafka.protocol import ApiKey

pytestmark = pytest.mark.real

RATE = 5.0
"""Partitions/s; Kafka lets a bucket hold eleven seconds of it."""
PARTITIONS = 10


@dataclass(frozen=True, slots=True)
class Exchange:
    sent_at: float
    answered_at: float
    """Both monotonic s."""
    answer: MutationAnswer[str]

    @property
    def refused(self) -> set[str]:
        """The topics that came with error 89."""
        results = self.answer.results.items()
        return {topic for topic, error in results if error and error.code == 89}

    @property
    def throttle(self) -> float:
        return self.answer.throttle_time_ms / 1_000


class Admin:
    """Creates topics as carol, by kafka-python."""

    def __init__(self, kafka: Cluster, client_id: str) -> None:
        connection = kafka.connection(SecurityProtocol.SASL_PLAINTEXT, "carol")
        self._admin = connect(replace(connection, client_id=client_id))
        self._servers = (kafka.sasl,)
        self.exchanges: list[Exchange] = []

    def create(self, topics: tuple[str, ...], timeout_ms: int) -> MutationAnswer[str]:
        sent_at = time.monotonic()
        creatable = [
            CreateTopicsRequest.CreatableTopic(
                name=topic, num_partitions=PARTITIONS, replication_factor=1, assignments=[], configs=[]
            )
            for topic in topics
        ]
        request = CreateTopicsRequest(topics=creatable, timeout_ms=timeout_ms, validate_only=False)
        try:
            response = private_send(self._admin, request)
        except NodeNotReadyError as error:  # the library waits out the throttle, too
            raise AdminUnreachable(self._servers, str(error)) from error
        answer = MutationAnswer(
            version=request.API_VERSION,
            throttle_time_ms=response["throttle_time_ms"],
            results={
                topic["name"]: ApiError(topic["error_code"], topic["error_message"]) for topic in response["topics"]
            },
        )
        self.exchanges.append(Exchange(sent_at, time.monotonic(), answer))
        return answer

    def close(self) -> None:
        self._admin.close()


@pytest.fixture
def limited(kafka: Cluster, quotas: Quotas, traffic: Traffic) -> Iterator[Admin]:
    """Yield carol with a client id of her own, and so with a full bucket, which refills slowly."""
    with closing(Admin(kafka, full_bucket(quotas, traffic, "creator", RATE))) as admin:
        yield admin


@pytest.fixture
def names(kafka: Cluster) -> Iterator[list[str]]:
    """Yield names of eight topics, which together overdraw the bucket."""
    with topic_names(kafka, "limited", 8) as names:
        yield names


def exist(kafka: Cluster, expected: AbstractSet[str], names: list[str]) -> None:
    """Wait until the broker knows these topics, and no other of the names."""

    def look() -> None:
        with closing(KafkaAdminClient(bootstrap_servers=kafka.admin)) as admin:
            assert set(names) & set(admin.list_topics()) == expected

    eventually(look)


def test_all_topics_are_created_at_the_pace_of_the_quota(kafka: Cluster, limited: Admin, names: list[str]) -> None:
    """
    Every topic exists in the end, no request went out before its time, and none had to wait in vain.

    Eight times ten partitions are more than the bucket holds. What overdraws it is admitted, the rest refused until the
    bucket is refilled to zero, which is when the throttle ends.
    """
    results = mutate(ApiKey.CREATE_TOPICS, names, limited.create)
    assert set(results) == set(names)
    assert set(results.values()) == {None}
    exist(kafka, set(names), names)
    assert len(limited.exchanges) > 1
    for earlier, later in pairwise(limited.exchanges):
        assert earlier.throttle > 0
        assert later.sent_at >= earlier.answered_at + earlier.throttle - 0.002
        assert later.refused < earlier.refused == set(later.answer.results)
        admitted = len(earlier.refused) - len(later.refused)
        assert later.throttle <= admitted * PARTITIONS / RATE


def test_a_refusal_reports_the_wait_to_who_will_not_wait(kafka: Cluster, limited: Admin, names: list[str]) -> None:
    """Without retries, topics within the bucket are created, and the rest gets the throttle time."""
    once = RetryOptions(retry_on_quota_violation=False)
    results = mutate(ApiKey.CREATE_TOPICS, names, limited.create, options=once)
    (exchange,) = limited.exchanges
    refused = {name for name, result in results.items() if result is not None}
    assert refused == exchange.refused
    exist(kafka, set(names) - refused, names)
    for name in refused:
        refusal = results[name]
        assert isinstance(refusal, MutationThrottled)
        assert refusal.throttle_time_ms == exchange.answer.throttle_time_ms > 0
    assert 0 < len(refused) < len(names)


def test_a_timeout_leaves_the_rest_of_the_throttle(limited: Admin, names: list[str]) -> None:
    """A call whose timeout is shorter than a throttle fails for refused topics without sending them again."""
    hurried = RetryOptions(timeout_ms=100)

    def create(topics: tuple[str, ...], _timeout_ms: int) -> MutationAnswer[str]:
        return limited.create(topics, 30_000)  # the broker itself shall not time out

    results = mutate(ApiKey.CREATE_TOPICS, names, create, options=hurried)
    (exchange,) = limited.exchanges
    assert exchange.refused
    for name in exchange.refused:
        refusal = results[name]
        assert isinstance(refusal, MutationThrottled)
        assert refusal.throttle_time_ms <= exchange.answer.throttle_time_ms
