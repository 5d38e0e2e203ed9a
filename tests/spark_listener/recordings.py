"""The recorded events, and events made by hand in the same shape."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from quotascope.spark_listener.job import Job, JobSnapshot

RECORDED = Path(__file__).parent / "recorded"
VERSIONS = ["3.5.9", "4.0.5", "4.3.0"]
QUOTA = 'cimpl.KafkaException: KafkaError{code=THROTTLING_QUOTA_EXCEEDED,val=89,str="no"}'
TIMEOUT = 'cimpl.KafkaException: KafkaError{code=_MSG_TIMED_OUT,val=-192,str="timed out"}'
STREAMING = "org.apache.spark.sql.streaming.StreamingQueryListener$"

Event = dict[str, Any]


def recorded(version: str, case: str) -> Iterator[Event]:
    with (RECORDED / version / f"{case}.jsonl").open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def after(events: Iterable[Any]) -> JobSnapshot:
    """Return the state of a job after these events."""
    job = Job("app")
    for event in events:
        job.handle(event)
    return job.snapshot()


def log_of(version: str, kind: str) -> Path:
    """Return the path of a recorded event log: plain, zstd or rolling."""
    return next((RECORDED / version / "logs" / kind).iterdir())


def python_failure(*lines: str) -> Event:
    """Return the reason of a task that raised; the lines come after the frames."""
    text = 'Traceback (most recent call last):\n  File "job.py", line 3, in work\n    raise error\n'
    return {
        "Reason": "ExceptionFailure",
        "Class Name": "org.apache.spark.api.python.PythonException",
        "Description": text + "\n".join(lines) + "\n",
        "Full Stack Trace": "",
    }


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
    """A SparkListenerStageSubmitted, with these values in its stage."""
    properties = {"sql.streaming.queryId": query} if query else {}
    return {
        "Event": "SparkListenerStageSubmitted",
        "Stage Info": _stage(stage, number, info or {}),
        "Properties": properties,
    }


def stage_completed(stage: int, number: int = 0, failed: str = "", info: Event | None = None) -> Event:
    """A SparkListenerStageCompleted, with these values in its stage."""
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
    """A QueryProgressEvent of a batch of 2.5 s."""
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


class Remembered:
    """Books that only remember what was reported to them."""

    def __init__(self) -> None:
        self.events: list[Mapping[str, Any]] = []
        self.passed_events = 0
        self.lost_events = self.lost_ends = 0

    @property
    def kinds(self) -> list[str]:
        return [str(event["Event"]) for event in self.events]

    def handle(self, event: Mapping[str, Any]) -> None:
        self.events.append(event)

    def passed(self, events: int) -> None:
        self.passed_events += events

    def lost(self, events: int, *, ends: bool = True) -> None:
        self.lost_events += events
        self.lost_ends += events if ends else 0
