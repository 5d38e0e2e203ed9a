"""Spark's listener events, as its JsonProtocol writes them: typed records, and the cause of a failed task."""

from ..errors import UnreadableEvent
from .cause import Cause
from .failure import Failure, classify
from .parsing import WANTED, parse
from .records import (
    ApplicationEnded,
    ApplicationStarted,
    Attempt,
    ExecutorRemoved,
    JobEnded,
    JobStarted,
    OffsetsBehind,
    QueryIdle,
    QueryProgressed,
    QueryStarted,
    QueryTerminated,
    Record,
    StageCompleted,
    StageSubmitted,
    TaskEnded,
    TaskStarted,
)

__all__ = [
    "WANTED",
    "ApplicationEnded",
    "ApplicationStarted",
    "Attempt",
    "Cause",
    "ExecutorRemoved",
    "Failure",
    "JobEnded",
    "JobStarted",
    "OffsetsBehind",
    "QueryIdle",
    "QueryProgressed",
    "QueryStarted",
    "QueryTerminated",
    "Record",
    "StageCompleted",
    "StageSubmitted",
    "TaskEnded",
    "TaskStarted",
    "UnreadableEvent",
    "classify",
    "parse",
]
