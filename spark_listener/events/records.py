"""The events that matter, as typed records. Times are seconds since 1970."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from .failure import Failure


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
    """SparkListenerEnvironmentUpdate: which clients' throttle times can be known."""

    listener: bool
    """Whether it shows that the listener is attached: by its property, or by the files that it sends to executors."""
    summary_file: str
    """`spark.quotascope.summaryFile`; empty if it is not set."""
    without_java_clients: bool
    """Whether the class path is listed, and neither names Kafka nor has jars of unknown content."""


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
    """Whether its RDDs show that Python code runs in its tasks."""
    time: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StageCompleted:
    """SparkListenerStageCompleted."""

    stage: int
    attempt: int
    name: str
    failed: bool
    runs_python: bool
    """Whether its metrics show that Python code has run in its tasks."""
    began: float | None
    time: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskAttempt:
    """One attempt of a task."""

    stage: int
    stage_attempt: int
    partition: int
    """The same for all attempts of the task and of the stage."""
    number: int
    """0 for the first in this attempt of the stage."""
    task: int
    """Unique in the application."""
    speculative: bool
    """Whether it races another attempt."""
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
    """None when it did not fail, see `classify`."""
    text: str = field(repr=False)
    """Where a note may be; empty when it did not fail. Holds anything, passwords too."""
    time: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorRemoved:
    """SparkListenerExecutorRemoved."""

    executor: str
    planned: bool
    """Whether the driver removed it."""
    time: float


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryStarted:
    """StreamingQueryListener.QueryStartedEvent."""

    query: str
    run: str
    name: str


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
    """None where a Kafka source does not report them, or none is read."""
    runs_python: bool = False
    """Whether its sink calls a Python function for each row, which no event of its stages shows."""

    @property
    def ended(self) -> float | None:
        """When the micro-batch was over."""
        if self.began is None:
            return None
        return self.began + self.phases.get("triggerExecution", 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetsBehind:
    """How far the partitions of a Kafka source are behind the newest offset; of several sources, that of the worst."""

    most: float
    average: float


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaOffsets:
    """Where a micro-batch ends in the topics, as sums over the partitions of all Kafka sources."""

    read: int
    """The offsets up to which it reads (endOffset)."""
    newest: int
    """The newest offsets when it was planned (latestOffset)."""


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


Record: TypeAlias = (
    ApplicationStarted
    | ApplicationEnded
    | EnvironmentUpdated
    | JobStarted
    | JobEnded
    | StageSubmitted
    | StageCompleted
    | TaskStarted
    | TaskEnded
    | ExecutorRemoved
    | QueryStarted
    | QueryProgressed
    | QueryIdle
    | QueryTerminated
)
