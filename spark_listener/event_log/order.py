"""Check of the order of the lines of a log, and the key by which Spark's order is restored."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

_JITTER_MS: Final = 60_000
"""
Largest difference in ms by which the time of a line may be before an earlier line's.

Several threads of the driver queue events with the times at which they saw them. If the driver is busy, these are
seconds apart.
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
    """Check whether lines are in an order in which Spark can have written them, as far as the order matters."""

    def __init__(self) -> None:
        self.is_broken = False
        """True if Spark cannot have written the lines in this order."""
        self._latest_ms = 0.0
        self._with_tasks: set[tuple[int, int]] = set()
        """Attempts of stages with lines of their tasks, or of their completion."""
        self._completed: dict[int, int] = {}
        """Time at which a stage was completed, ms since 1970."""
        self._retried: dict[int, tuple[int, int]] = {}
        """Number of the latest attempt of a stage, and the time at which its first task was launched."""
        self._batches: dict[str, float] = {}
        """Latest batch by run of a query; infinite after the end of the run."""

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
        retry, retry_launch_ms = self._retried.get(partition.stage, (0, 0))
        is_after_completion = finish_ms < self._completed.get(partition.stage, 0)
        is_after_retry = partition.attempt < retry and finish_ms < retry_launch_ms
        self.is_broken |= is_repeated or is_after_completion or is_after_retry
        self._at(finish_ms)

    def other(self, event: Mapping[str, Any]) -> None:
        """Record an event that is not about a task."""
        kind = str(event["Event"]).rpartition(".")[2]
        if kind.startswith(_QUERY):
            self._query(kind.removeprefix(_QUERY), event)
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
            completed_ms = int(time) if _FIRST < time < _LAST else 0
            self._completed[stage] = max(completed_ms, self._completed.get(stage, 0))

    def _query(self, kind: str, event: Mapping[str, Any]) -> None:
        """Record an event of a streaming query, whose batches must be in order between its start and its end."""
        progress = event.get("progress")
        fields = progress if isinstance(progress, dict) else event  # a report of progress has its fields within
        run = str(fields.get("runId"))
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
        """Record the time of a line."""
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
"""
Order of the kinds of events with the same time.

The end of a task is before a start, because an attempt is launched after the attempt that it repeats has failed.
"""


def sort_key(event: Mapping[str, Any]) -> tuple[float, int, int]:
    """Return the key that sorts events into the order in which Spark wrote them."""
    info = event.get("Task Info")
    task = info.get("Task ID") if isinstance(info, dict) else 0
    kind = str(event["Event"]).rpartition(".")[2]
    return time_of(event), _RANKS.get(kind, len(_RANKS)), task if type(task) is int else 0


def time_of(event: Mapping[str, Any]) -> float:
    """
    Return the time of an event in ms since 1970.

    It is minus infinity for an event without a time, and infinity for the end of a query, which comes last.
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
    """Return the end of a micro-batch, which reports its start and duration, or the time of another query event, ms."""
    durations = event.get("durationMs")
    duration_ms = durations.get("triggerExecution") if isinstance(durations, dict) else 0
    try:
        start_ms = 1_000 * datetime.fromisoformat(str(event.get("timestamp"))).timestamp()
        # OverflowError: an integer of JSON may be too large for a float
        return start_ms + (duration_ms if type(duration_ms) is int else 0)
    except (ValueError, OverflowError):
        return _FIRST
