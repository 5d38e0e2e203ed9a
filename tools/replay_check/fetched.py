"""
What each Fetch weighed for the quota, those included that were answered empty because they were throttled.

A throttled Fetch is charged what it read, gets that back at once, and the log shows an empty answer. What it read follows from the
offsets it asked for and from what producers had appended by then. Where the log does not show the producers, the client asks for the
same again when the throttle is over: then the next answer on that connection stands for it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from quotascope.pipeline.wire_size import fetch_bytes

from .apis import FETCH
from .appended import Appended, Available
from .log import RequestLog, rows, whole
from .sessions import Sessions, Wanted

Json: TypeAlias = Any

_READ_COMMITTED: Final = 1
_UNLIMITED: Final = (1 << 31) - 1
"""The `maxBytes` of a Fetch that has none, before version 3."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """A throttled Fetch; what it read is known once it is known how much its quota lets one fetch read."""

    message: Json
    at_ms: int
    """Epoch ms of the decision."""
    partitions: tuple[Wanted, ...]


class FetchSizes:
    """Sizes by line."""

    def __init__(self, log: RequestLog) -> None:
        self._appended = Appended(log)
        self._answered: dict[int, int] = {}
        self._lost: dict[int, Lost] = {}
        self._next: dict[int, int] = {}
        self._take(log)

    @property
    def lost(self) -> int:
        """How many were answered empty."""
        return len(self._lost)

    def size(self, line: int, most: float) -> int | None:
        """
        Bytes that the Fetch of a line was charged, None when nothing tells.

        `most` is what the quota lets a single fetch read: the bytes of all its whole windows.
        """
        if line not in self._lost:
            return self._answered.get(line)
        rebuilt = self._rebuilt(self._lost[line], most)
        return self._next.get(line) if rebuilt is None else rebuilt

    def _take(self, log: RequestLog) -> None:
        sessions = Sessions()
        waiting: dict[str, list[int]] = {}
        for line, at_ms, message in _fetches(log):
            partitions = sessions.wanted(message)
            size = fetch_bytes(message["requestHeader"], message["response"])
            connection = message["connection"]
            if size is None:
                self._lost[line] = Lost(
                    message=message, at_ms=at_ms, partitions=partitions
                )
                waiting.setdefault(connection, []).append(line)
            else:
                self._answered[line] = size
                for earlier in waiting.pop(connection, ()):
                    self._next[earlier] = size

    def _rebuilt(self, lost: Lost, most: float) -> int | None:
        topics: dict[str, list[Json]] = {}
        left = int(min(lost.message["request"].get("maxBytes", _UNLIMITED), most))
        nothing_yet = True
        for wanted in lost.partitions:
            there = self._appended.available(
                wanted.topic, wanted.partition, wanted.offset, lost.at_ms
            )
            if there is None:
                return None
            read = _read(there, min(wanted.most, left), whole_batch=nothing_yet)
            left = max(0, left - read)
            nothing_yet = nothing_yet and not read
            partition = _partition(read, lost.message["request"])
            topics.setdefault(wanted.topic, []).append(partition)
        return _weighed(lost.message["requestHeader"], topics)


def _read(there: Available, limit: int, *, whole_batch: bool) -> int:
    """Bytes read of a partition: never less than a batch where nothing was read yet, or a consumer would never get on (KIP-74)."""
    return min(there.total, max(limit, there.first) if whole_batch else limit)


def _weighed(header: Json, topics: Mapping[str, list[Json]]) -> int | None:
    answer = [
        {"topic": topic, "topicId": topic, "partitions": partitions}
        for topic, partitions in topics.items()
    ]
    return fetch_bytes(header, {"throttleTimeMs": 0, "responses": answer})


def _partition(read: int, request: Json) -> Json:
    committed = request.get("isolationLevel") == _READ_COMMITTED
    return {
        "recordsSizeInBytes": read,
        "abortedTransactions": [] if committed else None,
    }


def _fetches(log: RequestLog) -> Iterator[tuple[int, int, Json]]:
    columns = rows(log.requests, "line", "timestamp", "api_key", "follower")
    for line, at_ms, api_key, follower in columns:
        message = log.messages.get(line)
        if api_key == FETCH and not follower and whole(message):
            yield line, at_ms, message
