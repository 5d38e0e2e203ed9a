"""
Replay of operations with plain arguments.

Each is sent to Kafka as a line and to our engine as a call; the first difference between the answers is shown.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from tests.differential.wire import Argument, readable, tokens


class Twin:
    """Our engine behind a session's operations, with a clock: each method `_op_<verb>` answers in Kafka's words."""

    def __init__(self, now_ms: int = 0) -> None:
        self._now_ms = now_ms

    def step(self, ms: int) -> None:
        """Move the clock, before the operation itself."""
        self._now_ms += ms


@dataclass(frozen=True, slots=True)
class Operation:
    """A call that is made on both sides after the clock moved by `step_ms`, which may be negative."""

    verb: str
    step_ms: int
    arguments: tuple[Argument, ...] = ()

    def line(self) -> str:
        return " ".join((self.verb, str(self.step_ms), *tokens(*self.arguments)))

    def apply(self, twin: Twin) -> str:
        """Return our side's answer; an unexpected error is an answer that Kafka never gives."""
        twin.step(self.step_ms)
        try:
            answer: str | None = getattr(twin, f"_op_{self.verb}")(*self.arguments)
        except Exception as error:  # noqa: BLE001 - reported as a difference, with the operations before it
            return f"our engine failed: {error!r}"
        return "ok" if answer is None else answer


@dataclass(frozen=True, slots=True)
class Replay:
    """A session from its first line to its last operation."""

    opening: str
    """The line that creates Kafka's side."""
    twin: Callable[[], Twin]
    """Creates our side."""
    operations: tuple[Operation, ...]

    def lines(self) -> list[str]:
        return [self.opening, *(operation.line() for operation in self.operations)]

    def answers(self) -> list[str]:
        """Return our side's answers, beginning with that to the creation."""
        twin = self.twin()
        return ["ok", *(operation.apply(twin) for operation in self.operations)]


class Peer(Protocol):
    """The side that ours is compared with."""

    def send(self, lines: list[str]) -> None:
        """Hand over a session."""

    def receive(self) -> list[str]:
        """Return the answers, one per line."""


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
    """
    Return the number of operations compared.

    Raise a `Difference` with few operations, found by leaving out stretches.
    """
    difference = _difference(kafka, replay)
    if difference is None:
        return len(replay.operations)
    operations = difference.replay.operations[: difference.index]
    length = len(operations)
    while length:
        for start in range(0, len(operations), length):
            shorter = operations[:start] + operations[start + length :]
            if shorter_difference := _difference(kafka, replace(replay, operations=shorter)):
                difference, operations = (
                    shorter_difference,
                    shorter_difference.replay.operations[: shorter_difference.index],
                )
                break
        else:
            length //= 2
    raise difference


def _difference(kafka: Peer, replay: Replay) -> Difference | None:
    kafka.send(replay.lines())
    ours = replay.answers()
    theirs = kafka.receive()
    if theirs == ours:
        return None
    index = next(i for i, pair in enumerate(zip(theirs, ours, strict=True)) if pair[0] != pair[1])
    return Difference(replay, index, theirs[index], ours[index])
