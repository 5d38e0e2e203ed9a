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

Sizes = list[int | None]


def produce_bytes(version: int, client_id: str | None, request: Any) -> int:
    """Of a request in JSON, as the log has it."""
    return sizes.produce_bytes(version, client_id, msgspec.convert(request, messages.ProduceRequest))[0]


def fetch_bytes(version: int, response: Any) -> int | None:
    """The same of a response."""
    return sizes.fetch_bytes(version, msgspec.convert(response, messages.FetchResponse))[0]


def share_fetch_bytes(version: int, response: Any) -> int | None:
    """The same of a share group's."""
    return sizes.share_fetch_bytes(version, msgspec.convert(response, messages.ShareFetchResponse))[0]


def _logged(size: int | None) -> dict[str, Any]:
    """Records as the log shows them."""
    return {"records": None} if size is None else {"recordsSizeInBytes": size}


def _records(size: int | None) -> bytes | None:
    return None if size is None else bytes(size)


def _produced(version: int, name: str, sizes: Sizes) -> Any:
    topic = ProduceRequest.TopicProduceData
    return topic(
        version=version,
        name=name,
        topic_id=TOPIC_ID,
        partition_data=[
            topic.PartitionProduceData(version=version, index=index, records=_records(size))
            for index, size in enumerate(sizes)
        ],
    )


@settings(max_examples=examples(150), deadline=None)
@given(st.integers(3, 13), st.none() | NAMES, st.none() | NAMES, TOPICS)
def test_a_produce_request_weighs_what_another_client_writes(
    version: int, client_id: str | None, transactional_id: str | None, topics: list[tuple[str, Sizes]]
) -> None:
    """Header and body of every version have as many bytes as kafka-python writes, without the length of the frame."""
    logged = {
        "transactionalId": transactional_id,
        "topicData": [
            {
                "name": name,
                "topicId": BASE64_ID,
                "partitionData": [{"index": index, **_logged(size)} for index, size in enumerate(sizes)],
            }
            for name, sizes in topics
        ],
    }
    request = ProduceRequest(
        version=version,
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=30_000,
        topic_data=[_produced(version, name, sizes) for name, sizes in topics],
    )
    request.with_header(correlation_id=7, client_id=client_id)  # type: ignore[arg-type]
    assert produce_bytes(version, client_id, logged) == len(request.encode(header=True))


def _tagged(version: int, extras: frozenset[str]) -> dict[str, Any]:
    """Tagged fields of a partition, as kafka-python takes them."""
    kinds = FetchResponse.FetchableTopicResponse.PartitionData
    numbers = {
        "divergingEpoch": (kinds.EpochEndOffset, {"epoch": 3, "end_offset": 9}),
        "currentLeader": (kinds.LeaderIdAndEpoch, {"leader_id": 1, "leader_epoch": 5}),
        "snapshotId": (kinds.SnapshotId, {"end_offset": 4, "epoch": 2}),
    }
    names = {
        "divergingEpoch": "diverging_epoch",
        "currentLeader": "current_leader",
        "snapshotId": "snapshot_id",
    }
    return {names[extra]: numbers[extra][0](version=version, **numbers[extra][1]) for extra in extras}


@settings(max_examples=examples(150), deadline=None)
@given(
    version=st.integers(4, 18),
    topics=TOPICS,
    aborted=st.none() | st.integers(0, 200),
    extras=st.frozensets(st.sampled_from(["divergingEpoch", "currentLeader", "snapshotId"])),
)
def test_a_fetch_response_weighs_what_another_client_writes(
    version: int, topics: list[tuple[str, Sizes]], aborted: int | None, extras: frozenset[str]
) -> None:
    """The body of every version has as many bytes as kafka-python writes, and four are added as Kafka does."""
    reported = extras if version >= 12 else frozenset()
    topic_type = FetchResponse.FetchableTopicResponse
    partition_type = topic_type.PartitionData
    transactions = [{"producerId": 1, "firstOffset": 2}] * (aborted or 0)
    logged = {
        "throttleTimeMs": 0,
        "responses": [
            {
                "topic": name,
                "topicId": BASE64_ID,
                "partitions": [
                    {
                        "partitionIndex": 0,
                        "abortedTransactions": None if aborted is None else transactions,
                        **_logged(size),
                        **{key: {} for key in reported},
                    }
                    for size in sizes
                ],
            }
            for name, sizes in topics
        ],
    }
    response = FetchResponse(
        version=version,
        throttle_time_ms=0,
        error_code=0,
        session_id=5,
        responses=[
            topic_type(
                version=version,
                topic=name,
                topic_id=TOPIC_ID,
                partitions=[
                    partition_type(
                        version=version,
                        partition_index=0,
                        error_code=0,
                        high_watermark=1,
                        last_stable_offset=1,
                        log_start_offset=0,
                        aborted_transactions=None
                        if aborted is None
                        else [partition_type.AbortedTransaction(version=version, producer_id=1, first_offset=2)]
                        * aborted,
                        preferred_read_replica=-1,
                        records=_records(size),
                        **_tagged(version, reported),
                    )
                    for size in sizes
                ],
            )
            for name, sizes in topics
        ],
    )
    assert fetch_bytes(version, logged) == 4 + len(response.encode())


def test_a_share_fetch_response_weighs_its_fields() -> None:
    """Counted by hand from ShareFetchResponse.json: 4 for Kafka, 12 of the top, 18 of the topic, 23 + 19 + 501 of the partition, tags."""
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
    """From documentation: Produce before 3 has no transactional id, Fetch 0 no throttle time."""
    topic = {
        "name": "t",
        "partitionData": [{"index": 0, "recordsSizeInBytes": 10}],
        "topic": "t",
        "partitions": [{"partitionIndex": 0, "recordsSizeInBytes": 10}],
    }
    assert produce_bytes(0, "c", {"topicData": [topic]}) == 11 + 6 + 4 + 3 + 4 + 8 + 10
    assert fetch_bytes(0, {"responses": [topic]}) == 4 + 4 + 3 + 4 + 14 + 4 + 10


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
