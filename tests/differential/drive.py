"""Makes sessions of one subject and has them compared until its share of the operations is used up."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from tests.differential.budget import Budget
from tests.differential.choice import Choice, Seeded, Shrinkable
from tests.differential.comparison import compare, compare_long
from tests.differential.kafka import Kafka
from tests.differential.operation import Operation, Replay, Twin

from quotascope.metrics import KafkaRelease

LENGTHS = (100, 200, 1_000)
"""Operations of seeded sessions."""
EXAMPLES = 50
"""Sessions that Hypothesis makes at a time."""

S = TypeVar("S")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject(Generic[S]):
    """Something to compare: how a session of it begins, and what can happen in it."""

    name: str
    share: float
    """Of all operations of a run."""
    shape: Callable[[Choice], S]
    """Draws what stays the same during a session: configs, names, the kind of clock."""
    opening: Callable[[S], str]
    twin: Callable[[S, KafkaRelease], Twin]
    operation: Callable[[Choice, S], Operation]
    beginning: Callable[[Choice, S], tuple[Operation, ...]] = lambda _choice, _shape: ()
    """Draws what happens first, so that what follows meets something."""

    def replay(self, shape: S, operations: tuple[Operation, ...], release: KafkaRelease) -> Replay:
        """A session of these operations."""
        twin = partial(self.twin, shape, release)
        return Replay(self.opening(shape), twin, operations)

    def long(self, choice: Choice, length: int, release: KafkaRelease) -> Replay:
        """A session of that length."""
        shape = self.shape(choice)
        beginning = self.beginning(choice, shape)
        rest = (self.operation(choice, shape) for _ in range(length - len(beginning)))
        return self.replay(shape, (*beginning, *rest), release)


def nothing(_choice: Choice) -> None:
    """Draw nothing: of some subjects nothing stays the same during a session."""


def drive_shrinkable(kafka: Kafka, budget: Budget, subject: Subject[S]) -> None:
    """Compare a part of the subject's share in short sessions whose every decision Hypothesis can shrink."""
    replays = _replays(subject, kafka.release)
    operations = budget.shrinkable(subject.share)
    done = 0

    for chunk in range(1_000_000):
        if done >= operations:
            return

        @seed(f"{budget.seed} {chunk} {kafka.version}")
        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            print_blob=False,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        )
        @given(replays)
        def check(replay: Replay) -> None:
            nonlocal done
            done += _counted(budget, subject.name, compare(kafka, replay))

        check()


def _replays(subject: Subject[S], release: KafkaRelease) -> st.SearchStrategy[Replay]:
    @st.composite
    def replays(draw: st.DrawFn) -> Replay:
        choice = Shrinkable(draw)
        shape = subject.shape(choice)

        @st.composite
        def operations(draw: st.DrawFn) -> Operation:
            return subject.operation(Shrinkable(draw), shape)

        beginning = subject.beginning(choice, shape)
        return subject.replay(shape, (*beginning, *draw(st.lists(operations(), max_size=80))), release)

    return replays()


def drive_seeded(kafka: Kafka, budget: Budget, subject: Subject[S]) -> None:
    """Compare the rest of the subject's share in long sessions of seeded generators, showing progress."""
    operations = budget.seeded(subject.share)
    done = session = 0
    reported = time.monotonic()
    while done < operations:
        source = f"{subject.name} {budget.seed} {session} {kafka.version}"
        generator = random.Random(source)  # noqa: S311
        length = min(LENGTHS[session % len(LENGTHS)], operations - done)
        replay = subject.long(Seeded(generator), length, kafka.release)
        done += _counted(budget, subject.name, compare_long(kafka, replay))
        session += 1
        if time.monotonic() - reported >= 5 or done >= operations:
            reported = time.monotonic()
            progress = f"  {subject.name}: {done:,} of {operations:,} operations"
            print(progress, flush=True)  # noqa: T201 - `pytest -s` shows it


def _counted(budget: Budget, name: str, operations: int) -> int:
    budget.compared[name] += operations
    return operations
