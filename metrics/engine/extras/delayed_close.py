"""Refused connections that are kept open for a while."""

import heapq
from typing import Generic, TypeVar

T = TypeVar("T")


class DelayedClose(Generic[T]):
    """
    Connections that are to be closed after their throttle (Kafka: `Acceptor.throttledSockets`).

    Kafka's queue gives out the latest deadline first, so none is closed before the last of all is due: under steady
    refusals, none ever until they stop. A connection is due after its deadline, not at it.

    Not synchronized: an acceptor is one thread.

    Args:
        earliest_first: close each when it is due, which Kafka does not.

    """

    __slots__ = ("_earliest_first", "_heap", "_number")

    def __init__(self, *, earliest_first: bool = False) -> None:
        self._earliest_first: bool = earliest_first
        self._heap: list[tuple[int, int, int, T]] = []
        self._number: int = 0

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, connection: T, end_ms: int) -> None:
        """Keep a connection until `end_ms` (epoch ms)."""
        order = end_ms if self._earliest_first else -end_ms
        self._number += 1
        heapq.heappush(self._heap, (order, self._number, end_ms, connection))

    def due(self, now_ms: int) -> list[T]:
        """Remove and return the connections that are to be closed at `now_ms` (epoch ms)."""
        closing = []
        while self._heap and self._heap[0][2] < now_ms:
            closing.append(heapq.heappop(self._heap)[3])
        return closing

    def clear(self) -> list[T]:
        """Remove and return all connections, for an acceptor that stops."""
        closing = [entry[3] for entry in self._heap]
        self._heap = []
        return closing
