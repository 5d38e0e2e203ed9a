from typing import Any, cast

import pytest
from kafka import errors

from quotascope.clients import (
    AdminRequestFailed,
    AdminTimeout,
    AdminUnreachable,
    ClientError,
    Connection,
    MutationThrottled,
    PermissionMissing,
    Sasl,
    Secret,
    SecurityProtocol,
)
from quotascope.clients.accounting import ThrottleAccount
from quotascope.clients.throttled_admin.topics import KafkaPythonTopics
from quotascope.clients.topic_admin import TopicFound, TopicShape

CONNECTION = Connection(
    bootstrap_servers=("broker-1:9092",),
    protocol=SecurityProtocol.SASL_PLAINTEXT,
    sasl=Sasl(username="carol", password=Secret("pw")),
)
TWO = [{"replica_nodes": [1, 2, 3]}, {"replica_nodes": [1, 2]}]


class Library:
    def __init__(self, answer: Any) -> None:
        self._answer = answer
        self.asked: list[Any] = []
        self.closed = 0

    def describe_topics(self, names: list[str]) -> Any:
        return self._next(names)

    def create_topics(self, topics: dict[str, Any], **options: Any) -> Any:
        return {"topics": self._next((topics, options))}

    def close(self) -> None:
        self.closed += 1

    def _next(self, topics: Any) -> list[Any]:
        self.asked.append(topics)
        if isinstance(self._answer, Exception):
            raise self._answer
        return [{"error_code": 0, **self._answer}]


def topics(library: Library) -> KafkaPythonTopics:
    admin = KafkaPythonTopics(CONNECTION, ThrottleAccount())
    admin._connect = lambda: cast("Any", library)
    return admin


def created(library: Library, shape: TopicShape | None = None) -> TopicFound | None:
    return topics(library).create("log", shape or TopicShape(), 60_000)


def test_found() -> None:
    """
    A topic has the replicas of its weakest partition, and an unknown topic is None.

    The look-up may need a permission of its own.
    """
    topic = topics(Library({"partitions": TWO})).find("log")
    assert topic == TopicFound(partitions=2, replication_factor=2)
    assert topics(Library({"error_code": 3, "partitions": []})).find("log") is None
    with pytest.raises(PermissionMissing, match="--operation Describe --topic log"):
        topics(Library({"error_code": 29, "partitions": []})).find("log")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"num_partitions": 6, "replication_factor": 3}, TopicFound(partitions=6, replication_factor=3)),
        ({"num_partitions": -1, "replication_factor": -1}, TopicFound(partitions=6, replication_factor=None)),
        ({}, TopicFound(partitions=6, replication_factor=None)),
        ({"error_code": 36}, None),
    ],
    ids=["made", "may not be seen", "an old cluster", "another program was quicker"],
)
def test_made_as_asked_for(answer: dict[str, int], expected: TopicFound | None) -> None:
    """A value that is left to the cluster is -1 for Kafka; a value that the answer lacks is the requested one."""
    library = Library(answer)
    assert created(library, TopicShape(partitions=6, configs={"retention.ms": "1"})) == expected
    ((requested, options),) = library.asked
    assert requested == {"log": {"num_partitions": 6, "replication_factor": -1, "configs": {"retention.ms": "1"}}}
    assert options == {"timeout_ms": 60_000, "raise_errors": False}


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        ({"error_code": 89, "throttle_time_ms": 1_340}, MutationThrottled, "wait 1340 ms"),
        ({"error_code": 7}, AdminTimeout, "no answer within 60 s"),
        ({"error_code": 29}, PermissionMissing, "--operation Create --topic log"),
        ({"error_code": 31}, PermissionMissing, "--allow-principal User:carol"),
        ({"error_code": 38, "error_message": "3 larger than 1"}, AdminRequestFailed, "3 larger than 1"),
        ({"error_code": 44}, AdminRequestFailed, "PolicyViolationError"),
        (errors.NodeNotReadyError("gone"), AdminUnreachable, "broker-1:9092"),
        (errors.KafkaTimeoutError("late"), AdminTimeout, "within 10 s"),
        (errors.UnsupportedVersionError("no"), AdminRequestFailed, "error 35"),
    ]
)  # fmt: skip
def test_errors_say_what_to_do(answer: Any, error: type[ClientError], message: str) -> None:
    """Errors of an answer and errors of the connection name the remedy."""
    with pytest.raises(error, match=message):
        created(Library(answer))


def test_closed_twice() -> None:
    """A second `close` does nothing, nor does one before any call."""
    library = Library({"partitions": TWO})
    admin = topics(library)
    admin.close()
    admin.find("log")
    admin.close()
    admin.close()
    assert library.closed == 1
