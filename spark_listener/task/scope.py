"""The `with` block in a task."""

from __future__ import annotations

import logging
from types import TracebackType
from typing import TYPE_CHECKING

from quotascope.clients.accounting import ThrottleAccount

from .noting import put_note
from .worker import Worker

if TYPE_CHECKING:
    from pyspark import TaskContext

_LOG = logging.getLogger(__name__)


class TaskScope:
    """
    In a task: counts for this attempt, and puts a note on an exception that leaves it.

    Scopes of one attempt may follow each other or be nested: they count together, and each note has all of it.
    """

    def __init__(self, worker: Worker, task: TaskContext) -> None:
        self._worker = worker
        self._task = task

    def __enter__(self) -> ThrottleAccount:
        try:
            self._worker.begin(self._task)
        except Exception:  # noqa: BLE001 - the program's task matters more than its counts
            _LOG.exception("what this task is told will not be counted with it")
        return self._worker.account

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        if error is not None and not isinstance(error, GeneratorExit):
            put_note(error, self._worker.note)
