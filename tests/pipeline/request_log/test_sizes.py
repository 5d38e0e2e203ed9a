"""Sizes beside the messages that an independent implementation of the protocol writes."""

import base64
import uuid
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.protocol.consumer import FetchResponse
from kafka.protocol.producer import ProduceRequest
from tests.strategies import examples

from quotascope.pipeline.errors import UnknownVersion, UnreadableMessage
from quotascope.pipeline.request_log import messages, sizes

NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=200)
SIZES = st.lists(st.none() | st.integers(0, 40_000), max_size=4)
TOPICS = st.lists(st.tuples(NAMES, SIZES), max_size=3)
TOPIC_ID = uuid.UUID("6f6c0f5c-3b0b-4a4e-9a61-0d4c7a1f5b11")
BASE64_ID = base64.urlsafe_b64encode(TOPIC_ID.bytes).decode().rstrip("=")

Topics = list[tuple[str, list[int | None]]]
Topic = FetchResponse.FetchableTopicResponse
Partition = Topic.PartitionData
EXTRAS: Any = {
    "divergingEpoch": ("diverging_epoch", Partition.EpochEndOffset, {"epoch": 3, "end_offset": 9}),
    "currentLeader": ("current_leader", Partition.LeaderIdAndEpoch, {"leader_id": 1, "leader_epoch": 5}),
    "snapshotId": ("snapshot_id", Partition.SnapshotId, {"end_offset": 4, "epoch": 2}),
}
"""Tagged fields of a partition, as kafka-python takes them."""


def produce_bytes(version: int, client_id: str | None, request: Any) -> int:
    return sizes.produce_bytes(version, client_id, msgspec.convert(request, messages.ProduceRequest))[0]


def fetch_bytes(version: int, response: Any) -> int | None:
    return sizes.fetch_bytes(version, msgspec.convert(response, messages.FetchResponse))[0]


def share_fetch_bytes(version: int, response: Any) -> int | None:
    return sizes.share_fetch_bytes(version, msgspec.convert(response, messages.ShareFetchResponse))[0]


def logged(topics: Topics, name: str, partitions: str, **fields: Any) -> list[dict[str, Any]]:
    """Return topics as the log shows them, with fields in each partition."""
    return [
        {
            name: topic,
            "topicId": BASE64_ID,
            partitions: [
                {**fields, **({"records": None} if size is None else {"recordsSizeInBytes": size})} for size in held
            ],
        }
        for topic, held in topics
    ]


def records(size: int | None) -> bytes | None:
    return None if size is None else bytes(size)


@settings(max_examples=examples(150), deadline=None)
@given(st.integers(3, 13), st.none() | NAMES, st.none() | NAMES, TOPICS)
def test_a_produce_request_weighs_what_another_client_writes(
    version: int, client_id: str | None, transactional_id: str | None, topics: Topics
) -> None:
    """Header and body of every version have as many bytes as kafka-python writes, without the length of the frame."""
    kind = ProduceRequest.TopicProduceData
    written = [
        kind(
            version=version,
            name=name,
            topic_id=TOPIC_ID,
            partition_data=[
                kind.PartitionProduceData(version=version, index=index, records=records(size))
                for index, size in enumerate(held)
            ],
        )
        for name, held in topics
    ]
    request = ProduceRequest(
        version=version, transactional_id=transactional_id, acks=-1, timeout_ms=30_000, topic_data=written
    )
    request.with_header(correlation_id=7, client_id=client_id)  # type: ignore[arg-type]
    request_body = {"transactionalId": transactional_id, "topicData": logged(topics, "name", "partitionData", index=0)}
    assert produce_bytes(version, client_id, request_body) == len(request.encode(header=True))


@settings(max_examples=examples(150), deadline=None)
@given(
    version=st.integers(4, 18),
    topics=TOPICS,
    aborted=st.none() | st.integers(0, 200),
    extras=st.frozensets(st.sampled_from([*EXTRAS])),
)
def test_a_fetch_response_weighs_what_another_client_writes(
    version: int, topics: Topics, aborted: int | None, extras: frozenset[str]
) -> None:
    """The body of every version has as many bytes as kafka-python writes, and four are added as Kafka does."""
    tagged = [EXTRAS[extra] for extra in extras] if version >= 12 else []
    fields: Any = {name: kind(version=version, **values) for name, kind, values in tagged}
    transaction = Partition.AbortedTransaction(version=version, producer_id=1, first_offset=2)
    written = [
        Topic(
            version=version,
            topic=name,
            topic_id=TOPIC_ID,
            partitions=[
                Partition(
                    version=version,
                    partition_index=0,
                    error_code=0,
                    high_watermark=1,
                    last_stable_offset=1,
                    log_start_offset=0,
                    aborted_transactions=None if aborted is None else [transaction] * aborted,
                    preferred_read_replica=-1,
                    records=records(size),
                    **fields,
                )
                for size in held
            ],
        )
        for name, held in topics
    ]
    response = FetchResponse(version=version, throttle_time_ms=0, error_code=0, session_id=5, responses=written)
    answered: Any = {
        "partitionIndex": 0,
        "abortedTransactions": None if aborted is None else [{"producerId": 1, "firstOffset": 2}] * aborted,
        **({extra: {} for extra in extras} if version >= 12 else {}),
    }
    whole = {"throttleTimeMs": 0, "responses": logged(topics, "topic", "partitions", **answered)}
    assert fetch_bytes(version, whole) == 4 + len(response.encode())


def test_a_share_fetch_response_weighs_its_fields() -> None:
    """
    The weights are counted by hand from ShareFetchResponse.json.

    4 for Kafka, 12 of the top, 18 of the topic, 23 + 19 + 501 of the partition, tags.
    """
    partition = {
        "errorMessage": None,
        "acknowledgeErrorMessage": "no",
        "recordsSizeInBytes": 499,
        "acquiredRecords": [{"firstOffset": 1, "lastOffset": 2, "deliveryCount": 1}],
    }
    response = {"throttleTimeMs": 0, "responses": [{"partitions": [partition]}]}
    top = 4 + 2 + 1 + 4 + 1 + 1 + 1
    topic = 16 + 1 + 1
    fixed = 4 + 2 + 1 + 2 + 3 + 9
    assert share_fetch_bytes(1, response) == 4 + top + topic + fixed + 2 + 499 + 1 + 19 + 1


def test_old_versions_lack_what_came_later() -> None:
    """The lines are made after documentation: Produce before 3 has no transactional id, Fetch 0 no throttle time."""
    request_body = logged([("t", [10])], "name", "partitionData", index=0)
    answered = logged([("t", [10])], "topic", "partitions", partitionIndex=0)
    assert produce_bytes(0, "c", {"topicData": request_body}) == 11 + 6 + 4 + 3 + 4 + 8 + 10
    assert fetch_bytes(0, {"responses": answered}) == 4 + 4 + 3 + 4 + 14 + 4 + 10


def test_what_cannot_be_weighed_is_refused() -> None:
    """Versions of the future, and a topic without a name where a name is due."""
    nameless: Any = {"topicData": [{"partitionData": []}], "transactionalId": None}
    with pytest.raises(UnreadableMessage):
        produce_bytes(9, "c", nameless)
    assert produce_bytes(13, "c", nameless) > 0
    with pytest.raises(UnknownVersion, match="Produce of version 99"):
        produce_bytes(99, "c", nameless)
    for weigh in (fetch_bytes, share_fetch_bytes):
        with pytest.raises(UnknownVersion, match="of version 99"):
            weigh(99, {"responses": []})
