"""The process of a Python worker, which runs tasks one after the other, and the accumulator that each of them fills."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any

from quotascope.clients.accounting import ThrottleAccount

from .attempt import Attempt, attempt_of, query_of
from .note import Note, text_of
from .routed import RoutedAccount
from .tally import Tally

if TYPE_CHECKING:
    from pyspark import TaskContext

_LOG = logging.getLogger(__name__)
_NOWHERE = Attempt(-1, -1, -1)


class Worker:
    """
    Counts for the tasks of this process, under one accumulator.

    Args:
        accumulator: the number of the driver's accumulator; None where there is none, as under Spark Connect: then nothing but notes
            on failed attempts leaves the worker.

    """

    def __init__(self, accumulator: int | None) -> None:
        self._accumulator = accumulator
        self._lock = threading.Lock()
        self._tally = Tally(_NOWHERE, "")
        self.account: ThrottleAccount = RoutedAccount(lambda: self._tally.account)
        if accumulator is None:
            _LOG.warning(
                "the driver of this task gave it no accumulator: only notes on failed attempts tell what Kafka clients waited"
            )

    def begin(self, task: TaskContext) -> None:
        """Count for this task from now on, as before if it is the same."""
        attempt = attempt_of(task)
        with self._lock:
            if attempt != self._tally.attempt:
                before, self._tally = self._tally, Tally(attempt, query_of(task))
                self._tally.take_over(before)
            if self._accumulator is not None:
                _register(self._accumulator, self._tally)

    def note(self) -> str:
        """The note on an attempt that fails."""
        with self._lock:
            tally = self._tally
            return text_of(tally.attempt, Note(tally.query, tally.send()))


def _register(number: int, tally: Tally) -> None:
    """Let the worker send the tally when the task has succeeded. Spark forgets all accumulators before each task."""
    from pyspark.accumulators import Accumulator  # noqa: PLC0415 - where tasks run

    Accumulator(number, tally, _UNUSED)  # registers itself


_UNUSED: Any = None  # how to add: nobody does, in a worker
_LOCK = threading.Lock()
_WORKERS: dict[int | None, Worker] = {}


def worker_of(accumulator: int | None) -> Worker:
    """The one of this process for that accumulator."""
    with _LOCK:
        if accumulator not in _WORKERS:
            _WORKERS[accumulator] = Worker(accumulator)
        return _WORKERS[accumulator]
