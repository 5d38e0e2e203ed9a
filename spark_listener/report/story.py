"""Follows a job and remembers what a report tells one by one."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from ..events import (
    ApplicationEnded,
    ApplicationStarted,
    JobEnded,
    JobStarted,
    QueryProgressed,
    QueryStarted,
    Record,
    StageCompleted,
    StageSubmitted,
    TaskEnded,
    TaskStarted,
)
from ..task.note import Note
from .account import Batch, FailedAttempt, StageAccount

_MOST_STAGES = 20_000
_MOST_ATTEMPTS = 5_000
_MOST_BATCHES = 5_000


class Story:
    """A watcher of a `Job`. What is too much to be listed is counted; of batches and stages without harm the last are kept."""

    def __init__(self) -> None:
        self.app = self.app_id = ""
        self.began = self.ended = 0.0
        self.finished = False
        self.left_out = 0
        self._stages: dict[tuple[int, int], StageAccount] = {}
        self._attempts: list[FailedAttempt] = []
        self._batches: deque[Batch] = deque(maxlen=_MOST_BATCHES)
        self._names: dict[str, str] = {}

    def __call__(self, record: Record, note: Note | None) -> None:
        """Remember a record, and the note of the attempt that it ends."""
        match record:
            case ApplicationStarted():
                self.app, self.app_id = record.name, record.app_id
                self._at(record.time)
            case ApplicationEnded():
                self.finished = True
                self._at(record.time)
            case JobStarted() | JobEnded():
                self._at(record.time)
            case StageSubmitted():
                self._submitted(record)
            case StageCompleted():
                self._completed(record)
            case TaskStarted():
                self._at(record.attempt.began)
            case TaskEnded():
                self._ended(record, note)
            case QueryStarted():
                self._named(record.query, record.name)
            case QueryProgressed():
                self._progressed(record)
            case _:
                pass

    def stages(self) -> tuple[StageAccount, ...]:
        """All that are remembered, by number."""
        found = (self._stages[key] for key in sorted(self._stages))
        return tuple(replace(each, query=self._name(each.query)) for each in found)

    def attempts(self) -> tuple[FailedAttempt, ...]:
        """All that are remembered, in the order in which they ended."""
        return tuple(
            replace(each, query=self._name(each.query)) for each in self._attempts
        )

    def batches(self) -> tuple[Batch, ...]:
        """All that are remembered, in the order in which they ended."""
        return tuple(
            replace(each, query=self._name(each.query)) for each in self._batches
        )

    def _at(self, time: float | None) -> None:
        if time is not None and time > 0:
            self.began = min(self.began or time, time)
            self.ended = max(self.ended, time)

    def _submitted(self, record: StageSubmitted) -> None:
        self._at(record.time)
        stage = self._stage(record.stage, record.attempt)
        stage.name, stage.tasks, stage.query = record.name, record.tasks, record.query
        stage.began = record.time

    def _completed(self, record: StageCompleted) -> None:
        self._at(record.time)
        stage = self._stage(record.stage, record.attempt)
        stage.name = record.name or stage.name
        stage.began = record.began if stage.began is None else stage.began
        stage.ended, stage.failed = record.time, record.failed

    def _ended(self, record: TaskEnded, note: Note | None) -> None:
        self._at(record.time)
        if record.failure is None:
            return
        attempt = record.attempt
        stage = self._stage(attempt.stage, attempt.stage_attempt)
        throttled_ms = longest_ms = None
        if note is not None:
            throttled_ms = sum(each.throttled_ms for each in note.totals)
            longest_ms = max((each.longest_ms for each in note.totals), default=0)
            stage.throttled_ms = (stage.throttled_ms or 0) + throttled_ms
        cause = record.failure.cause
        stage.failures[cause] = stage.failures.get(cause, 0) + 1
        if len(self._attempts) >= _MOST_ATTEMPTS:
            self.left_out += 1
            return
        self._attempts.append(
            FailedAttempt(
                stage=attempt.stage,
                stage_attempt=attempt.stage_attempt,
                partition=attempt.partition,
                number=attempt.number,
                executor=attempt.executor,
                query=stage.query,
                cause=cause,
                raised=record.failure.chain,
                began=attempt.began,
                ended=max(record.time, attempt.began),
                throttled_ms=throttled_ms,
                longest_ms=longest_ms,
            )
        )

    def _progressed(self, record: QueryProgressed) -> None:
        self._named(record.query, record.name)
        self._at(record.ended)
        if record.began is None:
            return
        behind = record.offsets_behind
        self.left_out += len(self._batches) == _MOST_BATCHES
        self._batches.append(
            Batch(
                query=record.query,
                number=record.batch,
                began=record.began,
                seconds=record.phases.get("triggerExecution", 0.0),
                rows=record.rows,
                max_offsets_behind=None if behind is None else behind.most,
            )
        )

    def _stage(self, stage: int, attempt: int) -> StageAccount:
        found = self._stages.get((stage, attempt))
        if found is None:
            if len(self._stages) >= _MOST_STAGES:
                self._make_room()
            found = StageAccount(stage=stage, attempt=attempt)
            self._stages[stage, attempt] = found
        return found

    def _make_room(self) -> None:
        stages = self._stages.items()
        unhurt = (key for key, stage in stages if stage.ended and not stage.is_hit)
        del self._stages[next(unhurt, next(iter(self._stages)))]
        self.left_out += 1

    def _named(self, query: str, name: str) -> None:
        if name or query not in self._names:
            self._names[query] = name or query

    def _name(self, query: str) -> str:
        return self._names.get(query, query)
