"""Which attempts failed, and which repeat a failed one."""

from __future__ import annotations

from collections import Counter

from ..events import Attempt, Cause, StageCompleted, StageSubmitted, TaskEnded
from .recent import Recent

_MOST_TO_REPEAT = 20_000
_MOST_RUNNING = 50_000


class AttemptBook:
    """
    Failures, and retries by the cause of the failure that they repeat.

    A retry repeats the partition of a failed attempt, in the same attempt of the stage or in a later one, where numbers begin at 0
    again. Nothing is closed with its stage or job: tasks end after them when they were cancelled.

    First attempts in first attempts of stages need not be told unless they fail.
    """

    def __init__(self) -> None:
        self.failures: Counter[Cause] = Counter()
        self.retries: Counter[Cause] = Counter()
        self.stage_retries = 0
        self._to_repeat: Recent[tuple[int, int], Cause | None] = Recent(_MOST_TO_REPEAT)
        self._running: Recent[int, None] = Recent(_MOST_RUNNING)

    def stage_submitted(self, stage: StageSubmitted) -> None:
        """Count the stage as repeated when this is not its first attempt."""
        self.stage_retries += stage.attempt > 0

    def stage_completed(self, stage: StageCompleted) -> None:
        """Forget what was to be repeated of a stage that succeeded."""
        if not stage.failed:
            for key in [key for key in self._to_repeat if key[0] == stage.stage]:
                del self._to_repeat[key]

    def started(self, attempt: Attempt) -> None:
        """Count the attempt as a retry when it is one; a racing attempt repeats nothing."""
        if attempt.number or attempt.stage_attempt:
            self._running[attempt.task] = None
            if not attempt.speculative:
                self._repeats(attempt)

    def ended(self, ended: TaskEnded) -> None:
        """Count the attempt as failed when it did, whatever has become of its stage."""
        attempt = ended.attempt
        if ended.reason != "Resubmitted":  # which is told of an attempt that has ended
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

    def _repeats(self, attempt: Attempt) -> None:
        # what is not remembered is the failure of a second attempt, or in a later attempt of the stage a success whose output
        # was lost; None are attempts that did not fail and yet are repeated, as after a denied commit
        unseen = Cause.UNKNOWN if attempt.number else None
        cause = self._to_repeat.pop((attempt.stage, attempt.partition), unseen)
        if cause is not None:
            self.retries[cause] += 1
