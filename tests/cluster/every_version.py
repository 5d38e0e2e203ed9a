"""
One request in each version of the APIs whose messages a request log is read for.

What a release writes of each is a test of the reader.
"""

from collections.abc import Callable
from typing import Any, Final

import kafka as kafka_python
from kafka.errors import KafkaError
from kafka.protocol.admin import CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest
from kafka.protocol.consumer import FetchRequest, JoinGroupRequest
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.producer import ProduceRequest
from kafka.record.memory_records import MemoryRecordsBuilder

from quotascope.clients.kafka_python import private_send

from .cluster import Cluster

_BY_ID: Final = 13
"""The first version of Produce and Fetch that names topics by id."""


def send_every_version(cluster: Cluster) -> dict[str, list[int]]:
    """
    Send each version of the requests to the first broker, on the plaintext listener.

    Return the versions that it answered by API, in order.
    """
    node_id = cluster.brokers[0].node_id
    admin = kafka_python.KafkaAdminClient(bootstrap_servers=cluster.admin, client_id="every-version")
    answered: dict[str, list[int]] = {}

    def send(kind: Any, version: int, **fields: Any) -> Any:
        request = kind(**fields, min_version=version, max_version=version)
        try:
            answer = private_send(admin, request, node_id)
        except KafkaError:
            return None
        answered.setdefault(kind.__name__.removesuffix("Request"), []).append(version)
        return answer

    def in_all_versions(kind: Any, fields: Callable[[int], dict[str, Any]]) -> None:
        oldest, newest = kind.valid_versions
        for version in range(oldest, newest + 1):
            send(kind, version, **fields(version))

    def topic_fields(version: int) -> dict[str, Any]:
        topic = _created(f"every-{version}", len(cluster.brokers))
        return {"topics": [topic], "timeout_ms": 10_000, "validate_only": False}

    in_all_versions(CreateTopicsRequest, topic_fields)
    in_all_versions(JoinGroupRequest, lambda _: _joined())
    topics = [f"every-{version}" for version in answered["CreateTopics"]]
    name = topics[0]
    in_all_versions(MetadataRequest, lambda _: {"topics": [_described(name)]})
    response = private_send(admin, MetadataRequest(topics=[_described(name)]), node_id)
    topic_id = response["topics"][0].get("topic_id")
    in_all_versions(ProduceRequest, lambda version: _produce(name, topic_id, version))
    in_all_versions(FetchRequest, lambda version: _fetch(name, topic_id, version))
    counts = iter(range(2, 100))
    in_all_versions(CreatePartitionsRequest, lambda _: _enlarged(name, next(counts)))
    remaining = iter(topics)
    in_all_versions(DeleteTopicsRequest, lambda version: _deleted(next(remaining, "none"), version))
    admin.close()
    return answered


def _created(name: str, replicas: int) -> Any:
    return CreateTopicsRequest.CreatableTopic(
        name=name, num_partitions=1, replication_factor=replicas, assignments=[], configs=[]
    )


def _joined() -> dict[str, Any]:
    """Return a group that no broker lets in: its name is empty."""
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")
    group = {"group_id": "", "session_timeout_ms": 10_000, "member_id": "", "protocol_type": "consumer"}
    return {**group, "protocols": [protocol]}


def _described(name: str) -> Any:
    return MetadataRequest.MetadataRequestTopic(name=name)


def _produce(name: str, topic_id: Any, version: int) -> dict[str, Any]:
    batch = MemoryRecordsBuilder(magic=2, compression_type=0, batch_size=10_000)
    batch.append(1_700_000_000_000, b"key", bytes(100))
    batch.close()
    partition = ProduceRequest.TopicProduceData.PartitionProduceData(index=0, records=batch.buffer())
    named = {"topic_id": topic_id} if version >= _BY_ID else {"name": name}
    topic = ProduceRequest.TopicProduceData(**named, partition_data=[partition])
    return {"acks": 1, "timeout_ms": 10_000, "topic_data": [topic]}


def _fetch(name: str, topic_id: Any, version: int) -> dict[str, Any]:
    partition = FetchRequest.FetchTopic.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=10_000)
    named = {"topic_id": topic_id} if version >= _BY_ID else {"topic": name}
    topic = FetchRequest.FetchTopic(**named, partitions=[partition])
    return {"max_wait_ms": 100, "min_bytes": 1, "max_bytes": 100_000, "topics": [topic]}


def _enlarged(name: str, count: int) -> dict[str, Any]:
    topic = CreatePartitionsRequest.CreatePartitionsTopic(name=name, count=count, assignments=None)
    return {"topics": [topic], "timeout_ms": 10_000, "validate_only": False}


def _deleted(name: str, version: int) -> dict[str, Any]:
    named = {"topics": [DeleteTopicsRequest.DeleteTopicState(name=name)]} if version >= 6 else {"topic_names": [name]}
    return {**named, "timeout_ms": 10_000}
