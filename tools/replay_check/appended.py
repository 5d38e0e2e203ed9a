"""What producers appended to each partition, so that a fetch whose answer the log does not hold can be weighed."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from .apis import CREATE_TOPICS, METADATA, PRODUCE
from .log import RequestLog, rows

Json: TypeAlias = Any


class Batch(NamedTuple):
    """Records that one request appended to one partition."""

    offset: int
    """Of the first record."""
    at_ms: int
    """Epoch ms at which they were there."""
    size: int
    """Bytes."""


class Available(NamedTuple):
    """What a fetch could read of a partition."""

    first: int
    """Bytes of the batch that holds the offset."""
    total: int
    """Bytes from there to the end."""


class Appended:
    """Batches by partition, from the Produce lines of a log."""

    def __init__(self, log: RequestLog) -> None:
        names = dict(_topic_names(log))
        batches: dict[tuple[str, int], list[Batch]] = defaultdict(list)
        for key, batch in _batches(log):
            batches[key].append(batch)
        self._names = names
        self._batches: Mapping[tuple[str, int], list[Batch]] = {
            (names.get(topic, topic), partition): sorted(found)
            for (topic, partition), found in batches.items()
        }

    def available(
        self, topic: str, partition: int, offset: int, at_ms: float
    ) -> Available | None:
        """
        What there is from an offset to the end of the partition at a moment; a read begins with the batch that holds the offset.

        `topic` is a name or an id. None when the log does not show what was appended there.
        """
        batches = self._batches.get((self._names.get(topic, topic), partition))
        if not batches:
            return None
        first = bisect_right(batches, offset, key=lambda batch: batch.offset) - 1
        if first < 0:
            return None
        there = [batch.size for batch in batches[first:] if batch.at_ms <= at_ms]
        return Available(there[0] if there else 0, sum(there))


def _topic_names(log: RequestLog) -> Iterator[tuple[str, str]]:
    for message in log.messages.values():
        key = message["requestHeader"]["requestApiKey"]
        if key in (METADATA, CREATE_TOPICS) and message["response"]:
            for topic in message["response"]["topics"]:
                if topic.get("topicId") and topic.get("name"):
                    yield topic["topicId"], topic["name"]


def _batches(log: RequestLog) -> Iterator[tuple[tuple[str, int], Batch]]:
    times = dict(rows(log.requests, "line", "timestamp"))
    for line, message in log.messages.items():
        if message["requestHeader"]["requestApiKey"] == PRODUCE:
            sizes = dict(_sizes(message["request"]))
            for key, offset in _offsets(message["response"]):
                yield key, Batch(offset, times[line], sizes.get(key, 0))


def _sizes(request: Json) -> Iterator[tuple[tuple[str, int], int]]:
    for topic in request["topicData"] if request else ():
        for partition in topic["partitionData"]:
            size = partition.get("recordsSizeInBytes") or 0
            yield (_topic(topic), partition["index"]), size


def _offsets(response: Json) -> Iterator[tuple[tuple[str, int], int]]:
    for topic in response["responses"] if response else ():
        for partition in topic["partitionResponses"]:
            if not partition["errorCode"]:
                yield (_topic(topic), partition["index"]), partition["baseOffset"]


def _topic(topic: Json) -> str:
    return str(topic.get("name") or topic["topicId"])
