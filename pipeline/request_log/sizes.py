"""
Size of a request for the byte-rate quotas, rebuilt from its line.

The log has the size of the records but not of the message. The rest follows from versions, names and counts, because
the protocol's schema is public (`common/message/*.json` in kafka-clients). *Flexible* versions (KIP-482) write lengths
as unsigned varints of length + 1 and end each structure with its tagged fields; older ones write lengths as int16
(strings) or int32 (all others).
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Final, TypeAlias

from msgspec import UNSET, UnsetType

from ..errors import UnknownVersion, UnreadableMessage
from .messages import FetchResponse, Name, ProduceRequest, ShareFetchResponse

# versions of the schemas: the newest that are here, and those since which a field is there
PRODUCE_NEWEST: Final = 13
PRODUCE_TRANSACTIONAL_ID: Final = 3
PRODUCE_FLEXIBLE: Final = 9
FETCH_NEWEST: Final = 18
FETCH_THROTTLE_TIME: Final = 1
FETCH_LAST_STABLE_OFFSET: Final = 4
FETCH_LOG_START_OFFSET: Final = 5
FETCH_SESSION: Final = 7
FETCH_PREFERRED_REPLICA: Final = 11
FETCH_FLEXIBLE: Final = 12
TOPIC_IDS: Final = 13
SHARE_FETCH_NEWEST: Final = 2
SHARE_FETCH_LOCK_TIMEOUT: Final = 1

FRAME: Final = 4
"""Size in bytes of the length in front of a message."""
NULL: Final = -1
"""Length of null."""
UUID: Final = 16
"""Size of a topic id in bytes."""
_NO_TAGS: Final = 1
"""Size of the count of tagged fields when there are none."""
_OF_TWO_BYTES: Final = 127
"""Least length whose varint, which is of length + 1, takes two bytes."""
_REMEMBERED: Final = 2048
"""Number of names with cached sizes; names are untrusted and may have 32 kB."""


Traffic: TypeAlias = tuple[Name | int, ...]
"""
Name, id and bytes of records of a topic, then those of the next.

A flat tuple costs the garbage collector nothing.
"""


def produce_bytes(version: int, client_id: str | None, request: ProduceRequest) -> tuple[int, Traffic]:
    """
    Return the bytes that the Produce quota is charged (`KafkaApis.handleProduceRequest`), and those by topic.

    Charged are header and body, without the length of the frame.

    Raises `UnknownVersion` for a version newer than this schema, and `UnreadableMessage` when a name is missing.
    """
    if not 0 <= version <= PRODUCE_NEWEST:
        raise _unknown("Produce", version, PRODUCE_NEWEST)
    tags, length, text = _FLEXIBLE if version >= PRODUCE_FLEXIBLE else _OLD
    # API key, version, correlation id, and the client id, which keeps the old encoding in flexible versions
    size = 2 + 2 + 4 + _old_text(client_id) + tags
    if version >= PRODUCE_TRANSACTIONAL_ID:
        size += text(request.transactional_id)
    acks_and_timeout = 2 + 4
    size += acks_and_timeout + length(len(request.topic_data)) + tags
    traffic: list[Name | int] = []
    for topic in request.topic_data:
        partitions, record_bytes = topic.partitions, 0
        size += UUID if version >= TOPIC_IDS else text(topic.name)
        size += length(len(partitions)) + tags
        size += len(partitions) * (4 + tags)  # the index
        for partition in partitions:
            records = partition.records_size_in_bytes
            size += length(NULL if records is None else records)
            record_bytes += records or 0
        size += record_bytes
        traffic += (topic.name or None, topic.topic_id, record_bytes)
    return size, tuple(traffic)


def fetch_bytes(version: int, response: FetchResponse) -> tuple[int, Traffic] | tuple[None, None]:
    """
    Return the bytes that the Fetch quota is charged (`FetchResponse.sizeOf`), and those by topic.

    Charged are body and frame, without header and endpoints of new leaders. None when the response was throttled: it
    went out empty, and the broker took back its charge, which the log does not have. Raises `UnknownVersion` for a
    version newer than this schema, and `UnreadableMessage` when a name is missing.
    """
    if not 0 <= version <= FETCH_NEWEST:
        raise _unknown("Fetch", version, FETCH_NEWEST)
    if (response.throttle_time_ms or 0) > 0:
        return None, None
    flexible = version >= FETCH_FLEXIBLE
    tags, length, text = _FLEXIBLE if flexible else _OLD
    size = FRAME + length(len(response.responses)) + tags
    size += 4 if version >= FETCH_THROTTLE_TIME else 0
    size += 2 + 4 if version >= FETCH_SESSION else 0  # error and session id
    fixed = 4 + 2 + 8 + tags  # index, error, high watermark
    if version >= FETCH_LAST_STABLE_OFFSET:  # and no aborted transactions
        fixed += 8 + length(0)
    fixed += 8 if version >= FETCH_LOG_START_OFFSET else 0
    fixed += 4 if version >= FETCH_PREFERRED_REPLICA else 0
    traffic: list[Name | int] = []
    for topic in response.responses:
        partitions, record_bytes = topic.answers(), 0
        size += UUID if version >= TOPIC_IDS else text(topic.name)
        size += length(len(partitions)) + tags + len(partitions) * fixed
        for partition in partitions:
            records = partition.records_size_in_bytes
            if records is None and partition.records is UNSET:
                raise UnreadableMessage("a partition of a Fetch response has no size of its records")
            size += length(NULL if records is None else records)
            record_bytes += records or 0
            aborted = partition.aborted_transactions
            if aborted and version >= FETCH_LAST_STABLE_OFFSET:
                size += length(len(aborted)) - length(0)
                size += len(aborted) * (8 + 8 + tags)  # producer id, first offset
            if flexible:  # tagged fields: tag, length, two numbers, no tags of their own
                size += 0 if partition.diverging_epoch is UNSET else 15
                size += 0 if partition.current_leader is UNSET else 11
                size += 0 if partition.snapshot_id is UNSET else 15
        size += record_bytes
        traffic += (topic.name or None, topic.topic_id, record_bytes)
    return size, tuple(traffic)


def share_fetch_bytes(version: int, response: ShareFetchResponse) -> tuple[int, Traffic] | tuple[None, None]:
    """
    Return the bytes that the Fetch quota is charged for a share group's fetch, and those by topic.

    Charged is `ShareFetchResponse.sizeOf`, without error and endpoints. None when it was throttled, as for
    `fetch_bytes`. All versions are flexible. Raises `UnknownVersion` for a version newer than this schema.
    """
    if not 0 <= version <= SHARE_FETCH_NEWEST:
        raise _unknown("ShareFetch", version, SHARE_FETCH_NEWEST)
    if (response.throttle_time_ms or 0) > 0:
        return None, None
    tags, length, text = _FLEXIBLE
    # throttle time, error, null message, topics, no endpoints
    size = FRAME + 4 + 2 + 1 + length(len(response.responses)) + 1 + tags
    size += 4 if version >= SHARE_FETCH_LOCK_TIMEOUT else 0
    leader = 4 + 4 + tags
    acquired = 8 + 8 + 2 + tags  # first and last offset, count of deliveries
    traffic: list[Name | int] = []
    for topic in response.responses:
        record_bytes = 0
        size += UUID + length(len(topic.partitions)) + tags
        for partition in topic.partitions:
            size += 4 + 2 + text(partition.error_message)
            size += 2 + text(partition.acknowledge_error_message)
            records = partition.records_size_in_bytes
            size += length(NULL if records is None else records)
            record_bytes += records or 0
            count = len(partition.acquired_records)
            size += leader + length(count) + acquired * count + tags
        size += record_bytes
        traffic += (None, topic.topic_id, record_bytes)
    return size, tuple(traffic)


def _unknown(api: str, version: int, newest: int) -> UnknownVersion:
    """Return the error for a version whose schema is unknown."""
    return UnknownVersion(f"{api} of version {version}: the newest with a known size is {newest}")


def _varint(length: int) -> int:
    """Return the number of bytes of a length: seven bits of length + 1 each."""
    return 1 if length < _OF_TWO_BYTES else ((length + 1).bit_length() + 6) // 7


@lru_cache(_REMEMBERED)
def _compact_text(value: Name) -> int:
    """Return the size of a text, or of null, in flexible versions."""
    return 1 if value is None else _varint(_encoded(value)) + _encoded(value)


@lru_cache(_REMEMBERED)
def _old_text(value: Name) -> int:
    """Return the size of a text, or of null, in versions that are not flexible."""
    return 2 if value is None else 2 + _encoded(value)


def _old_length(_: int) -> int:
    """Return the size of the length of an array or of records in versions that are not flexible: an int32."""
    return 4


_Encoding: TypeAlias = tuple[int, Callable[[int], int], Callable[[Name], int]]
"""
Bytes of the tags at the end of a structure, and functions for the bytes of a length and of a text.

A length stands in front of an array or of records; `NULL` is the length of null.
"""
_FLEXIBLE: Final[_Encoding] = (_NO_TAGS, _varint, _compact_text)
_OLD: Final[_Encoding] = (0, _old_length, _old_text)


def _encoded(value: str | UnsetType) -> int:
    """Return the number of bytes of a text. A lone surrogate is sent as one `?`, as Java encodes it."""
    if value is UNSET:
        raise UnreadableMessage("a field is missing that this version has: a name")
    return len(value) if value.isascii() else len(value.encode(errors="replace"))
