"""
Inference of the bytes that throttled Fetches read, and of the moments of decisions on Produce and Fetch.

A throttled Fetch is charged the bytes that it read and gets them back at once, and the log shows an empty response. The
bytes follow from the offsets in the request and the records that producers had appended by then. If the log does not
show the producers, the size of the connection's next response is used, because the client asks for the same records
again when the throttle is over.

The log has a waiting time of a request (`remoteTimeMs`). If the request really waited for others, that was before the
broker's decision. If it did not, the time passed after the decision. Produce waits for followers only with acks=-1, and
Fetch only if there are fewer bytes to read than it asked for. While a JVM is young the difference is tens of ms, and
every throttle that is measured from there is off by it.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from quotascope.metrics.kafka.protocol import ApiKey
from quotascope.pipeline.request_log.line import ALL_REPLICAS
from quotascope.pipeline.request_log.messages import Fetched, FetchedTopic, FetchResponse
from quotascope.pipeline.request_log.sizes import fetch_bytes

from .log import Line, Request, RequestLog, Topic

_NO_SESSION: Final = 0
_FULL: Final = (-1, 0)
"""Epochs of requests that name all of their partitions: without a session, and to open a session."""


class Batch(NamedTuple):
    """Records that one request appended to one partition."""

    offset: int
    """Offset of the first record."""
    at_ms: int
    """Time at which they were appended, epoch ms."""
    size: int
    """Number of bytes."""


class Available(NamedTuple):
    """Numbers of bytes that a Fetch could read from a partition."""

    first: int
    """Bytes of the batch that contains the offset."""
    total: int
    """Bytes from the begin of that batch to the end of the partition."""


class Wanted(NamedTuple):
    """A partition that a Fetch reads."""

    topic: str
    partition: int
    offset: int
    """First offset to read."""
    most: int
    """Largest number of bytes to read."""


class Appended:
    """Batches by partition, from the Produce lines of a log."""

    def __init__(self, log: RequestLog, requests: Iterable[Request]) -> None:
        """Collect the batches of a log; `requests` has its requests with the moments of their decisions."""
        self._names: dict[str, str] = {}
        """Names of topics by id."""
        batches: dict[tuple[str, int], list[Batch]] = defaultdict(list)
        for request in requests:
            message = log.messages.get(request.line)
            if message is None or not message.response:
                continue
            if request.api_key in (ApiKey.METADATA, ApiKey.CREATE_TOPICS):
                for topic in message.response.topics:
                    if topic.topic_id and topic.name:
                        self._names[topic.topic_id] = topic.name
            elif request.api_key == ApiKey.PRODUCE:
                for key, batch in _batches(message, request.decided_ms):
                    batches[key].append(batch)
        self._batches = {
            (self._names.get(topic, topic), partition): sorted(batch_list)
            for (topic, partition), batch_list in batches.items()
        }

    def available(self, partition: Wanted, at_ms: float) -> Available | None:
        """
        Return the bytes that could be read from a partition at a time, epoch ms.

        A read begins with the batch that contains the offset. Return None if the log does not show that batch.
        """
        topic = self._names.get(partition.topic, partition.topic)
        batches = self._batches.get((topic, partition.partition), [])
        index = bisect_right(batches, partition.offset, key=lambda batch: batch.offset) - 1
        if index < 0:
            return None
        sizes = [batch.size for batch in batches[index:] if batch.at_ms <= at_ms]
        return Available(sizes[0] if sizes else 0, sum(sizes))


def _batches(message: Line, at_ms: int) -> Iterator[tuple[tuple[str, int], Batch]]:
    """Yield topic and partition, and the batch, of everything that a Produce request appended."""
    sizes = {
        (topic.key, partition.index): partition.records_size_in_bytes or 0
        for topic in (message.request.topic_data if message.request else ())
        for partition in topic.partition_data
    }
    for topic in message.response.responses:
        for partition in topic.partition_responses:
            if not partition.error_code:
                key = topic.key, partition.index
                yield key, Batch(partition.base_offset, at_ms, sizes.get(key, 0))


class Sessions:
    """Fetch sessions of one broker, which remember partitions that later Fetches do not name (KIP-227)."""

    def __init__(self) -> None:
        self._known: dict[int, dict[tuple[str, int], Wanted]] = {}
        """Partitions by session."""

    def wanted(self, message: Line) -> tuple[Wanted, ...]:
        """Return the partitions that a Fetch reads, in its order. Call it for all Fetches in the order of the log."""
        request, response = message.request, message.response
        named = {
            (topic.key, partition.partition): Wanted(topic.key, partition.partition, partition.fetch_offset, partition.partition_max_bytes)
            for topic in request.topics
            for partition in topic.partitions
        }  # fmt: skip
        if request.session_epoch in _FULL:
            if response.session_id != _NO_SESSION:
                self._known[response.session_id] = named
            return tuple(named.values())
        session = self._known.setdefault(request.session_id, {})
        forgotten: Sequence[Topic] = request.forgotten_topics_data
        for topic in forgotten:
            for partition in topic.partitions:  # type: ignore[attr-defined]
                session.pop((topic.key, partition), None)
        session.update(named)
        return tuple(session.values())


def decided(log: RequestLog) -> list[Request]:
    """Return the requests of a log, with corrected moments of the decisions on Produce and Fetch that did not wait."""
    has_followers = any(request.follower for request in log.requests)
    requests = []
    for request in log.requests:
        message = log.messages.get(request.line)
        if request.api_key == ApiKey.PRODUCE and message is not None:
            waited = has_followers and message.request and message.request.acks == ALL_REPLICAS
            requests.append(request if waited else _without_wait(request, message))
        else:
            requests.append(request)
    appended, sessions = Appended(log, requests), Sessions()
    for place, request in enumerate(requests):
        message = log.whole(request) if _is_consumer_fetch(request) else None
        if message is not None:
            without_wait = _without_wait(request, message)
            began_ms = without_wait.decided_ms - message.local_time_ms
            if _has_enough(message, sessions.wanted(message), appended, began_ms):
                requests[place] = without_wait
    return requests


def _has_enough(message: Line, partitions: Iterable[Wanted], appended: Appended, at_ms: float) -> bool:
    """Return whether a Fetch could read its `minBytes` at a time; partitions that the log does not show have enough."""
    total = 0
    for partition in partitions:
        available = appended.available(partition, at_ms)
        if available is None:
            return True
        total += available.total
    return total >= int(message.request.min_bytes)


def _is_consumer_fetch(request: Request) -> bool:
    return request.api_key == ApiKey.FETCH and not request.follower


def _without_wait(request: Request, message: Line) -> Request:
    """Return a request whose waiting time passed after the decision."""
    after_ms = message.response_queue_time_ms + message.send_time_ms + message.remote_time_ms
    return replace(request, decided_ms=int(request.completed_ms - after_ms))


class FetchSizes:
    """
    Bytes that Fetches were charged, by line.

    Args:
        log: log.
        requests: requests of the log with the moments of their decisions.

    """

    def __init__(self, log: RequestLog, requests: Iterable[Request]) -> None:
        requests = list(requests)
        self._appended = Appended(log, requests)
        self._answered: dict[int, int] = {}
        """Bytes of the Fetches that were not throttled."""
        self._lost: dict[int, tuple[Request, Line, tuple[Wanted, ...]]] = {}
        """Throttled Fetches, whose bytes the log does not have, and the partitions that they read."""
        self._next: dict[int, int] = {}
        """Bytes of the connection's next Fetch that was not throttled, by throttled Fetch."""
        sessions = Sessions()
        waiting: dict[str, list[int]] = defaultdict(list)
        for request in filter(_is_consumer_fetch, requests):
            message = log.whole(request)
            if message is None:
                continue
            partitions = sessions.wanted(message)
            if request.fetched is None:
                self._lost[request.line] = request, message, partitions
                waiting[request.connection].append(request.line)
            else:
                self._answered[request.line] = request.fetched
                for earlier in waiting.pop(request.connection, ()):
                    self._next[earlier] = request.fetched

    def size(self, line: int, max_bytes: float) -> int | None:
        """
        Return the bytes that the Fetch of a line was charged, None if nothing shows them.

        `max_bytes` is the number of bytes that the quota lets one Fetch read: as many as its whole windows allow.
        """
        if line not in self._lost:
            return self._answered.get(line)
        request, message, partitions = self._lost[line]
        topics: dict[str, list[Fetched]] = defaultdict(list)
        remaining = int(min(message.request.max_bytes, max_bytes))
        is_empty = True
        for partition in partitions:
            available = self._appended.available(partition, request.decided_ms)
            if available is None:
                return self._next.get(line)
            limit = min(partition.most, remaining)
            if is_empty:  # at least one batch, or a consumer would never advance (KIP-74)
                limit = max(limit, available.first)
            read_bytes = min(available.total, limit)
            remaining = max(0, remaining - read_bytes)
            is_empty = is_empty and not read_bytes
            topics[partition.topic].append(Fetched(records_size_in_bytes=read_bytes))
        answer = [FetchedTopic(partitions=fetched, name=topic) for topic, fetched in topics.items()]
        return fetch_bytes(request.api_version, FetchResponse(responses=answer))[0]
