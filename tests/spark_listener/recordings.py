"""The recorded events, and events made by hand in the same shape."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).parent / "recorded"
VERSIONS = sorted(each.name for each in RECORDED.iterdir() if each.is_dir())
QUOTA = 'cimpl.KafkaException: KafkaError{code=THROTTLING_QUOTA_EXCEEDED,val=89,str="no"}'
TIMEOUT = 'cimpl.KafkaException: KafkaError{code=_MSG_TIMED_OUT,val=-192,str="timed out"}'
STREAMING = "org.apache.spark.sql.streaming.StreamingQueryListener$"

Event = dict[str, Any]


def recorded(version: str, case: str) -> Iterator[Event]:
    """The events of a recorded case."""
    with (RECORDED / version / f"{case}.jsonl").open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def log_of(version: str, kind: str) -> Path:
    """A recorded event log: plain, zstd or rolling."""
    return next((RECORDED / version / "logs" / kind).iterdir())


def python_failure(*lines: str) -> Event:
    """The reason of a task that raised; the lines come after the frames."""
    text = 'Traceback (most recent call last):\n  File "job.py", line 3, in work\n    raise error\n'
    return {
        "Reason": "ExceptionFailure",
        "Class Name": "org.apache.spark.api.python.PythonException",
        "Description": text + "\n".join(lines) + "\n",
        "Full Stack Trace": "",
    }


def java_failure(trace: str) -> Event:
    """The reason of a task of which an exception of the JVM was the end."""
    outermost, _, said = trace.partition("\n")[0].partition(": ")
    return {
        "Reason": "ExceptionFailure",
        "Class Name": outermost,
        "Description": said,
        "Full Stack Trace": trace,
    }


def attempt(  # noqa: PLR0913 - the numbers of an attempt
    *,
    stage: int = 0,
    stage_attempt: int = 0,
    partition: int = 0,
    number: int = 0,
    task: int = 0,
    speculative: bool = False,
    ended: int = 0,
) -> Event:
    """The numbers of an attempt, as both of its events have them."""
    info = {
        "Task ID": task,
        "Index": partition,
        "Attempt": number,
        "Partition ID": partition,
        "Launch Time": 1_000,
        "Executor ID": "1",
        "Speculative": speculative,
        "Finish Time": ended,
    }
    return {"Stage ID": stage, "Stage Attempt ID": stage_attempt, "Task Info": info}


def started(**numbers: Any) -> Event:
    """A SparkListenerTaskStart."""
    return {"Event": "SparkListenerTaskStart", **attempt(**numbers)}


def ended(reason: Event | str = "Success", **numbers: Any) -> Event:
    """A SparkListenerTaskEnd."""
    reported = {"Reason": reason} if isinstance(reason, str) else reason
    event = attempt(**{"ended": 3_000, **numbers})
    info = event.pop("Task Info")
    return {
        "Event": "SparkListenerTaskEnd",
        **event,
        "Task Type": "ResultTask",
        "Task End Reason": reported,
        "Task Info": info,
    }


def stage_submitted(stage: int, number: int = 0, query: str = "") -> Event:
    """A SparkListenerStageSubmitted."""
    info = {
        "Stage ID": stage,
        "Stage Attempt ID": number,
        "Stage Name": f"stage {stage}",
        "Number of Tasks": 2,
        "Submission Time": 500,
    }
    properties = {"sql.streaming.queryId": query} if query else {}
    return {
        "Event": "SparkListenerStageSubmitted",
        "Stage Info": info,
        "Properties": properties,
    }


def stage_completed(stage: int, number: int = 0, failed: str = "") -> Event:
    """A SparkListenerStageCompleted."""
    info = {
        "Stage ID": stage,
        "Stage Attempt ID": number,
        "Stage Name": f"stage {stage}",
        "Number of Tasks": 2,
        "Submission Time": 500,
        "Completion Time": 4_000,
    }
    reason = {"Failure Reason": failed} if failed else {}
    return {"Event": "SparkListenerStageCompleted", "Stage Info": {**info, **reason}}


def query_started(query: str = "id-1", run: str = "run-1", name: str = "") -> Event:
    """A QueryStartedEvent at second 100."""
    return {
        "Event": f"{STREAMING}QueryStartedEvent",
        "id": query,
        "runId": run,
        "name": name or None,
        "timestamp": "1970-01-01T00:01:40.000Z",
    }


def query_progressed(*sources: Event, query: str = "id-1", run: str = "run-1", name: str = "") -> Event:
    """A QueryProgressEvent of a batch from second 110 to 112.5."""
    progress = {
        "id": query,
        "runId": run,
        "name": name or None,
        "timestamp": "1970-01-01T00:01:50.000Z",
        "batchId": 7,
        "durationMs": {"triggerExecution": 2_500, "addBatch": 2_000},
        "sources": list(sources),
    }
    return {"Event": f"{STREAMING}QueryProgressEvent", "progress": progress}


def query_terminated(query: str = "id-1", run: str = "run-1") -> Event:
    """A QueryTerminatedEvent."""
    return {
        "Event": f"{STREAMING}QueryTerminatedEvent",
        "id": query,
        "runId": run,
        "exception": None,
    }
