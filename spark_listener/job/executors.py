"""Which executors were lost."""

from __future__ import annotations

from ..events import ApplicationEnded, ExecutorRemoved
from .recent import Recent

_STOPPING_SECONDS = 5.0
_MOST_UNDECIDED = 10_000


class ExecutorBook:
    """
    Executors that went away unplanned.

    An application that stops takes its executors with it, some of them before it says that it ends: a loss counts once it is a few
    seconds old.
    """

    def __init__(self) -> None:
        self._lost = 0
        self._ended = False
        self._undecided: Recent[str, float] = Recent(_MOST_UNDECIDED)

    def removed(self, executor: ExecutorRemoved) -> None:
        """Take in an executor that is gone."""
        if not (executor.planned or self._ended):
            self._undecided[executor.executor] = executor.time

    def ended(self, application: ApplicationEnded) -> None:
        """Leave out the executors that the end of the application took along."""
        self.lost(application.time)
        self._ended = True
        self._undecided.clear()

    def lost(self, now: float) -> int:
        """How many were lost until now (seconds since 1970)."""
        decided = [
            executor
            for executor, time in self._undecided.items()
            if time <= now - _STOPPING_SECONDS
        ]
        for executor in decided:
            del self._undecided[executor]
        self._lost += len(decided)
        return self._lost
