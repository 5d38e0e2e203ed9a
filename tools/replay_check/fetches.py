"""
Bytes that each Fetch read, and moments at which brokers decided on Produce and Fetch, from all lines together.

A throttled Fetch is charged what it read, gets that back at once, and the log shows an empty response. What it read
follows from the offsets it asked for and from what producers had appended by then. Where the log does not show the
producers, the client asks for the same again when the throttle is over: then the next response on that connection
stands for it.

A request waits for others between the end of its handler's work and its response (`remoteTimeMs`), or it does not, and
then what the log counts as waiting comes after the decision. Produce waits for followers only with acks=-1, and Fetch
only when there is less to read than it asked for. While a JVM is young the difference is tens of ms, and each ms of it
is a ms of every throttle that is measured from there.
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
"""Epochs of a request that names every partition: one without a session, and one that opens a session."""


class Batch(NamedTuple):
    """Records that one request appended to one partition."""

    offset: int
    """Offset of the first record."""
    at_ms: int
    """Epoch ms at which they were there."""
    size: int
    """Bytes."""


class Available(NamedTuple):
    """Bytes that a fetch could read of a partition."""

    first: int
    """Bytes of the batch that holds the offset."""
    total: int
    """Bytes from there to the end."""


class Wanted(NamedTuple):
    """A partition of a Fetch, the offset from which it reads, and the most bytes of it."""

    topic: str
    partition: int
    offset: int
    most: int


class Appended:
    """Batches by partition, from the Produce lines of a log."""

    def __init__(self, log: RequestLog, requests: Iterable[Request]) -> None:
        """Collect the batches of `requests`, which are those of the log at the moments of their decisions."""
        self._names: dict[str, str] = {}
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
        Return the bytes from an offset to the end of the partition at a moment.

        A read begins with the batch that holds the offset.

        Return None when the log does not show what was appended there.
        """
        topic = self._names.get(partition.topic, partition.topic)
        batches = self._batches.get((topic, partition.partition), [])
        index = bisect_right(batches, partition.offset, key=lambda batch: batch.offset) - 1
        if index < 0:
            return None
        sizes = [batch.size for batch in batches[index:] if batch.at_ms <= at_ms]
        return Available(sizes[0] if sizes else 0, sum(sizes))


def _batches(message: Line, at_ms: int) -> Iterator[tuple[tuple[str, int], Batch]]:
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
    """Fetch sessions of one broker: their memory of the partitions that a Fetch does not name (KIP-227)."""

    def __init__(self) -> None:
        self._known: dict[int, dict[tuple[str, int], Wanted]] = {}

    def wanted(self, message: Line) -> tuple[Wanted, ...]:
        """Return the partitions that a Fetch reads, in its order; call it for each Fetch in the order of the log."""
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
    """Return the requests of a log with the moments of Produce and Fetch corrected where the broker did not wait."""
    followed = any(request.follower for request in log.requests)
    requests = []
    for request in log.requests:
        message = log.messages.get(request.line)
        if request.api_key == ApiKey.PRODUCE and message is not None:
            waited = followed and message.request and message.request.acks == ALL_REPLICAS
            requests.append(request if waited else _at_once(request, message))
        else:
            requests.append(request)
    appended, sessions = Appended(log, requests), Sessions()

    def enough(message: Line, began_ms: float) -> bool:
        """Return whether enough bytes could be read; bytes that the log does not show were there before it began."""
        total = 0
        for partition in sessions.wanted(message):
            available = appended.available(partition, began_ms)
            if available is None:
                return True
            total += available.total
        return total >= int(message.request.min_bytes)

    for place, request in enumerate(requests):
        message = log.whole(request) if _is_consumers(request) else None
        if message is not None:
            at_once = _at_once(request, message)
            if enough(message, at_once.decided_ms - message.local_time_ms):
                requests[place] = at_once
    return requests


def _is_consumers(request: Request) -> bool:
    return request.api_key == ApiKey.FETCH and not request.follower


def _at_once(request: Request, message: Line) -> Request:
    after_ms = message.response_queue_time_ms + message.send_time_ms + message.remote_time_ms
    return replace(request, decided_ms=int(request.completed_ms - after_ms))


class FetchSizes:
    """
    Bytes that each Fetch was charged, by line.

    Args:
        log: requests and answers.
        requests: requests of the log, at the moments of their decisions.

    """

    def __init__(self, log: RequestLog, requests: Iterable[Request]) -> None:
        requests = list(requests)
        self._appended = Appended(log, requests)
        self._answered: dict[int, int] = {}
        self._lost: dict[int, tuple[Request, Line, tuple[Wanted, ...]]] = {}
        self._next: dict[int, int] = {}
        sessions = Sessions()
        waiting: dict[str, list[int]] = defaultdict(list)
        for request in filter(_is_consumers, requests):
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
        Return the bytes that the Fetch of a line was charged, None when nothing shows them.

        `max_bytes` is what the quota lets a single fetch read: the bytes of all its whole windows.
        """
        if line not in self._lost:
            return self._answered.get(line)
        request, message, partitions = self._lost[line]
        topics: dict[str, list[Fetched]] = defaultdict(list)
        remaining = int(min(message.request.max_bytes, max_bytes))
        nothing_yet = True
        for partition in partitions:
            available = self._appended.available(partition, request.decided_ms)
            if available is None:
                return self._next.get(line)
            limit = min(partition.most, remaining)
            # at least one batch if nothing was read yet, or a consumer would never advance (KIP-74)
            read_bytes = min(available.total, max(limit, available.first) if nothing_yet else limit)
            remaining = max(0, remaining - read_bytes)
            nothing_yet = nothing_yet and not read_bytes
            topics[partition.topic].append(Fetched(records_size_in_bytes=read_bytes))
        answer = [FetchedTopic(partitions=fetched, name=topic) for topic, fetched in topics.items()]
        return fetch_bytes(request.api_version, FetchResponse(responses=answer))[0]
