"""
Sizes of many requests of one API at once, the same as `sizes` computes for one.

Lists of topics and partitions are laid flat, and added up where a topic, or a line, ends.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import UNSET

from ..columns import Column, Numbers
from .messages import Fetched, FetchedTopic, FetchResponse, ProduceRequest, ShareFetchResponse
from .schema import TRAFFIC
from .sizes import (
    FETCH_FLEXIBLE,
    FETCH_LAST_STABLE_OFFSET,
    FETCH_LOG_START_OFFSET,
    FETCH_NEWEST,
    FETCH_PREFERRED_REPLICA,
    FETCH_SESSION,
    FETCH_THROTTLE_TIME,
    FRAME,
    NULL,
    PRODUCE_FLEXIBLE,
    PRODUCE_NEWEST,
    PRODUCE_TRANSACTIONAL_ID,
    SHARE_FETCH_LOCK_TIMEOUT,
    SHARE_FETCH_NEWEST,
    TOPIC_IDS,
    UUID,
)

Mask: TypeAlias = npt.NDArray[np.bool_]
_VARINT_ENDS: Final = [1 << 7 * size for size in range(1, 5)]
"""Least values whose varint takes another byte."""


@dataclass(frozen=True, slots=True)
class Charged:
    """Sizes of requests, and their topics."""

    sizes: Numbers
    counts: Numbers
    """Number of topics of each."""
    traffic: list[Column]
    """Name, id and bytes of records of all topics."""


def texts(values: Sequence[str | None]) -> Column:
    """Return a column of texts. Raises `UnicodeEncodeError` for a text that is no UTF-8."""
    return pa.array(values, pa.string())


def lengths_of(column: Column) -> Numbers:
    """Return the number of bytes of texts, 0 for null."""
    known: Column = pc.binary_length(column)
    lengths: Numbers = known.fill_null(0).to_numpy().astype(np.int64)
    return lengths


def old_text(lengths: Numbers) -> Numbers:
    """Return the size of texts of the old encoding, by their numbers of bytes; a null takes as much as an empty one."""
    return lengths + 2


def charged_produce(versions: Numbers, client_ids: Numbers, requests: Sequence[ProduceRequest]) -> Charged | Mask:
    """
    Return the charge of Produce requests (`sizes.produce_bytes`), or else a mask of those that are certain.

    Args:
        versions: their versions.
        client_ids: numbers of bytes of their client ids.
        requests: the requests.

    """
    # a request is not certain if its version is unknown, or a name is missing that the version has
    certain = (versions >= 0) & (versions <= PRODUCE_NEWEST)
    topics, of_line = _flat([request.topic_data for request in requests])
    names, by_name = [topic.name for topic in topics], versions < TOPIC_IDS
    if names.count(UNSET):
        certain &= of_line.all(np.array([name is not UNSET for name in names], bool) | ~of_line.spread(by_name))
    ids = [request.transactional_id for request in requests]
    if ids.count(UNSET):
        certain &= np.array([value is not UNSET for value in ids], bool) | (versions < PRODUCE_TRANSACTIONAL_ID)
    if not certain.all():
        return certain
    partitions, of_topic = _flat([topic.partitions for topic in topics])
    encoding = _Encoding(versions >= PRODUCE_FLEXIBLE)
    in_topics = encoding.spread(of_line)
    records = _records([partition.records_size_in_bytes for partition in partitions])
    record_bytes = of_topic.sum(np.maximum(records, 0))
    column = texts([name or None for name in names])
    of_topics = (
        np.where(of_line.spread(by_name), in_topics.text(lengths_of(column)), UUID)
        + in_topics.length(of_topic.counts)
        + in_topics.tags
        + of_topic.counts * (4 + in_topics.tags)  # the index
        + of_topic.sum(in_topics.spread(of_topic).length(records))
        + record_bytes
    )
    size = 2 + 2 + 4 + old_text(client_ids) + encoding.tags
    if any(ids):
        id_lengths = lengths_of(texts([value or None for value in ids]))
    else:
        id_lengths = np.zeros(len(requests), np.int64)
    size += np.where(versions >= PRODUCE_TRANSACTIONAL_ID, encoding.text(id_lengths), 0)
    size += 2 + 4 + encoding.length(of_line.counts) + encoding.tags  # acks and timeout
    return Charged(
        size + of_line.sum(of_topics),
        of_line.counts,
        _traffic(column, [topic.topic_id for topic in topics], record_bytes),
    )


def charged_fetch(versions: Numbers, responses: Sequence[FetchResponse]) -> Charged | Mask:
    """
    Return the charge of Fetch responses (`sizes.fetch_bytes`), or else a mask of those that are certain.

    A response is certain if it was not throttled, has Kafka's layout since 3.0, and has no field that is rare.
    """
    certain = (versions >= 0) & (versions <= FETCH_NEWEST)
    throttles = [response.throttle_time_ms for response in responses]
    if any(throttles):
        certain &= np.array([(throttle or 0) <= 0 for throttle in throttles], bool)
    topics, of_line = _flat([response.responses for response in responses])
    names, by_name = [topic.name for topic in topics], versions < TOPIC_IDS
    lists = [topic.partitions for topic in topics]
    if lists.count(UNSET) or [topic.first_partitions for topic in topics].count(UNSET) < len(topics):
        certain &= of_line.all(np.array([_of_3_0(topic) for topic in topics], bool))
    if (count := names.count(UNSET)) and (count < len(names) or by_name.any()):
        certain &= of_line.all(np.array([name is not UNSET for name in names], bool) | ~of_line.spread(by_name))
    if not certain.all():
        return certain
    partitions, of_topic = _flat(lists)
    if _any_uncommon(partitions):
        return of_line.all(of_topic.all(np.array([not _any_uncommon([partition]) for partition in partitions], bool)))
    encoding = _Encoding(versions >= FETCH_FLEXIBLE)
    in_topics = encoding.spread(of_line)
    records = _records([partition.records_size_in_bytes for partition in partitions])
    record_bytes = of_topic.sum(np.maximum(records, 0))
    # index, error, high watermark
    fixed = 4 + 2 + 8 + encoding.tags
    # last stable offset and no aborted transactions
    fixed += np.where(versions >= FETCH_LAST_STABLE_OFFSET, 8 + encoding.length(np.zeros(len(versions), np.int64)), 0)
    fixed += np.where(versions >= FETCH_LOG_START_OFFSET, 8, 0)
    fixed += np.where(versions >= FETCH_PREFERRED_REPLICA, 4, 0)
    column = texts([name or None for name in names])
    of_topics = (
        np.where(of_line.spread(by_name), in_topics.text(lengths_of(column)), UUID)
        + in_topics.length(of_topic.counts)
        + in_topics.tags
        + of_topic.counts * of_line.spread(fixed)
        + of_topic.sum(in_topics.spread(of_topic).length(records))
        + record_bytes
    )
    size = FRAME + encoding.length(of_line.counts) + encoding.tags
    size += np.where(versions >= FETCH_THROTTLE_TIME, 4, 0)
    size += np.where(versions >= FETCH_SESSION, 2 + 4, 0)  # error and session id
    return Charged(
        size + of_line.sum(of_topics),
        of_line.counts,
        _traffic(column, [topic.topic_id for topic in topics], record_bytes),
    )


def charged_share_fetch(versions: Numbers, responses: Sequence[ShareFetchResponse]) -> Charged | Mask:
    """Return the charge of ShareFetch responses (`sizes.share_fetch_bytes`), or a mask of those that are certain."""
    certain = (versions >= 0) & (versions <= SHARE_FETCH_NEWEST)
    throttles = [response.throttle_time_ms for response in responses]
    certain &= np.array([(throttle or 0) <= 0 for throttle in throttles], bool)
    if not certain.all():
        return certain
    topics, of_line = _flat([response.responses for response in responses])
    partitions, of_topic = _flat([topic.partitions for topic in topics])
    encoding = _Encoding(np.ones(len(partitions), bool))  # all versions are flexible
    records = _records([partition.records_size_in_bytes for partition in partitions])
    acquired = np.array([len(partition.acquired_records) for partition in partitions], np.int64)
    record_bytes = of_topic.sum(np.maximum(records, 0))
    of_partitions = (
        # index and errors with their messages
        4 + 2 + 2
        + encoding.text(lengths_of(texts([partition.error_message for partition in partitions])))
        + encoding.text(lengths_of(texts([partition.acknowledge_error_message for partition in partitions])))
        + encoding.length(records)
        + (4 + 4 + 1)  # the leader
        + encoding.length(acquired)
        + acquired * (8 + 8 + 2 + 1)  # first and last offset, count of deliveries
        + 1
    )  # fmt: skip
    of_topics = UUID + _varint(of_topic.counts) + 1 + of_topic.sum(of_partitions) + record_bytes
    # throttle time, error, null message, topics, no endpoints
    size = FRAME + 4 + 2 + 1 + _varint(of_line.counts) + 1 + 1
    size += np.where(versions >= SHARE_FETCH_LOCK_TIMEOUT, 4, 0)
    ids = [topic.topic_id for topic in topics]
    return Charged(size + of_line.sum(of_topics), of_line.counts, _traffic(texts([None] * len(ids)), ids, record_bytes))


@dataclass(frozen=True, slots=True)
class _Owners:
    """Owners of items that were laid flat, by their numbers of items."""

    counts: Numbers

    def spread(self, values: Any) -> Any:  # noqa: ANN401 - an array of any type
        """Return the value of its owner for each item."""
        return np.repeat(values, self.counts)

    def sum(self, values: Numbers) -> Numbers:
        """Return the sum of the values of each owner's items."""
        if len(values) == len(self.counts) and np.all(self.counts == 1):
            return values
        sums = np.concatenate(([0], np.cumsum(values)))
        ends = np.cumsum(self.counts)
        result: Numbers = sums[ends] - sums[ends - self.counts]
        return result

    def all(self, values: Mask) -> Mask:
        """Return whether all items of an owner have the value True."""
        complete: Mask = self.sum(values.astype(np.int64)) == self.counts
        return complete


def _flat(lists: Sequence[Any]) -> tuple[list[Any], _Owners]:
    """Return the items of all lists in one, and the lists as their owners."""
    return list(chain.from_iterable(lists)), _Owners(np.array([len(items) for items in lists], np.int64))


@dataclass(frozen=True, slots=True)
class _Encoding:
    """Sizes of lengths and texts, by whether a version is flexible (`sizes`)."""

    flexible: Mask

    @property
    def tags(self) -> Numbers:
        """Sizes of the count of tagged fields, of which there are none: 1 in flexible versions, else 0."""
        return self.flexible.astype(np.int64)

    def length(self, lengths: Numbers) -> Numbers:
        """Return the sizes of lengths of arrays or records."""
        return np.where(self.flexible, _varint(lengths), 4)

    def text(self, lengths: Numbers) -> Numbers:
        """Return the sizes of texts; a null takes as much as an empty one."""
        return np.where(self.flexible, _varint(lengths), 2) + lengths

    def spread(self, owners: _Owners) -> "_Encoding":
        """Return the encoding of each owner's items, which is that of the owner."""
        return _Encoding(owners.spread(self.flexible))


def _varint(lengths: Numbers) -> Numbers:
    """Return the numbers of bytes of lengths: seven bits of length + 1 each."""
    size = np.ones(len(lengths), np.int64)
    for end in _VARINT_ENDS:
        if not (longer := lengths + 1 >= end).any():
            break
        size += longer
    return size


def _records(sizes: list[int | None]) -> Numbers:
    """Return sizes of records, `NULL` for none."""
    return np.array([NULL if size is None else size for size in sizes], np.int64)


def _traffic(names: Column, ids: Sequence[str | None], record_bytes: Numbers) -> list[Column]:
    """Return the columns of `TRAFFIC` of topics."""
    return [names, texts(ids), pa.array(record_bytes, TRAFFIC.field("bytes").type)]


def _of_3_0(topic: FetchedTopic) -> bool:
    """Return whether the partitions are under the name of Kafka 3.0."""
    return topic.partitions is not UNSET and topic.first_partitions is UNSET


_TAGGED: Final = tuple(map(attrgetter, ("diverging_epoch", "current_leader", "snapshot_id")))


def _any_uncommon(partitions: Sequence[Fetched]) -> bool:
    """Return whether any partition has a field that is rarely there, or lacks the size of its records."""
    sizes = [partition.records_size_in_bytes for partition in partitions]
    if None in sizes and [
        partition.records for partition in partitions if partition.records_size_in_bytes is None
    ].count(UNSET):
        return True
    # lists: a generator takes twice as long
    if any([partition.aborted_transactions for partition in partitions]):  # noqa: C419
        return True
    return any([*map(field, partitions)].count(UNSET) < len(partitions) for field in _TAGGED)
