"""What is replayed: operations with plain arguments, sent to Kafka as a line and to our engine as a call."""

from collections.abc import Callable
from dataclasses import dataclass

from tests.differential.wire import Argument, tokens


class Twin:
    """Our engine behind the operations of a session: one method `_op_<verb>` per operation, answering in Kafka's words; and a clock."""

    def __init__(self, now_ms: int = 0) -> None:
        self._now_ms = now_ms

    def step(self, ms: int) -> None:
        """Move the clock, before the operation itself."""
        self._now_ms += ms


@dataclass(frozen=True, slots=True)
class Operation:
    """One call, made on both sides after the clock moved by `step_ms`, which may be negative."""

    verb: str
    step_ms: int
    arguments: tuple[Argument, ...] = ()

    def line(self) -> str:
        return " ".join((self.verb, str(self.step_ms), *tokens(*self.arguments)))

    def apply(self, twin: Twin) -> str:
        """The call on our side; an unexpected error is an answer that Kafka never gives."""
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
        """What our side answers, beginning with the creation."""
        twin = self.twin()
        return ["ok", *(operation.apply(twin) for operation in self.operations)]
