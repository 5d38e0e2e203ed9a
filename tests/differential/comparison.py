"""Replays a session on both sides and says where they differ."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from typing import Protocol

from tests.differential.operation import Operation, Replay
from tests.differential.wire import readable


class Peer(Protocol):
    """The side that ours is compared with."""

    def send(self, lines: list[str]) -> None:
        """Hand over a session."""

    def receive(self) -> list[str]:
        """The answers, one per line."""


class Difference(AssertionError):
    """The two sides answered an operation differently."""

    def __init__(self, replay: Replay, index: int, kafka: str, ours: str) -> None:
        super().__init__(replay, index, kafka, ours)
        self.replay = replay
        self.index = index
        self.kafka = kafka
        self.ours = ours

    def __str__(self) -> str:
        operations = "\n".join(f"  {operation}" for operation in self.replay.operations[: self.index])
        return (
            f"after {self.replay.opening!r} the last of these operations differs:\n{operations}\n"
            f"Kafka: {readable(self.kafka)}\n ours: {readable(self.ours)}"
        )


def compare(kafka: Peer, replay: Replay) -> int:
    """The number of operations compared; raises `Difference` at the first that differs."""
    kafka.send(replay.lines())
    ours = replay.answers()
    theirs = kafka.receive()
    if theirs != ours:
        index = next(i for i, pair in enumerate(zip(theirs, ours, strict=True)) if pair[0] != pair[1])
        raise Difference(replay, index, theirs[index], ours[index])
    return len(replay.operations)


def compare_long(kafka: Peer, replay: Replay) -> int:
    """As `compare`, for a session of a seeded generator: a difference is made short before it is raised."""
    try:
        return compare(kafka, replay)
    except Difference as difference:
        raise shortened(difference, lambda shorter: _difference(kafka, shorter)) from None


def _difference(kafka: Peer, replay: Replay) -> Difference | None:
    try:
        compare(kafka, replay)
    except Difference as difference:
        return difference
    return None


def shortened(difference: Difference, retry: Callable[[Replay], Difference | None]) -> Difference:
    """A difference with as few operations before it as leaving out some of them, one stretch at a time, can reach."""
    operations = difference.replay.operations[: difference.index]
    length = len(operations)
    while length:
        for shorter in _without_a_stretch(operations, length):
            if found := retry(replace(difference.replay, operations=shorter)):
                difference, operations = found, found.replay.operations[: found.index]
                break
        else:
            length //= 2
    return difference


def _without_a_stretch(operations: tuple[Operation, ...], length: int) -> Iterator[tuple[Operation, ...]]:
    for start in count(0, length):
        if start >= len(operations):
            return
        yield operations[:start] + operations[start + length :]
