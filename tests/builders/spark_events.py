"""Events of Spark in the shape of the recorded ones, and the lines of an event log that holds them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

QUOTA = 'cimpl.KafkaException: KafkaError{code=THROTTLING_QUOTA_EXCEEDED,val=89,str="no"}'
TIMEOUT = 'cimpl.KafkaException: KafkaError{code=_MSG_TIMED_OUT,val=-192,str="timed out"}'
STREAMING = "org.apache.spark.sql.streaming.StreamingQueryListener$"

Event = dict[str, Any]


def python_failure(*lines: str) -> Event:
    """Return the reason of a task that raised; the lines come after the frames."""
    text = 'Traceback (most recent call last):\n  File "job.py", line 3, in work\n    raise error\n'
    return {
        "Reason": "ExceptionFailure",
        "Class Name": "org.apache.spark.api.python.PythonException",
        "Description": text + "\n".join(lines) + "\n",
        "Full Stack Trace": "",
    }


FAILED = python_failure(QUOTA)
"""Reason of a task that a quota ended."""


def java_failure(trace: str) -> Event:
    """Return the reason of a task that an exception of the JVM ended."""
    outermost, _, message = trace.partition("\n")[0].partition(": ")
    texts = {"Class Name": outermost, "Description": message, "Full Stack Trace": trace}
    return {"Reason": "ExceptionFailure", **texts}


def _task(  # noqa: PLR0913 - the numbers of an attempt
    kind: str,
    *,
    stage: int = 0,
    stage_attempt: int = 0,
    partition: int = 0,
    number: int = 0,
    task: int = 0,
    speculative: bool = False,
    executor: str = "1",
    began: float = 1,
    over: float = 0,
) -> Event:
    """Return an event of an attempt; times are seconds since 1970."""
    info = {
        "Task ID": task,
        "Index": partition,
        "Attempt": number,
        "Partition ID": partition,
        "Launch Time": int(began * 1_000),
        "Executor ID": executor,
        "Speculative": speculative,
        "Finish Time": int(over * 1_000),
    }
    return {
        "Event": f"SparkListenerTask{kind}",
        "Stage ID": stage,
        "Stage Attempt ID": stage_attempt,
        "Task Info": info,
    }


def started(**numbers: Any) -> Event:
    return _task("Start", **numbers)


def ended(reason: Event | str = "Success", **numbers: Any) -> Event:
    """Return a SparkListenerTaskEnd, at second 3; its keys are in Spark's order, by which event logs are searched."""
    event = _task("End", **{"over": 3, **numbers})
    info = event.pop("Task Info")
    reported = {"Reason": reason} if isinstance(reason, str) else reason
    return {**event, "Task Type": "ResultTask", "Task End Reason": reported, "Task Info": info}


def _stage(stage: int, number: int, fields: Event) -> Event:
    info = {"Stage ID": stage, "Stage Attempt ID": number, "Stage Name": f"stage {stage}", "Number of Tasks": 2}
    return {**info, "Submission Time": 500, **fields}


def stage_submitted(stage: int, number: int = 0, query: str = "", info: Event | None = None) -> Event:
    """Return a SparkListenerStageSubmitted, with these values in its stage."""
    properties = {"sql.streaming.queryId": query} if query else {}
    return {
        "Event": "SparkListenerStageSubmitted",
        "Stage Info": _stage(stage, number, info or {}),
        "Properties": properties,
    }


def stage_completed(stage: int, number: int = 0, failed: str = "", info: Event | None = None) -> Event:
    """Return a SparkListenerStageCompleted, with these values in its stage."""
    reason = {"Failure Reason": failed} if failed else {}
    over = {"Completion Time": 4_000, **reason, **(info or {})}
    return {"Event": "SparkListenerStageCompleted", "Stage Info": _stage(stage, number, over)}


def _moment(seconds: float) -> str:
    """Return a time as in streaming events."""
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def query_started(query: str = "id-1", run: str = "run-1", name: str = "", began: float = 100) -> Event:
    run_of = {"id": query, "runId": run, "name": name or None, "timestamp": _moment(began)}
    return {"Event": f"{STREAMING}QueryStartedEvent", **run_of}


def query_progressed(
    *sources: Event, query: str = "id-1", run: str = "run-1", name: str = "", began: float = 110, **fields: object
) -> Event:
    """Return a QueryProgressEvent of a batch of 2.5 s."""
    progress = {
        "id": query,
        "runId": run,
        "name": name or None,
        "timestamp": _moment(began),
        "batchId": 7,
        "durationMs": {"triggerExecution": 2_500, "addBatch": 2_000},
        "sources": list(sources),
        **fields,
    }
    return {"Event": f"{STREAMING}QueryProgressEvent", "progress": progress}


def query_idle(reported_at: float) -> Event:
    return {"Event": f"{STREAMING}QueryIdleEvent", "id": "id-1", "runId": "run-1", "timestamp": _moment(reported_at)}


def query_terminated(query: str = "id-1", run: str = "run-1") -> Event:
    return {"Event": f"{STREAMING}QueryTerminatedEvent", "id": query, "runId": run, "exception": None}


def _at(kind: str, seconds: float, **fields: object) -> Event:
    """Return an event with fields and a time, which is seconds since 1970."""
    return {"Event": f"SparkListener{kind}", **fields, "Timestamp": round(seconds * 1_000)}


def log_started(version: str = "3.5.9") -> Event:
    """Return the first event of a log."""
    return {"Event": "SparkListenerLogStart", "Spark Version": version}


def application_started(seconds: float = 1, name: str = "a", app_id: str | None = "app-1") -> Event:
    """Return the start of an application, which has no id where a cluster gives none."""
    return _at("ApplicationStart", seconds, **{"App Name": name, **({"App ID": app_id} if app_id else {})})


def application_ended(seconds: float = 60) -> Event:
    """Return the end of an application."""
    return _at("ApplicationEnd", seconds)


def executor_added(executor: str, seconds: float = 1) -> Event:
    """Return the start of an executor."""
    return _at("ExecutorAdded", seconds, **{"Executor ID": executor})


def executor_removed(executor: str, seconds: float, reason: str | None = "Command exited with code 137") -> Event:
    """Return the end of an executor; the usual reason says that it was lost."""
    return _at("ExecutorRemoved", seconds, **{"Executor ID": executor, "Removed Reason": reason})


def environment(properties: object, class_path: object = None) -> Event:
    """Return the environment of an application with these properties of Spark."""
    event = {"Event": "SparkListenerEnvironmentUpdate", "Spark Properties": properties}
    return event if class_path is None else {**event, "Classpath Entries": class_path}


def job_ended(job: int = 1, result: str = "JobSucceeded") -> Event:
    """Return the end of a job, with Spark's name of its result."""
    times = {"Job ID": job, "Completion Time": 1}
    return {"Event": "SparkListenerJobEnd", **times, "Job Result": {"Result": result}}


def failures(count: int, first_task: int = 0) -> bytes:
    """Return the part of an event log with so many failed tasks."""
    return written(ended(FAILED, task=task) for task in range(first_task, first_task + count))


def lines_of(events: Iterable[Mapping[str, Any]]) -> list[bytes]:
    """Return the lines of an event log, as Spark writes them."""
    return [json.dumps(event, separators=(",", ":")).encode() + b"\n" for event in events]


def written(events: Iterable[Mapping[str, Any]]) -> bytes:
    """Return the bytes of an event log with these events."""
    return b"".join(lines_of(events))
