"""
Counting in a Python worker, the process that runs tasks one after the other.

`TaskScope` is the `with` block in a task. `PythonWorker` has the counts of the attempt that runs now (`AttemptCounter`), which the accumulator
brings to the driver if the attempt succeeds, and a note on its exception if it fails.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable
from urllib.parse import quote
from uuid import uuid4

from quotascope.clients.accounting import (
    Client,
    ClientAccount,
    ClientTotals,
    Side,
    ThrottleAccount,
)

from . import note
from .attempt import AttemptKey, attempt_of, query_of
from .rows import clipped, row

if TYPE_CHECKING:
    from pyspark import TaskContext

VERSION = 1
"""Of what is sent: a driver ignores versions that it does not know."""
_LOG = logging.getLogger(__name__)
_NOWHERE = AttemptKey(-1, -1, -1)
_MOST_CLIENTS = 100
"""A task has a few; those that come later are counted together."""


class TaskScope:
    """
    In a task: counts for this attempt, and puts a note on an exception that leaves it.

    Scopes of one attempt may follow each other or be nested: they count together, and each note has all of it.
    """

    def __init__(self, worker: PythonWorker, task: TaskContext) -> None:
        self._worker = worker
        self._task = task

    def __enter__(self) -> ThrottleAccount:
        try:
            self._worker.begin(self._task)
        except Exception:  # noqa: BLE001 - the program's task matters more than its counts
            _LOG.exception("the throttle times of this task are not counted with it")
        return self._worker.account

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        if error is None or isinstance(error, GeneratorExit):
            self._worker.spool()
        else:
            note.put(error, self._worker.note)


class PythonWorker:
    """
    Counts for the tasks of this process, under one accumulator.

    Args:
        accumulator: the number of the driver's accumulator; None where there is none, as under Spark Connect: then notes on failed attempts leave the
            worker, and the other counts only where the executor has the plugin (`jvm`).

    """

    def __init__(self, accumulator: int | None) -> None:
        self._accumulator = accumulator
        self._lock = threading.Lock()
        self._counter = AttemptCounter(_NOWHERE, "")
        self.account: ThrottleAccount = RoutedAccount(lambda: self._counter.account)
        if accumulator is None and not _spool_folder().is_dir():
            _LOG.warning(
                "the driver of this task has no accumulator for it: only failed attempts report the throttle times of their Kafka clients"
            )

    def begin(self, task: TaskContext) -> None:
        """Count for this task from now on, as before if it is the same."""
        attempt = attempt_of(task)
        with self._lock:
            if attempt != self._counter.attempt:
                before, self._counter = (
                    self._counter,
                    AttemptCounter(attempt, query_of(task)),
                )
                self._counter.take_over(before)
            if self._accumulator is not None:
                from pyspark.accumulators import Accumulator  # noqa: PLC0415 - where tasks run

                # registers itself, so that the worker sends the counter when the task has succeeded; Spark forgets all accumulators before
                # each task, and calls the parameter, None here, in the driver only
                param: Any = None
                Accumulator(self._accumulator, self._counter, param)

    def note(self) -> str:
        """The note on an attempt that fails."""
        with self._lock:
            counter = self._counter
            totals = tuple(
                _minus(each, counter.spooled.get(each.client))
                for each in counter.send()
            )
            return note.text_of(counter.attempt, note.Note(counter.query, totals))

    def spool(self) -> None:
        """
        At the end of a scope without an accumulator: leave the counts so far to the executor's plugin, a file for each time.

        Does nothing where there is no plugin, and never raises.
        """
        folder = _spool_folder()
        if self._accumulator is not None or not folder.is_dir():
            return
        try:
            with self._lock:
                lines = list(self._counter.spool())
            if lines:
                path = folder / uuid4().hex
                path.write_text("\n".join(lines), encoding="ascii")
                path.rename(f"{path}.txt")  # seen as a whole or not at all
        except Exception:  # noqa: BLE001 - the program's task matters more than its counts
            _LOG.exception("the throttle times of this task are not reported")


def _spool_folder() -> Path:
    """The folder that the plugin (`PythonSpool`) makes in the executor's first local directory, which Spark names to its workers."""
    first = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
    return Path(first or os.devnull, "quotascope")  # never one of the current folder


_LOCK = threading.Lock()
_WORKERS: dict[int | None, PythonWorker] = {}


def worker_of(accumulator: int | None) -> PythonWorker:
    """The one of this process for that accumulator."""
    with _LOCK:
        if accumulator not in _WORKERS:
            _WORKERS[accumulator] = PythonWorker(accumulator)
        return _WORKERS[accumulator]


class AttemptCounter:
    """
    The counts of one attempt.

    It is the value of the task's accumulator, and turns into plain tuples when the worker pickles that at the end of a successful
    task: it has all throttle times until then, also of clients that outlive the scope.
    """

    def __init__(self, attempt: AttemptKey, query: str) -> None:
        self.attempt = attempt
        self.query = query
        self.account = ThrottleAccount(_MOST_CLIENTS)
        self._sent: dict[Client, ClientTotals] = {}
        self.spooled: dict[Client, ClientTotals] = {}
        """The counts that were left to the plugin."""

    def send(self) -> tuple[ClientTotals, ...]:
        """The counts so far; from now on they are counted as sent."""
        totals = self.account.totals()
        self._sent = {each.client: each for each in totals}
        return totals

    def spool(self) -> Iterator[str]:
        """
        The counts that were not left to the plugin yet, and now are: a line for each client.

        Query, user, client id and side, percent-encoded, then throttled ms, responses and longest ms.
        """
        for each in self.send():
            new = _minus(each, self.spooled.get(each.client))
            self.spooled[each.client] = each
            if new.responses:
                names = (
                    quote(text, "", errors="replace")
                    for text in (self.query, *new.client)
                )
                counts = (new.throttled_ms, new.responses, new.longest_ms)
                yield " ".join([*names, *(str(int(count)) for count in counts)])

    def take_over(self, before: AttemptCounter) -> None:
        """Count what came too late for the task that ran here before."""
        for totals in before.rest():
            self.account.add(totals)

    def rest(self) -> Iterator[ClientTotals]:
        """The counts since they were sent."""
        for totals in self.account.totals():
            late = _minus(totals, self._sent.get(totals.client))
            if late.responses or late.quota_retries:
                yield late

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        rows = tuple(row(each) for each in self.send())
        return tuple, ((VERSION, self.attempt.stage, self.query, rows),)


def _minus(totals: ClientTotals, sent: ClientTotals | None) -> ClientTotals:
    if sent is None:
        return totals
    return totals._replace(
        throttled_ms=totals.throttled_ms - sent.throttled_ms,
        responses=totals.responses - sent.responses,
        quota_retries=totals.quota_retries - sent.quota_retries,
    )


Route = Callable[[], ThrottleAccount]
"""The account of the task that runs now."""


class RoutedAccount(ThrottleAccount):
    """
    Counts for the task that runs now, whichever it is: programs keep their producers for the next task.

    Its totals are those of the running task.
    """

    def __init__(self, route: Route) -> None:
        super().__init__()
        self._route = route

    def client(self, user: str, client_id: str, side: Side) -> ClientAccount:
        """The counts of one client, in this task and in those that follow. Raises `ValueError` for an unknown side."""
        client = Client(clipped(user), clipped(client_id), side)
        self._route().client(*client)
        return _RoutedClient(client, self._route)

    def totals(self) -> tuple[ClientTotals, ...]:
        """The counts of each client in this task so far."""
        return self._route().totals()


class _RoutedClient(ClientAccount):
    __slots__ = ("_client", "_route")

    def __init__(self, client: Client, route: Route) -> None:
        super().__init__(client, time.monotonic)
        self._client = client
        self._route = route

    @property
    def totals(self) -> ClientTotals:
        """The counts in this task so far."""
        return self._route().client(*self._client).totals

    def _count(
        self, throttled_ms: int, responses: int, longest_ms: int, quota_retries: int
    ) -> None:
        totals = ClientTotals(self._client, throttled_ms, responses, longest_ms)
        self._route().add(totals._replace(quota_retries=quota_retries))
