"""Records of JsonProtocol's events: of the versions in docs/guides/spark.md, and of others as far as they are alike."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ..errors import UnreadableEvent
from .failure import classify, classify_query, failure_text
from .fields import Json, moment, name, needed, number, part, parts, text
from .records import (
    ApplicationEnded,
    ApplicationStarted,
    EnvironmentUpdated,
    ExecutorAdded,
    ExecutorRemoved,
    JobEnded,
    JobStarted,
    KafkaOffsets,
    LogStarted,
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
from .removal import Removal, removal_of

_QUERY_ID = "sql.streaming.queryId"  # StreamExecution.QUERY_ID_KEY
_PLUGIN = "io.quotascope.spark.ThrottlePlugin"
_IDLE_TIMEOUT = 60.0
"""spark.dynamicAllocation.executorIdleTimeout where it is not set."""
_DURATION = re.compile(r"(\d{1,12})\s*(ms|s|m|min|h|d)?", re.ASCII)
_UNITS = {None: 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3_600.0, "d": 86_400.0}
_CANCELED = re.compile(r"(?:\[\w{1,100}\] )?(?:Job \d+|Stage|Stage \d+) cancell?ed\b")
"""Pattern of DAGScheduler's reason when a job, its group or its context is cancelled, or a query stops."""
_MOST_PHASES = 50
_JARS = (
    "spark.jars",
    "spark.jars.packages",
    "spark.yarn.dist.jars",
    "spark.driver.extraClassPath",
    "spark.executor.extraClassPath",
)
"""Properties that add to the class path."""
_PYTHON = re.compile(r"Python|InPySpark|InPandas|InArrow|ArrowEval|ArrowWindow|ArrowAggregate")
"""
Pattern of PythonRDD, and of the scopes that PySpark's plans give their RDDs.

Such scopes are BatchEvalPython, MapInPandas and TransformWithStateInPySpark.
"""


def parse(event: Json) -> Record | None:
    """
    Return the record of an event; None for a kind of event that does not matter here.

    Raises `UnreadableEvent` when it lacks what every version writes.
    """
    make = _BY_KIND.get(text(event, "Event").rpartition(".")[2])
    return None if make is None else make(event)


def _environment_updated(event: Json) -> EnvironmentUpdated:
    """Return the record of the properties and the class path."""
    properties = part(event, "Spark Properties")
    entries = part(event, "Classpath Entries")
    added = [file for file, origin in entries.items() if origin == "Added By User"]
    for key in _JARS:
        separator = ":" if key.endswith("ClassPath") else ","
        added += filter(None, text(properties, key).split(separator))
    # only the name of the file shows a jar of ours: a folder of that name may hold the job's jars
    jars = [
        file
        for file in added
        if "quotascope" not in file.rpartition("/")[2] and not file.endswith((".py", ".zip", ".egg"))
    ]
    return EnvironmentUpdated(
        listener=text(properties, "spark.quotascope.enabled").lower() == "true"
        or any("quotascope_tasks" in file for file in added),
        summary_file=name(properties, "spark.quotascope.summaryFile"),
        without_java_clients=bool(entries) and not jars and not any("kafka" in file.lower() for file in entries),
        plugin=_PLUGIN in text(properties, "spark.plugins"),
        idle_timeout=_idle_timeout(properties),
    )


def _idle_timeout(properties: Json) -> float | None:
    """Return the timeout of idle executors in seconds, None without dynamic allocation."""
    if text(properties, "spark.dynamicAllocation.enabled").lower() != "true":
        return None
    match = _DURATION.fullmatch(text(properties, "spark.dynamicAllocation.executorIdleTimeout").strip().lower())
    return _IDLE_TIMEOUT if match is None else int(match[1]) * _UNITS[match[2]]


def _stage_submitted(event: Json) -> StageSubmitted:
    """Return the record of a submitted attempt of a stage."""
    stage = part(event, "Stage Info")
    return StageSubmitted(
        stage=needed(stage, "Stage ID"),
        attempt=number(stage, "Stage Attempt ID", 0) or 0,
        name=name(stage, "Stage Name"),
        tasks=number(stage, "Number of Tasks", 0) or 0,
        query=name(part(event, "Properties"), _QUERY_ID),
        runs_python=any(
            _PYTHON.search(f"{name(rdd, 'Name')} {name(rdd, 'Scope')}") for rdd in parts(stage, "RDD Info")
        ),
        time=_time_if_known(stage, "Submission Time"),
    )


def _stage_completed(event: Json) -> StageCompleted:
    """Return the record of an attempt of a stage that succeeded or failed."""
    stage = part(event, "Stage Info")
    return StageCompleted(
        stage=needed(stage, "Stage ID"),
        attempt=number(stage, "Stage Attempt ID", 0) or 0,
        name=name(stage, "Stage Name"),
        tasks=number(stage, "Number of Tasks", 0) or 0,
        failed=bool(text(stage, "Failure Reason")),
        canceled=_CANCELED.match(text(stage, "Failure Reason")) is not None,
        # SQL metrics such as "data sent to Python workers": data sources in Python leave no other trace
        runs_python=any("Python" in name(accumulable, "Name") for accumulable in parts(stage, "Accumulables")),
        began=_time_if_known(stage, "Submission Time"),
        time=_time_if_known(stage, "Completion Time"),
    )


def _task_ended(event: Json) -> TaskEnded:
    """Return the record of the end of an attempt, with the cause of its failure."""
    reason = part(event, "Task End Reason")
    failure = classify(reason)
    return TaskEnded(
        attempt=_attempt(event),
        reason=name(reason, "Reason"),
        failure=failure,
        text="" if failure is None else failure_text(reason),
        time=_time(part(event, "Task Info"), "Finish Time"),
        lost_executor=text(reason, "Reason") == "ExecutorLostFailure"
        and removal_of(text(reason, "Loss Reason")) is not Removal.GIVEN_BACK,
    )


def _attempt(event: Json) -> TaskAttempt:
    """Return the attempt of a task that a start or an end is about."""
    task = part(event, "Task Info")
    index = needed(task, "Index")
    partition = number(task, "Partition ID", -1)  # since Spark 3.3
    return TaskAttempt(
        stage=needed(event, "Stage ID"),
        stage_attempt=number(event, "Stage Attempt ID", 0) or 0,
        partition=index if partition is None or partition < 0 else partition,
        number=needed(task, "Attempt"),
        task=needed(task, "Task ID"),
        speculative=task.get("Speculative") is True,
        executor=name(task, "Executor ID"),
        began=_time(task, "Launch Time"),
    )


def _query_progressed(event: Json) -> QueryProgressed:
    """Return the record of the end of a micro-batch."""
    progress = part(event, "progress")
    sources = list(parts(progress, "sources"))
    return QueryProgressed(
        query=name(progress, "id"),
        run=name(progress, "runId"),
        name=name(progress, "name"),
        batch=number(progress, "batchId", 0) or 0,
        began=moment(progress, "timestamp"),
        phases=_phases(progress),
        rows=sum(number(source, "numInputRows", 0) or 0 for source in sources),
        offsets_behind=_offsets_behind(sources),
        offsets=_kafka_offsets(sources),
        runs_python="PythonForeachWriter" in name(part(progress, "sink"), "description"),
    )


def _phases(progress: Json) -> Mapping[str, float]:
    """Return `durationMs` in seconds."""
    phases = list(part(progress, "durationMs").items())[:_MOST_PHASES]
    return {str(phase)[:100]: ms / 1_000 for phase, ms in phases if isinstance(ms, int | float) and math.isfinite(ms)}


def _offsets_behind(sources: Sequence[Json]) -> OffsetsBehind | None:
    """
    Return the offsets of the Kafka source that is farthest behind (KafkaMicroBatchStream.metrics).

    Return None where no source reports them.
    """
    offsets = []
    for metrics in (part(source, "metrics") for source in sources):
        maximum = _decimal(metrics.get("maxOffsetsBehindLatest"))
        average = _decimal(metrics.get("avgOffsetsBehindLatest"))
        if maximum is not None and average is not None:
            offsets.append(OffsetsBehind(maximum=maximum, average=average))
    return max(offsets, key=lambda behind: behind.maximum, default=None)


def _kafka_offsets(sources: Sequence[Json]) -> KafkaOffsets | None:
    """
    Return the offsets of all Kafka sources; None unless each reports both offsets of the same partitions.

    A new partition's first offset is unknown.
    """
    by_source: list[KafkaOffsets] = []
    for source in sources:
        if text(source, "description").startswith(("KafkaV1[", "KafkaV2[")):
            ends, newest = (_by_partition(source.get(key)) for key in ("endOffset", "latestOffset"))
            if not ends or ends.keys() != newest.keys():
                return None
            by_source.append(KafkaOffsets(end=sum(ends.values()), newest=sum(newest.values())))
    if not by_source:
        return None
    return KafkaOffsets(
        end=sum(offsets.end for offsets in by_source), newest=sum(offsets.newest for offsets in by_source)
    )


def _by_partition(value: object) -> dict[tuple[str, str], int]:
    """
    Return offsets by topic and partition from `{"topic": {"0": 12}}`, which events have as JSON in a text.

    The result is empty if it is anything else.
    """
    try:
        topics: Any = json.loads(value) if isinstance(value, str) else value
        return {
            (topic, partition): needed(offsets, partition) for topic, offsets in topics.items() for partition in offsets
        }
    except (AttributeError, TypeError, ValueError, RecursionError, UnreadableEvent):
        return {}


def _decimal(text: object) -> float | None:
    """Return the number in a metric, which is a text; None if it is no number."""
    try:
        value = float(str(text)[:50])
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _time(event: Json, key: str) -> float:
    """Return a time in ms as seconds since 1970. Raises `UnreadableEvent` without one."""
    return needed(event, key) / 1_000


def _time_if_known(event: Json, key: str) -> float | None:
    """Return a time in ms as seconds since 1970; None without one."""
    milliseconds = number(event, key, None)
    return None if milliseconds is None else milliseconds / 1_000


def _log_started(event: Json) -> LogStarted:
    """Return the record of the first line of a log."""
    return LogStarted(version=name(event, "Spark Version"))


_BY_KIND: Final[dict[str, Callable[[Json], Record]]] = {
    "SparkListenerLogStart": _log_started,
    "DBCEventLoggingListenerMetadata": _log_started,
    "SparkListenerApplicationStart": lambda event: ApplicationStarted(
        name=name(event, "App Name"), app_id=name(event, "App ID"), time=_time(event, "Timestamp")
    ),
    "SparkListenerApplicationEnd": lambda event: ApplicationEnded(time=_time(event, "Timestamp")),
    "SparkListenerEnvironmentUpdate": _environment_updated,
    "SparkListenerJobStart": lambda event: JobStarted(time=_time(event, "Submission Time")),
    "SparkListenerJobEnd": lambda event: JobEnded(time=_time(event, "Completion Time")),
    "SparkListenerStageSubmitted": _stage_submitted,
    "SparkListenerStageCompleted": _stage_completed,
    "SparkListenerTaskStart": lambda event: TaskStarted(attempt=_attempt(event)),
    "SparkListenerTaskEnd": _task_ended,
    "SparkListenerExecutorAdded": lambda event: ExecutorAdded(
        executor=name(event, "Executor ID"), time=_time(event, "Timestamp")
    ),
    "SparkListenerExecutorRemoved": lambda event: ExecutorRemoved(
        executor=name(event, "Executor ID"),
        removal=removal_of(text(event, "Removed Reason")),
        time=_time(event, "Timestamp"),
    ),
    "StreamingQueryListener$QueryStartedEvent": lambda event: QueryStarted(
        query=name(event, "id"),
        run=name(event, "runId"),
        name=name(event, "name"),
        time=moment(event, "timestamp"),
    ),
    "StreamingQueryListener$QueryProgressEvent": _query_progressed,
    "StreamingQueryListener$QueryIdleEvent": lambda event: QueryIdle(
        query=name(event, "id"), run=name(event, "runId"), time=moment(event, "timestamp")
    ),
    "StreamingQueryListener$QueryTerminatedEvent": lambda event: QueryTerminated(
        query=name(event, "id"), run=name(event, "runId"), failure=classify_query(event.get("exception"))
    ),
}

LOGGED: Final = frozenset(_BY_KIND)
"""Simple class names of the events that `parse` makes records of."""
_NO_END: Final = re.compile(rb'\{"Event":"(?!SparkListenerTaskEnd")')
WANTED: Final = LOGGED - {
    "SparkListenerLogStart",
    "DBCEventLoggingListenerMetadata",
    "SparkListenerEnvironmentUpdate",
    "SparkListenerExecutorAdded",
    "SparkListenerJobStart",
    "SparkListenerJobEnd",
}
"""
Simple class names of the events to request from a running driver.

It redacts its properties only in the event log. Events of jobs are not requested: nothing in them is counted, and a
start describes all RDDs of the stages, which may be megabytes.
"""


def may_end_attempt(line: bytes) -> bool:
    """Return whether an unreadable event, or its beginning, may be the end of an attempt, which may have a note."""
    return not _NO_END.match(line)
