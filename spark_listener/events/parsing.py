"""Makes records of JsonProtocol's events, those of Spark 3.5 to 4.3, and of other versions as far as they are alike."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ..errors import UnreadableEvent
from .failure import classify, failure_text
from .fields import Json, moment, name, needed, number, part, parts, text
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

_QUERY_ID = "sql.streaming.queryId"  # StreamExecution.QUERY_ID_KEY
# ExecutorKilled and ExecutorDecommission of Spark's scheduler
_PLANNED = ("Executor killed by driver.", "Executor decommission")
_MOST_PHASES = 50
_JARS = (
    "spark.jars",
    "spark.jars.packages",
    "spark.yarn.dist.jars",
    "spark.driver.extraClassPath",
    "spark.executor.extraClassPath",
)
"""Properties that add to the class path."""
# PythonRDD, and the scopes that PySpark's plans give their RDDs, such as BatchEvalPython, MapInPandas and TransformWithStateInPySpark
_PYTHON = re.compile(r"Python|InPySpark|InPandas|InArrow|ArrowEval|ArrowWindow|ArrowAggregate")


def parse(event: Json) -> Record | None:
    """
    The record of an event; None for a kind of event that does not matter here.

    Raises `UnreadableEvent` when it lacks what every version writes.
    """
    make = _BY_KIND.get(text(event, "Event").rpartition(".")[2])
    return None if make is None else make(event)


def _environment_updated(event: Json) -> EnvironmentUpdated:
    properties = part(event, "Spark Properties")
    entries = part(event, "Classpath Entries")
    added = [file for file, origin in entries.items() if origin == "Added By User"]
    for key in _JARS:
        separator = ":" if key.endswith("ClassPath") else ","
        added += filter(None, text(properties, key).split(separator))
    # of our jar by its own name: a folder of that name may hold the job's
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
    )


def _stage_submitted(event: Json) -> StageSubmitted:
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
    stage = part(event, "Stage Info")
    return StageCompleted(
        stage=needed(stage, "Stage ID"),
        attempt=number(stage, "Stage Attempt ID", 0) or 0,
        name=name(stage, "Stage Name"),
        failed=bool(text(stage, "Failure Reason")),
        # SQL metrics such as "data sent to Python workers": all that there is of data sources in Python
        runs_python=any("Python" in name(each, "Name") for each in parts(stage, "Accumulables")),
        began=_time_if_known(stage, "Submission Time"),
        time=_time_if_known(stage, "Completion Time"),
    )


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


def _attempt(event: Json) -> TaskAttempt:
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
    """`durationMs`, in seconds."""
    phases = list(part(progress, "durationMs").items())[:_MOST_PHASES]
    return {str(phase)[:100]: ms / 1_000 for phase, ms in phases if isinstance(ms, int | float) and math.isfinite(ms)}


def _offsets_behind(sources: Sequence[Json]) -> OffsetsBehind | None:
    """Of the Kafka source that is farthest behind (KafkaMicroBatchStream.metrics); None where no source reports it."""
    found = []
    for metrics in (part(source, "metrics") for source in sources):
        most = _decimal(metrics.get("maxOffsetsBehindLatest"))
        average = _decimal(metrics.get("avgOffsetsBehindLatest"))
        if most is not None and average is not None:
            found.append(OffsetsBehind(most=most, average=average))
    return max(found, key=lambda each: each.most, default=None)


def _kafka_offsets(sources: Sequence[Json]) -> KafkaOffsets | None:
    """None unless every Kafka source reports both offsets of the same partitions: a new partition's first offset is unknown."""
    ends: list[tuple[int, int]] = []
    for source in sources:
        if text(source, "description").startswith(("KafkaV1[", "KafkaV2[")):
            read, newest = (_by_partition(source.get(key)) for key in ("endOffset", "latestOffset"))
            if not read or read.keys() != newest.keys():
                return None
            ends.append((sum(read.values()), sum(newest.values())))
    if not ends:
        return None
    return KafkaOffsets(read=sum(end[0] for end in ends), newest=sum(end[1] for end in ends))


def _by_partition(found: object) -> dict[tuple[str, str], int]:
    """`{"topic": {"0": 12}}`, which events have as JSON in a text; empty if it is anything else."""
    try:
        topics: Any = json.loads(found) if isinstance(found, str) else found
        return {
            (topic, partition): needed(offsets, partition) for topic, offsets in topics.items() for partition in offsets
        }
    except (AttributeError, TypeError, ValueError, RecursionError, UnreadableEvent):
        return {}


def _decimal(found: object) -> float | None:
    """These metrics are texts."""
    try:
        value = float(str(found)[:50])
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _time(event: Json, key: str) -> float:
    return needed(event, key) / 1_000


def _time_if_known(event: Json, key: str) -> float | None:
    found = number(event, key, None)
    return None if found is None else found / 1_000


_BY_KIND: Final[dict[str, Callable[[Json], Record]]] = {
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
    "SparkListenerExecutorRemoved": lambda event: ExecutorRemoved(
        executor=name(event, "Executor ID"),
        planned=text(event, "Removed Reason").startswith(_PLANNED),
        time=_time(event, "Timestamp"),
    ),
    "StreamingQueryListener$QueryStartedEvent": lambda event: QueryStarted(
        query=name(event, "id"), run=name(event, "runId"), name=name(event, "name")
    ),
    "StreamingQueryListener$QueryProgressEvent": _query_progressed,
    "StreamingQueryListener$QueryIdleEvent": lambda event: QueryIdle(
        query=name(event, "id"), run=name(event, "runId"), time=moment(event, "timestamp")
    ),
    "StreamingQueryListener$QueryTerminatedEvent": lambda event: QueryTerminated(
        query=name(event, "id"), run=name(event, "runId")
    ),
}

LOGGED: Final = frozenset(_BY_KIND)
"""The simple class names of the events that `parse` makes records of."""
_NO_END: Final = re.compile(rb'\{"Event":"(?!SparkListenerTaskEnd")')
WANTED: Final = LOGGED - {"SparkListenerEnvironmentUpdate", "SparkListenerJobStart", "SparkListenerJobEnd"}
"""
Those to be asked of a running driver.

It redacts its properties only in the event log. Jobs have nothing that is counted, but the start of one describes all RDDs of its stages, which may be
megabytes.
"""


def may_end_attempt(line: bytes) -> bool:
    """Whether the JSON of an event that cannot be read, or its beginning, may be of the end of an attempt, which may have a note."""
    return not _NO_END.match(line)
