"""Failed attempts, retries, attempts with unknown throttle times, and lost executors."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Container, Iterable

from ..events import (
    ApplicationEnded,
    EnvironmentUpdated,
    ExecutorRemoved,
    FailureCause,
    LogStarted,
    Removal,
    StageCompleted,
    StageSubmitted,
    TaskAttempt,
    TaskEnded,
)
from .recent import Recent

StageReader = Callable[[], Container[int]]
"""Function that returns the stages in which throttles are counted at all."""

_MOST_TO_REPEAT = 20_000
_MOST_RUNNING = 50_000
_MOST_STAGES = 10_000
_MOST_EXECUTORS = 50_000
_VERSION = re.compile(r"(\d{1,4})\.(\d{1,4})")
_LOSS_REASONS_SINCE = (3, 1)
"""Spark's version since which CoarseGrainedSchedulerBackend.removeExecutor reports the driver's own reason."""


class AttemptCounts:
    """
    Counts of failures, and of retries by the cause of the failure that they repeat.

    A retry repeats the partition of a failed attempt, in the same attempt of the stage or in a later one, in which
    numbers begin at 0 again. The end of a stage or job changes no count, since canceled tasks end after it.

    The first attempts of tasks in first attempts of stages may be left out unless they fail.
    """

    def __init__(self) -> None:
        self.failures: Counter[FailureCause] = Counter()
        self.retries: Counter[FailureCause] = Counter()
        self.stage_retries = 0
        self._to_repeat: Recent[tuple[int, int], FailureCause | None] = Recent(_MOST_TO_REPEAT)
        """Cause of the last attempt that did not succeed, None if it did not fail; by stage and partition."""
        self._running: Recent[int, None] = Recent(_MOST_RUNNING)
        """Ids of running attempts, without first attempts in first attempts of stages."""

    def stage_submitted(self, stage: StageSubmitted) -> None:
        """Count the stage as repeated when this is not its first attempt."""
        self.stage_retries += stage.attempt > 0

    def stage_completed(self, stage: StageCompleted) -> None:
        """Forget the failures of a stage that succeeded, which nothing repeats any more."""
        if not stage.failed:
            for key in [key for key in self._to_repeat if key[0] == stage.stage]:
                del self._to_repeat[key]

    def started(self, attempt: TaskAttempt) -> None:
        """Count an attempt that repeats a failed one as a retry; a speculative attempt repeats nothing."""
        if attempt.number or attempt.stage_attempt:
            self._running[attempt.task] = None
            if attempt.speculative:
                return
            # Where no failure is remembered: a task is tried again because of one, whose cause is unknown; a stage may
            # be tried again because the output of a success was lost, which is no retry. A remembered None is of an
            # attempt that did not fail and yet is repeated, as after a denied commit.
            unseen = FailureCause.UNKNOWN if attempt.number else None
            cause = self._to_repeat.pop((attempt.stage, attempt.partition), unseen)
            if cause is not None:
                self.retries[cause] += 1

    def ended(self, ended: TaskEnded) -> None:
        """Count the failure of an attempt that has ended, also after the end of its stage."""
        attempt = ended.attempt
        if ended.reason != "Resubmitted":  # a second event about an attempt that has ended
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
    Count of attempts that ended without a report, because their executor was lost or they were killed.

    Only stages in which other attempts report are counted: in other stages, no attempt uses an account.
    """

    def __init__(self) -> None:
        self.count = 0
        """Number of attempts without a report in stages in which others report."""
        self._reporting: Recent[int, None] = Recent(_MOST_STAGES)
        """Stages in which attempts report."""
        self._others: Recent[int, int] = Recent(_MOST_STAGES)
        """Number of attempts without a report in each other stage, which count once another attempt reports."""

    def unreported(self, stage: int) -> None:
        """Record that an attempt of this stage did not succeed and left no note."""
        if stage in self._reporting:
            self.count += 1
        else:
            self._others[stage] = self._others.get(stage, 0) + 1

    def reports(self, stage: int) -> None:
        """Record that attempts of this stage report."""
        self._reporting[stage] = None
        self.count += self._others.pop(stage, 0)

    def learn(self, reporting: Iterable[Container[int]]) -> None:
        """Record that attempts of these stages report."""
        for stages in reporting:
            for stage in [stage for stage in self._others if stage in stages]:
                self.reports(stage)


class LostExecutors:
    """
    Count of executors that were removed although the driver had not given them back.

    - A removal counts if it is before the end of the application: SparkContext.stop reports the end before it stops
      executors.
    - Before 3.1, Spark may report an executor that was given back like a lost one. It counts as given back if dynamic
      allocation is on and it had no task for the timeout of idle executors.
    - Only the first removal of an executor counts, since some are reported again when their process ends.
    """

    def __init__(self) -> None:
        self.count = 0
        """Number of lost executors."""
        self.inferred = 0
        """Number of executors that count as given back only because of their idle time."""
        self._ended: float | None = None
        """Time at which the application ended; None while it runs."""
        self._reports_managers = False
        """True if this version of Spark reports the cluster manager's text even for executors that were given back."""
        self._idle_timeout: float | None = None
        self._busy: Recent[str, float] = Recent(_MOST_EXECUTORS)
        """Time at which each executor was added, or its last attempt ended."""
        self._gone: Recent[str, float | None] = Recent(_MOST_EXECUTORS)
        """Time at which each counted executor was lost; None for executors that are not counted."""

    def log_started(self, log: LogStarted) -> None:
        """Record whether this version of Spark reports the cluster manager's text for executors given back, too."""
        match = _VERSION.match(log.version)
        self._reports_managers |= match is not None and (int(match[1]), int(match[2])) < _LOSS_REASONS_SINCE

    def environment(self, environment: EnvironmentUpdated) -> None:
        """Record whether dynamic allocation is on."""
        if environment.idle_timeout is not None:
            self._idle_timeout = environment.idle_timeout

    def busy(self, executor: str, time: float) -> None:
        """Record the time at which an executor was added or an attempt on it ended (seconds since 1970)."""
        self._busy[executor] = max(time, self._busy.get(executor, 0.0))

    def removed(self, executor: ExecutorRemoved) -> None:
        """Record a removed executor."""
        if executor.executor in self._gone or (self._ended is not None and executor.time >= self._ended):
            return
        lost = executor.removal is not Removal.GIVEN_BACK
        if executor.removal is Removal.UNCLEAR and self._was_idle(executor):
            lost = False
            self.inferred += 1
        self._gone[executor.executor] = executor.time if lost else None
        self.count += lost

    def failed(self, executor: str, time: float) -> None:
        """Record that an attempt failed at `time` (seconds since 1970), because this executor was lost."""
        if self._gone.get(executor) is None and self._ended is None:
            self._gone[executor] = time
            self.count += 1

    def ended(self, application: ApplicationEnded) -> None:
        """Leave out executors that ended with the application."""
        self._ended = application.time
        for executor, time in [*self._gone.items()]:  # a copy, since setting an entry changes the order
            if time is not None and time >= application.time:
                self._gone[executor] = None
                self.count -= 1

    def _was_idle(self, executor: ExecutorRemoved) -> bool:
        """Return whether an executor may have been given back, as it had no task for the timeout; see the class."""
        since = self._busy.get(executor.executor)
        if not self._reports_managers or self._idle_timeout is None or since is None:
            return False
        return executor.time - since >= self._idle_timeout
