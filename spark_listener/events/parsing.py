"""Makes records of JsonProtocol's events, those of Spark 3.5 to 4.3, and of others as far as they are alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from .failure import classify, failure_text
from .fields import Json, moment, name, needed, number, numbers, part, parts, text
from .progress import offsets_behind, phases
from .records import (
    ApplicationEnded,
    ApplicationStarted,
    Attempt,
    ExecutorRemoved,
    JobEnded,
    JobStarted,
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

_QUERY_ID = "sql.streaming.queryId"  # StreamExecution.QUERY_ID_KEY
# ExecutorKilled and ExecutorDecommission of Spark's scheduler
_PLANNED = ("Executor killed by driver.", "Executor decommission")


def parse(event: Json) -> Record | None:
    """
    The record of an event; None for a kind of event that does not matter here.

    Raises `UnreadableEvent` when it lacks what every version writes.
    """
    kind = text(event, "Event").rpartition(".")[2]
    make = _BY_KIND.get(kind)
    return None if make is None else make(event)


def _application_started(event: Json) -> ApplicationStarted:
    return ApplicationStarted(
        name=name(event, "App Name"),
        app_id=name(event, "App ID"),
        time=_time(event, "Timestamp"),
    )


def _application_ended(event: Json) -> ApplicationEnded:
    return ApplicationEnded(time=_time(event, "Timestamp"))


def _job_started(event: Json) -> JobStarted:
    return JobStarted(
        job=needed(event, "Job ID"),
        stages=numbers(event, "Stage IDs"),
        query=name(part(event, "Properties"), _QUERY_ID),
        time=_time(event, "Submission Time"),
    )


def _job_ended(event: Json) -> JobEnded:
    return JobEnded(
        job=needed(event, "Job ID"),
        succeeded=text(part(event, "Job Result"), "Result") == "JobSucceeded",
        time=_time(event, "Completion Time"),
    )


def _stage_submitted(event: Json) -> StageSubmitted:
    stage = part(event, "Stage Info")
    return StageSubmitted(
        stage=needed(stage, "Stage ID"),
        attempt=number(stage, "Stage Attempt ID", 0) or 0,
        name=name(stage, "Stage Name"),
        tasks=number(stage, "Number of Tasks", 0) or 0,
        query=name(part(event, "Properties"), _QUERY_ID),
        time=_time_if_known(stage, "Submission Time"),
    )


def _stage_completed(event: Json) -> StageCompleted:
    stage = part(event, "Stage Info")
    return StageCompleted(
        stage=needed(stage, "Stage ID"),
        attempt=number(stage, "Stage Attempt ID", 0) or 0,
        name=name(stage, "Stage Name"),
        failed=bool(text(stage, "Failure Reason")),
        began=_time_if_known(stage, "Submission Time"),
        time=_time_if_known(stage, "Completion Time"),
    )


def _task_started(event: Json) -> TaskStarted:
    return TaskStarted(attempt=_attempt(event))


def _task_ended(event: Json) -> TaskEnded:
    reason = part(event, "Task End Reason")
    failure = classify(reason)
    return TaskEnded(
        attempt=_attempt(event),
        reason=name(reason, "Reason"),
        failure=failure,
        text="" if failure is None else failure_text(reason),
        time=_time(part(event, "Task Info"), "Finish Time"),
    )


def _attempt(event: Json) -> Attempt:
    task = part(event, "Task Info")
    index = needed(task, "Index")
    partition = number(task, "Partition ID", -1)  # Spark 3.3 brought it
    return Attempt(
        stage=needed(event, "Stage ID"),
        stage_attempt=number(event, "Stage Attempt ID", 0) or 0,
        partition=index if partition is None or partition < 0 else partition,
        number=needed(task, "Attempt"),
        task=needed(task, "Task ID"),
        speculative=task.get("Speculative") is True,
        executor=name(task, "Executor ID"),
        began=_time(task, "Launch Time"),
    )


def _executor_removed(event: Json) -> ExecutorRemoved:
    return ExecutorRemoved(
        executor=name(event, "Executor ID"),
        planned=text(event, "Removed Reason").startswith(_PLANNED),
        time=_time(event, "Timestamp"),
    )


def _query_started(event: Json) -> QueryStarted:
    return QueryStarted(
        query=name(event, "id"),
        run=name(event, "runId"),
        name=name(event, "name"),
        time=moment(event, "timestamp"),
    )


def _query_progressed(event: Json) -> QueryProgressed:
    progress = part(event, "progress")
    sources = list(parts(progress, "sources"))
    return QueryProgressed(
        query=name(progress, "id"),
        run=name(progress, "runId"),
        name=name(progress, "name"),
        batch=number(progress, "batchId", 0) or 0,
        began=moment(progress, "timestamp"),
        phases=phases(progress),
        rows=sum(number(source, "numInputRows", 0) or 0 for source in sources),
        offsets_behind=offsets_behind(sources),
    )


def _query_idle(event: Json) -> QueryIdle:
    return QueryIdle(
        query=name(event, "id"),
        run=name(event, "runId"),
        time=moment(event, "timestamp"),
    )


def _query_terminated(event: Json) -> QueryTerminated:
    return QueryTerminated(
        query=name(event, "id"),
        run=name(event, "runId"),
        failed=bool(text(event, "exception")),
    )


def _time(event: Json, key: str) -> float:
    return needed(event, key) / 1_000


def _time_if_known(event: Json, key: str) -> float | None:
    found = number(event, key, None)
    return None if found is None else found / 1_000


_BY_KIND: Final[dict[str, Callable[[Json], Record]]] = {
    "SparkListenerApplicationStart": _application_started,
    "SparkListenerApplicationEnd": _application_ended,
    "SparkListenerJobStart": _job_started,
    "SparkListenerJobEnd": _job_ended,
    "SparkListenerStageSubmitted": _stage_submitted,
    "SparkListenerStageCompleted": _stage_completed,
    "SparkListenerTaskStart": _task_started,
    "SparkListenerTaskEnd": _task_ended,
    "SparkListenerExecutorRemoved": _executor_removed,
    "StreamingQueryListener$QueryStartedEvent": _query_started,
    "StreamingQueryListener$QueryProgressEvent": _query_progressed,
    "StreamingQueryListener$QueryIdleEvent": _query_idle,
    "StreamingQueryListener$QueryTerminatedEvent": _query_terminated,
}

WANTED: Final = frozenset(_BY_KIND)
"""The simple class names of the events that `parse` makes records of."""
