"""Spark's listener events, as its JsonProtocol writes them: typed records, and the cause of a failed task."""

from ..errors import UnreadableEvent
from .failure import Failure, FailureCause, classify
from .parsing import LOGGED, WANTED, may_end_attempt, parse
from .records import (
    ApplicationEnded,
    ApplicationStarted,
    EnvironmentUpdated,
    ExecutorRemoved,
    JobEnded,
    JobStarted,
    KafkaOffsets,
    OffsetsBehind,
    QueryIdle,
    QueryProgressed,
    QueryStarted,
    QueryTerminated,
    Record,
    StageCompleted,
    StageSubmitted,
    TaskAttempt,
    TaskEnded,
    TaskStarted,
)

__all__ = [
    "LOGGED",
    "WANTED",
    "ApplicationEnded",
    "ApplicationStarted",
    "EnvironmentUpdated",
    "ExecutorRemoved",
    "Failure",
    "FailureCause",
    "JobEnded",
    "JobStarted",
    "KafkaOffsets",
    "OffsetsBehind",
    "QueryIdle",
    "QueryProgressed",
    "QueryStarted",
    "QueryTerminated",
    "Record",
    "StageCompleted",
    "StageSubmitted",
    "TaskAttempt",
    "TaskEnded",
    "TaskStarted",
    "UnreadableEvent",
    "classify",
    "may_end_attempt",
    "parse",
]
