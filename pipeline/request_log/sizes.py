"""
The sizes that `wire_size` tells, for many requests a second.

Requests of one client mostly differ in how many bytes of records they carry. The size without any is worked out once for each shape:
version, client id, names, and how many partitions; the records and the lengths in front of them are added.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import UNSET

from ..wire_size import fetch_bytes, produce_bytes
from ..wire_size.encoding import varint
from ..wire_size.fetch import FLEXIBLE_SINCE as FLEXIBLE_FETCH
from ..wire_size.produce import FLEXIBLE_SINCE as FLEXIBLE_PRODUCE
from .messages import Fetched, FetchResponse, Name, Produced, ProduceRequest

REMEMBERED: Final = 2048
"""Shapes of each kind; a shape holds names of strangers, each up to 32 kB."""

_Shape: TypeAlias = tuple[tuple[Name, int], ...]
_WITHOUT_RECORDS: Final = {"recordsSizeInBytes": 0}


def produce_size(version: int, client_id: str | None, request: ProduceRequest) -> int:
    """`produce_bytes` of a request. Raises `UnreadableMessage`."""
    topics = request.topic_data
    shape = tuple([(topic.name, len(topic.partition_data)) for topic in topics])
    size = _empty_produce(version, client_id, request.transactional_id, shape)
    flexible = version >= FLEXIBLE_PRODUCE
    for topic in topics:
        size += _records(topic.partition_data, flexible=flexible)
    return size


def fetch_size(version: int, response: FetchResponse) -> int | None:
    """`fetch_bytes` of a response; None when it was throttled. Raises `UnreadableMessage`."""
    topics = response.responses
    if response.throttle_time_ms or not all(
        _is_plain(partition) for topic in topics for partition in topic.partitions
    ):
        return fetch_bytes({"requestApiVersion": version}, msgspec.to_builtins(response))  # fmt: skip
    shape = tuple([(topic.topic, len(topic.partitions)) for topic in topics])
    size = _empty_fetch(version, shape)
    flexible = version >= FLEXIBLE_FETCH
    for topic in topics:
        size += _records(topic.partitions, flexible=flexible)
    return size


def _is_plain(partition: Fetched) -> bool:
    """Whether it has nothing but records that is not of a fixed size."""
    return (
        not partition.aborted_transactions
        and partition.diverging_epoch is UNSET
        and partition.current_leader is UNSET
        and partition.snapshot_id is UNSET
    )


def _records(partitions: Iterable[Produced | Fetched], *, flexible: bool) -> int:
    """What records add to a message without any: themselves, and longer lengths in front of them."""
    size = 0
    for partition in partitions:
        if records := partition.records_size_in_bytes:
            size += records + (varint(records + 1) - 1 if flexible else 0)
    return size


@lru_cache(REMEMBERED)
def _empty_produce(
    version: int, client_id: str | None, transactional_id: Name, shape: _Shape
) -> int:
    header = {"requestApiVersion": version, "clientId": client_id}
    topics = [{**_given("name", name), "partitionData": [_WITHOUT_RECORDS] * count} for name, count in shape]  # fmt: skip
    request = {"topicData": topics, **_given("transactionalId", transactional_id)}
    return produce_bytes(header, request)


@lru_cache(REMEMBERED)
def _empty_fetch(version: int, shape: _Shape) -> int:
    topics = [{**_given("topic", name), "partitions": [_WITHOUT_RECORDS] * count} for name, count in shape]  # fmt: skip
    size = fetch_bytes({"requestApiVersion": version}, {"responses": topics})
    return size or 0


def _given(field: str, value: Name) -> dict[str, Any]:
    return {} if value is UNSET else {field: value}
