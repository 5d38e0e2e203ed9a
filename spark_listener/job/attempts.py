"""Failed attempts, retries, attempts with unknown throttle times, and lost executors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable

from ..events import (
    ApplicationEnded,
    ExecutorRemoved,
    FailureCause,
    StageCompleted,
    StageSubmitted,
    TaskAttempt,
    TaskEnded,
)
from .recent import Recent

StageReader = Callable[[], Container[int]]
"""Returns the stages in which throttles are counted at all."""

_MOST_TO_REPEAT = 20_000
_MOST_RUNNING = 50_000
_MOST_STAGES = 10_000
_STOPPING_SECONDS = 5.0
_MOST_UNDECIDED = 10_000


class AttemptCounts:
    """
    Failures, and retries by the cause of the failure that they repeat.

    A retry repeats the partition of a failed attempt, in the same attempt of the stage or in a later one, where numbers begin at 0
    again. Nothing is closed with its stage or job: tasks end after them when they were canceled.

    First attempts in first attempts of stages may be left out unless they fail.
    """

    def __init__(self) -> None:
        self.failures: Counter[FailureCause] = Counter()
        self.retries: Counter[FailureCause] = Counter()
        self.stage_retries = 0
        self._to_repeat: Recent[tuple[int, int], FailureCause | None] = Recent(_MOST_TO_REPEAT)
        self._running: Recent[int, None] = Recent(_MOST_RUNNING)

    def stage_submitted(self, stage: StageSubmitted) -> None:
        """Count the stage as repeated when this is not its first attempt."""
        self.stage_retries += stage.attempt > 0

    def stage_completed(self, stage: StageCompleted) -> None:
        """Nothing of a stage that succeeded is repeated."""
        if not stage.failed:
            for key in [key for key in self._to_repeat if key[0] == stage.stage]:
                del self._to_repeat[key]

    def started(self, attempt: TaskAttempt) -> None:
        """Count the attempt as a retry when it is one; a racing attempt repeats nothing."""
        if attempt.number or attempt.stage_attempt:
            self._running[attempt.task] = None
            if attempt.speculative:
                return
            # a failure that is not remembered is unknown in a later attempt of the task; in a later attempt of the stage, it may have been
            # a success with lost output. None are attempts that did not fail and yet are repeated, as after a denied commit
            unseen = FailureCause.UNKNOWN if attempt.number else None
            cause = self._to_repeat.pop((attempt.stage, attempt.partition), unseen)
            if cause is not None:
                self.retries[cause] += 1

    def ended(self, ended: TaskEnded) -> None:
        """Count the attempt as failed when it did, in whatever state its stage is."""
        attempt = ended.attempt
        if ended.reason != "Resubmitted":  # an event about an attempt that has ended before
            if attempt.task not in self._running:
                self.started(attempt)
            self._running.pop(attempt.task, None)
        key = attempt.stage, attempt.partition
        if ended.reason == "Success":
            self._to_repeat.pop(key, None)
            return
        cause = None if ended.failure is None else ended.failure.cause
        if cause is not None:
            self.failures[cause] += 1
        self._to_repeat[key] = cause


class UnreportedAttempts:
    """
    Counts attempts that ended without a report, since the executor was lost or the attempt killed, in stages with attempts that do report.

    In other stages, an attempt without a report means nothing.
    """

    def __init__(self) -> None:
        self.count = 0
        self._reporting: Recent[int, None] = Recent(_MOST_STAGES)
        self._others: Recent[int, int] = Recent(_MOST_STAGES)

    def unreported(self, stage: int) -> None:
        """An attempt of this stage did not succeed and left no note."""
        if stage in self._reporting:
            self.count += 1
        else:
            self._others[stage] = self._others.get(stage, 0) + 1

    def reports(self, stage: int) -> None:
        """Attempts of this stage report."""
        self._reporting[stage] = None
        self.count += self._others.pop(stage, 0)

    def learn(self, reporting: Iterable[Container[int]]) -> None:
        """Attempts of these stages report."""
        for stages in reporting:
            for stage in [stage for stage in self._others if stage in stages]:
                self.reports(stage)


class LostExecutors:
    """
    Executors that went away without the driver having removed them.

    An application that stops takes its executors with it, some of them before the event of its end: a loss counts once it is a few
    seconds old, or has failed an attempt.
    """

    def __init__(self) -> None:
        self._lost = 0
        self._ended = False
        self._failed_attempts: Recent[str, None] = Recent(_MOST_UNDECIDED)
        self._undecided: Recent[str, tuple[float, float]] = Recent(_MOST_UNDECIDED)
        """By executor when it was removed, by the driver's clock, and when that was reported, by ours."""

    def removed(self, executor: ExecutorRemoved, now: float) -> None:
        """Take in an executor that is gone, as is known since `now` (seconds since 1970)."""
        if not (executor.planned or self._ended):
            self._undecided[executor.executor] = executor.time, now

    def failed(self, executor: str) -> None:
        """An attempt failed because this executor was lost."""
        self._failed_attempts[executor] = None

    def ended(self, application: ApplicationEnded) -> None:
        """Leave out the executors that the end of the application took along."""
        before = application.time - _STOPPING_SECONDS
        self._lost += sum(
            removed <= before or executor in self._failed_attempts for executor, (removed, _) in self._undecided.items()
        )
        self._ended = True
        self._undecided.clear()

    def lost(self, now: float) -> int:
        """How many were lost until `now` (seconds since 1970; infinite if no event follows)."""
        decided = [each for each, (_, known) in self._undecided.items() if known <= now - _STOPPING_SECONDS]
        for executor in decided:
            del self._undecided[executor]
        self._lost += len(decided)
        return self._lost
