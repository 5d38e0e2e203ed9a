"""All that is known from events."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..events import (
    ApplicationEnded,
    ExecutorRemoved,
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
from ..task.note import Note
from .attempts import AttemptBook
from .executors import ExecutorBook
from .queries import QueryBook
from .recent import Recent
from .snapshot import QueryTotals
from .throttles import ThrottleNotes, named
from .untold import UntoldAttempts

_MOST_STAGES = 20_000


class Ledger:
    """One book for each thing that is counted, and which record goes into which."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.attempts = AttemptBook()
        self.executors = ExecutorBook()
        self.queries = QueryBook()
        self.untold = UntoldAttempts()
        self._notes = ThrottleNotes(clock)
        self._query_of: Recent[int, str] = Recent(_MOST_STAGES)

    def take(self, record: Record, note: Note | None) -> None:  # noqa: C901 - a table of contents
        """Enter a record, and the note of the attempt that it ends."""
        match record:
            case TaskStarted():
                self.attempts.started(record.attempt)
            case TaskEnded():
                self._ended(record, note)
            case JobStarted():
                for stage in record.stages:
                    self._works_for(stage, record.query)
            case StageSubmitted():
                self._works_for(record.stage, record.query)
                self.attempts.stage_submitted(record)
            case StageCompleted():
                self.attempts.stage_completed(record)
            case ExecutorRemoved():
                self.executors.removed(record)
            case ApplicationEnded():
                self.executors.ended(record)
            case QueryStarted():
                self.queries.started(record)
            case QueryProgressed():
                self.queries.progressed(record)
            case QueryIdle():
                self.queries.idle(record)
            case QueryTerminated():
                self.queries.terminated(record)

    def query_of(self, stage: int) -> str:
        """Id of the streaming query that a stage works for; empty when that is none."""
        return self._query_of.get(stage, "")

    def noted(self) -> Iterator[QueryTotals]:
        """What failed attempts noted, by the names of queries."""
        return named(self._notes.totals(), self.queries.name)

    def _works_for(self, stage: int, query: str) -> None:
        if query:
            self._query_of[stage] = query

    def _ended(self, ended: TaskEnded, note: Note | None) -> None:
        self.attempts.ended(ended)
        stage = ended.attempt.stage
        if note is not None:
            self._notes.add(self.query_of(stage) or note.query, note.totals)
            self.untold.told(stage)
        elif ended.reason not in ("Success", "Resubmitted"):
            self.untold.untold(stage)
