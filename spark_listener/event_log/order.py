"""The order of the lines of a log, and the times by which Spark's order is restored."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

_JITTER_MS: Final = 60_000
"""
Difference in ms by which times may fall from line to line.

Several threads of the driver queue events, each with the time at which it saw them: seconds apart where the driver is
busy.
"""
_FIRST: Final = float("-inf")
_LAST: Final = float("inf")
_QUERY: Final = "StreamingQueryListener$"


class Partition(NamedTuple):
    """A task of an attempt of a stage."""

    stage: int
    attempt: int
    task: int
    """Index of the task in the attempt of the stage."""


class Order:
    """Check for lines that Spark cannot have written in this order, where the order matters."""

    def __init__(self) -> None:
        self.is_broken = False
        """True if there are such lines."""
        self._latest_ms = 0.0
        self._with_tasks: set[tuple[int, int]] = set()
        self._completed: dict[int, int] = {}
        """Time at which each stage was completed."""
        self._retried: dict[int, tuple[int, int]] = {}
        """Number of the latest attempt of each stage, and the time at which its first task was launched."""
        self._batches: dict[str, float] = {}
        """Latest batch of each run of a query, infinite after its end."""

    def started(self, partition: Partition, launch_ms: int, *, has_ended: bool) -> None:
        """Record the start of an attempt of a task; `has_ended` is True if its end came before."""
        self.is_broken |= has_ended
        self._at(launch_ms)
        self._with_tasks.add(partition[:2])
        latest = self._retried.get(partition.stage)
        if partition.attempt and (latest is None or latest[0] < partition.attempt):
            self._retried[partition.stage] = partition.attempt, launch_ms

    def ended(self, partition: Partition) -> None:
        """Record the end of an attempt of a task."""
        self._with_tasks.add(partition[:2])

    def failed(self, partition: Partition, finish_ms: int, *, is_repeated: bool) -> None:
        """Record the end of a failed attempt; `is_repeated` is True if the attempt that repeats it came before."""
        attempt, launch = self._retried.get(partition.stage, (0, 0))
        self.is_broken |= (
            is_repeated
            or finish_ms < self._completed.get(partition.stage, 0)
            or (partition.attempt < attempt and finish_ms < launch)
        )
        self._at(finish_ms)

    def other(self, event: Mapping[str, Any]) -> None:
        """Record an event that is not about a task."""
        kind = str(event["Event"]).rpartition(".")[2]
        if kind.startswith(_QUERY):
            self._of_query(kind.removeprefix(_QUERY), event)
            return
        time = time_of(event)
        if _FIRST < time < _LAST:
            self._at(time)
        info = event.get("Stage Info")
        if not isinstance(info, dict):
            return
        stage, attempt = info.get("Stage ID"), info.get("Stage Attempt ID", 0)
        if type(stage) is not int or type(attempt) is not int:
            return
        if kind == "SparkListenerStageSubmitted":
            self.is_broken |= (stage, attempt) in self._with_tasks
        else:
            self._with_tasks.add((stage, attempt))
            self._completed[stage] = max(int(time) if _FIRST < time < _LAST else 0, self._completed.get(stage, 0))

    def _of_query(self, kind: str, event: Mapping[str, Any]) -> None:
        progress = event.get("progress")
        run = str((progress if isinstance(progress, dict) else event).get("runId"))
        batch = progress.get("batchId") if isinstance(progress, dict) else None
        latest = self._batches.get(run)
        if kind == "QueryStartedEvent":
            self.is_broken |= latest is not None
            number = _FIRST
        elif kind == "QueryTerminatedEvent":
            number = _LAST
        else:
            number = batch if type(batch) is int else _FIRST
        self.is_broken |= latest is not None and number < latest
        self._batches[run] = number if latest is None else max(number, latest)

    def _at(self, ms: float) -> None:
        self.is_broken |= ms < self._latest_ms - _JITTER_MS
        self._latest_ms = max(self._latest_ms, ms)


_RANKS: Final = {
    kind: rank
    for rank, kind in enumerate(
        (
            "SparkListenerApplicationStart",
            "SparkListenerJobStart",
            "SparkListenerStageSubmitted",
            "SparkListenerTaskEnd",
            "SparkListenerTaskStart",
            "SparkListenerStageCompleted",
            "SparkListenerJobEnd",
            f"{_QUERY}QueryStartedEvent",
            f"{_QUERY}QueryProgressEvent",
        )
    )
}
"""Order of events with the same time: an attempt is launched after the one that it repeats has failed."""


def sort_key(event: Mapping[str, Any]) -> tuple[float, int, int]:
    """Return the key that sorts events into the order in which Spark wrote them."""
    info = event.get("Task Info")
    task = info.get("Task ID") if isinstance(info, dict) else 0
    kind = str(event["Event"]).rpartition(".")[2]
    return time_of(event), _RANKS.get(kind, len(_RANKS)), task if type(task) is int else 0


def time_of(event: Mapping[str, Any]) -> float:
    """
    Return the time of an event in ms since 1970.

    Minus infinity if it may come first, infinity if it may come last.
    """
    kind = str(event["Event"]).rpartition(".")[2]
    if kind == f"{_QUERY}QueryTerminatedEvent":
        return _LAST
    for part, key in _TIMES.get(kind, ((None, "Timestamp"), (None, "time"))):
        fields = event if part is None else event.get(part)
        value = fields.get(key) if isinstance(fields, dict) else None
        if type(value) is int:
            return value
    progress = event.get("progress")
    if kind.startswith(_QUERY):
        return _moment(progress if isinstance(progress, dict) else event)
    return _FIRST


_TIMES: Final[Mapping[str, tuple[tuple[str | None, str], ...]]] = {
    "SparkListenerJobStart": ((None, "Submission Time"),),
    "SparkListenerJobEnd": ((None, "Completion Time"),),
    "SparkListenerStageSubmitted": (("Stage Info", "Submission Time"),),
    "SparkListenerStageCompleted": (("Stage Info", "Completion Time"), ("Stage Info", "Submission Time")),
    "SparkListenerTaskStart": (("Task Info", "Launch Time"),),
    "SparkListenerTaskEnd": (("Task Info", "Finish Time"), ("Task Info", "Launch Time")),
}


def _moment(event: Mapping[str, Any]) -> float:
    """Return the time at which an event of a query was written; a micro-batch reports its start and its duration."""
    took = event.get("durationMs")
    ms = took.get("triggerExecution") if isinstance(took, dict) else 0
    try:
        return 1_000 * datetime.fromisoformat(str(event.get("timestamp"))).timestamp() + (ms if type(ms) is int else 0)
    except (ValueError, OverflowError):
        return _FIRST
