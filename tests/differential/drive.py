"""Makes random sessions of one subject and has them compared until its share of the operations is used up."""

import os
import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from tests.differential.choice import Choice
from tests.differential.comparison import Operation, Replay, Twin, compare
from tests.differential.kafka import Kafka

from quotascope.metrics.kafka.release import KafkaRelease

TOTAL = int(os.environ.get("QUOTASCOPE_DIFFERENTIAL_OPS", "150000"))
"""Operations of a run with each release, of all its subjects."""
SEED_VARIABLE = "QUOTASCOPE_DIFFERENTIAL_SEED"
LENGTHS = (*[20] * 40, *[50] * 12, *[200] * 3, 1_000)
"""Operations of a session: 54 on average, since each has one config and one clock only."""

S = TypeVar("S")


class Budget:
    """Shares out the operations of a run among its subjects and counts what was really compared."""

    def __init__(self) -> None:
        self.seed = int(os.environ.get(SEED_VARIABLE, random.SystemRandom().randrange(2**32)))
        self.compared: Counter[str] = Counter()

    def report(self) -> str:
        """Return one line for the end of the run."""
        parts = ", ".join(f"{subject} {n:,}" for subject, n in sorted(self.compared.items()))
        return f"{self.compared.total():,} operations compared ({parts}); {SEED_VARIABLE}={self.seed}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject(Generic[S]):
    """Subject of a comparison: the beginning of a session, and the operations that can happen in it."""

    name: str
    share: float
    """Share of all operations of a run."""
    shape: Callable[[Choice], S]
    """Draws what stays the same during a session: configs, names, the kind of clock."""
    opening: Callable[[S], str]
    """The line that creates Kafka's side."""
    twin: Callable[[S, KafkaRelease], Twin]
    operation: Callable[[Choice, S], Operation]
    beginning: Callable[[Choice, S], tuple[Operation, ...]] = lambda _choice, _shape: ()
    """Draws what happens first, so that what follows meets something."""

    def replay(self, shape: S, operations: tuple[Operation, ...], release: KafkaRelease) -> Replay:
        """Return a session of these operations."""
        twin = partial(self.twin, shape, release)
        return Replay(self.opening(shape), twin, operations)

    def session(self, choice: Choice, length: int, release: KafkaRelease) -> Replay:
        """Return a random session of about that length."""
        shape = self.shape(choice)
        beginning = self.beginning(choice, shape)
        random_operations = (self.operation(choice, shape) for _ in range(length - len(beginning)))
        return self.replay(shape, (*beginning, *random_operations), release)


def nothing(_choice: Choice) -> None:
    """Draw nothing: of some subjects nothing stays the same during a session."""


def drive(kafka: Kafka, budget: Budget, subject: Subject[S], share: float) -> None:
    """Compare the subject's share of all operations with a release, showing progress."""
    operations = round(TOTAL * share)
    finished = session = 0
    reported = time.monotonic()
    while finished < operations:
        choice = Choice(f"{subject.name} {budget.seed} {session} {kafka.version}")
        compared = compare(kafka, subject.session(choice, choice.of(LENGTHS), kafka.release))
        budget.compared[subject.name] += compared
        finished += compared
        session += 1
        if time.monotonic() - reported >= 5 or finished >= operations:
            reported = time.monotonic()
            text = f"  {subject.name}: {finished:,} of {operations:,} operations"
            print(text, flush=True)  # noqa: T201 - `pytest -s` shows it
