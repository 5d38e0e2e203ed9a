"""Events as typed records. Times are seconds since 1970."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from .failure import Failure
from .removal import Removal


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStarted:
    """SparkListenerLogStart, or Databricks' first line of a file."""

    version: str
    """Spark's version, with what a vendor appends to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationStarted:
    """SparkListenerApplicationStart."""

    name: str
    app_id: str
    time: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationEnded:
    """SparkListenerApplicationEnd."""

    time: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentUpdated:
    """SparkListenerEnvironmentUpdate: shows which clients' throttle times can be known."""

    listener: bool
    """
    True if the properties show that the listener is attached: by its own property, or by the files that it sends to
    executors.
    """
    summary_file: str
    """`spark.quotascope.summaryFile`; empty if it is not set."""
    without_java_clients: bool
    """True if the class path is listed, and no entry names Kafka or is a jar of unknown content."""
    plugin: bool = False
    """True if the throttle plugin was set, which watches Kafka clients of the JVMs."""
    idle_timeout: float | None = None
    """
    Seconds after which dynamic allocation gives an executor back (spark.dynamicAllocation.executorIdleTimeout); None if
    it is off.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStarted:
    """SparkListenerJobStart."""

    time: float


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnded:
    """SparkListenerJobEnd."""

    time: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSubmitted:
    """SparkListenerStageSubmitted."""

    stage: int
    attempt: int
    name: str
    tasks: int
    query: str
    """Id of the streaming query that it is a part of; empty when there is none."""
    runs_python: bool
    """True if its RDDs show that Python code runs in its tasks."""
    time: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StageCompleted:
    """SparkListenerStageCompleted."""

    stage: int
    attempt: int
    name: str
    tasks: int
    failed: bool
    canceled: bool
    """True if it failed as it or its job was canceled."""
    runs_python: bool
    """True if its metrics show that Python code has run in its tasks."""
    began: float | None
    time: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskAttempt:
    """One attempt of a task."""

    stage: int
    stage_attempt: int
    partition: int
    """Index of the task, the same for all of its attempts in the stage."""
    number: int
    """Number of the attempt; 0 for the first in this attempt of the stage."""
    task: int
    """Id that is unique in the application."""
    speculative: bool
    """True if it races another attempt."""
    executor: str
    began: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStarted:
    """SparkListenerTaskStart."""

    attempt: TaskAttempt


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEnded:
    """SparkListenerTaskEnd."""

    attempt: TaskAttempt
    reason: str
    """Success, ExceptionFailure, FetchFailed and so on."""
    failure: Failure | None
    """Failure of the attempt; None when it did not fail, see `classify`."""
    text: str = field(repr=False)
    """Text that may hold a note; empty when the attempt did not fail. It may hold passwords."""
    time: float
    lost_executor: bool = False
    """True if it failed with its executor, which the driver had not given back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorAdded:
    """SparkListenerExecutorAdded."""

    executor: str
    time: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorRemoved:
    """SparkListenerExecutorRemoved."""

    executor: str
    removal: Removal
    time: float


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryStarted:
    """StreamingQueryListener.QueryStartedEvent."""

    query: str
    run: str
    name: str
    time: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryProgressed:
    """StreamingQueryListener.QueryProgressEvent, at the end of a micro-batch."""

    query: str
    run: str
    name: str
    batch: int
    began: float | None
    phases: Mapping[str, float]
    """Seconds by phase; triggerExecution is all of them."""
    rows: int
    offsets_behind: OffsetsBehind | None
    offsets: KafkaOffsets | None
    """Offsets of its Kafka sources; None where one does not report them, or there is none."""
    runs_python: bool = False
    """True if its sink calls a Python function for each row, which no event of its stages shows."""

    @property
    def ended(self) -> float | None:
        """Time at which the micro-batch was over."""
        if self.began is None:
            return None
        return self.began + self.phases.get("triggerExecution", 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetsBehind:
    """Distance of a Kafka source's partitions from the newest offset; of several sources, the largest."""

    maximum: float
    average: float


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaOffsets:
    """Offsets at which a micro-batch ends, as sums over the partitions of all Kafka sources."""

    end: int
    """Offsets up to which it reads (endOffset)."""
    newest: int
    """Newest offsets when it was planned (latestOffset)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryIdle:
    """StreamingQueryListener.QueryIdleEvent: there is nothing to do."""

    query: str
    run: str
    time: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryTerminated:
    """StreamingQueryListener.QueryTerminatedEvent."""

    query: str
    run: str
    failure: Failure | None = None
    """Cause of its end; None when it was stopped."""


Record: TypeAlias = (
    LogStarted
    | ApplicationStarted
    | ApplicationEnded
    | EnvironmentUpdated
    | JobStarted
    | JobEnded
    | StageSubmitted
    | StageCompleted
    | TaskStarted
    | TaskEnded
    | ExecutorAdded
    | ExecutorRemoved
    | QueryStarted
    | QueryProgressed
    | QueryIdle
    | QueryTerminated
)
