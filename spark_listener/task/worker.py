"""
Counting in a Python worker, the process that runs tasks one after the other.

`TaskScope` is the `with` block in a task. `PythonWorker` has the counts of the attempt that runs now
(`AttemptCounter`). While it runs, they go to the executor's plugin, if there is one; what remains at its end, the
accumulator brings to the driver if it succeeds, and a note on its exception if it fails.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable
from urllib.parse import quote
from uuid import uuid4

from quotascope.clients.accounting import Client, ClientAccount, ClientTotals, Side, ThrottleAccount

from . import note
from .attempt import AttemptKey, attempt_of, query_of
from .rows import clipped, row

if TYPE_CHECKING:
    from pyspark import TaskContext

VERSION = 1
"""Version of what is sent: a driver ignores versions that it does not know."""
_LOG = logging.getLogger(__name__)
_NOWHERE = AttemptKey(-1, -1, -1)
_MOST_CLIENTS = 100
"""Most clients of a task, which usually has a few; later ones are counted together."""
_REPORT_SECONDS = 1.0


class TaskScope:
    """
    Context in a task that counts for this attempt, and puts a note on an exception that leaves it.

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
        self, _kind: type[BaseException] | None, error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        if error is None or isinstance(error, GeneratorExit):
            self._worker.end_scope()
        else:
            note.put(error, self._worker.note)


class PythonWorker:
    """
    Counts of the tasks of this process, under one accumulator.

    Args:
        accumulator: the number of the driver's accumulator; None where there is none, as under Spark Connect: then
            notes on failed attempts leave the
            worker, and the other counts only where the executor has the plugin (`jvm`).

    """

    def __init__(self, accumulator: int | None) -> None:
        self._accumulator = accumulator
        self._lock = threading.Lock()
        self._counter = AttemptCounter(_NOWHERE, "")
        self.account: ThrottleAccount = RoutedAccount(lambda: self._counter.account)
        self._spool = _spool_folder()
        if self._spool is not None:
            threading.Thread(target=self._report, name="quotascope-report", daemon=True).start()
        elif accumulator is None:
            _LOG.warning(
                "the driver of this task has no accumulator for it: "
                "only failed attempts report the throttle times of their Kafka clients"
            )

    def begin(self, task: TaskContext) -> None:
        """Count for this task from now on; continue if it is the same as before."""
        attempt = attempt_of(task)
        with self._lock:
            if attempt != self._counter.attempt:
                previous, self._counter = (
                    self._counter,
                    AttemptCounter(attempt, query_of(task)),
                )
                self._counter.take_over(previous)
            if self._accumulator is not None:
                from pyspark.accumulators import Accumulator  # noqa: PLC0415 - where tasks run

                # registers itself, so that the worker sends the counter when the task has succeeded; Spark forgets all
                # accumulators before each task, and calls the parameter, None here, in the driver only
                param: Any = None
                Accumulator(self._accumulator, self._counter, param)

    def note(self) -> str:
        """Return the note on an attempt that fails."""
        with self._lock:
            return self._counter.note()

    def end_scope(self) -> None:
        """End a scope without an exception: without an accumulator, leave the counts to the plugin. Never raises."""
        if self._accumulator is None:
            self._leave_to_plugin()

    def _report(self) -> None:
        """
        Leave the counts to the plugin while tasks run, which may be for hours, as in Real-Time Mode.

        Those of an attempt that has a note wait for its end, where either the note counts or the accumulator.
        """
        while self._spool is not None:
            time.sleep(_REPORT_SECONDS)
            self._leave_to_plugin(while_running=True)

    def _leave_to_plugin(self, *, while_running: bool = False) -> None:
        try:
            with self._lock:
                waits = while_running and self._counter.noted
                if self._spool is not None and not waits:
                    self._counter.spool(self._spool)
        except Exception:  # noqa: BLE001 - the program's task matters more than its counts
            self._spool = None
            _LOG.exception("throttle times are not left to the plugin")


def _spool_folder() -> Path | None:
    """
    Return the folder of the plugin (`PythonSpool`), None where there is no plugin.

    The plugin creates it in the executor's first local directory, which Spark names to its workers.
    """
    first_directory = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
    folder = Path(first_directory, "quotascope")
    return folder if first_directory and folder.is_dir() else None  # never a folder in the current folder


_LOCK = threading.Lock()
_WORKERS: dict[int | None, PythonWorker] = {}


def worker_of(accumulator: int | None) -> PythonWorker:
    """Return the worker of this process for that accumulator."""
    with _LOCK:
        if accumulator not in _WORKERS:
            _WORKERS[accumulator] = PythonWorker(accumulator)
        return _WORKERS[accumulator]


class AttemptCounter:
    """
    The counts of one attempt.

    It is the value of the task's accumulator, and turns into plain tuples when the worker pickles that at the end of a
    successful task: it has all throttle times until then, also of clients that outlive the scope, but for those that
    the plugin has.
    """

    def __init__(self, attempt: AttemptKey, query: str) -> None:
        self.attempt = attempt
        self.query = query
        self.account = ThrottleAccount(_MOST_CLIENTS)
        self.noted = False
        """True if an exception has a note with these counts; the exception may still be caught."""
        self._lock = threading.Lock()
        self._reported: dict[Client, ClientTotals] = {}
        """Counts that the accumulator or the plugin took."""
        self._left = ThrottleAccount(_MOST_CLIENTS)
        """Counts that were left to the plugin."""
        self._sent: dict[Client, ClientTotals] = {}
        """Counts that the accumulator, the plugin or a note took."""

    def note(self) -> str:
        """
        Return the text of a note with the counts that the plugin did not take.

        The accumulator's part gets lost when the attempt fails.
        """
        with self._lock:
            self.noted = True
            totals = self.account.totals()
            self._sent = _by_client(totals)
            left_totals = self._left.totals()
            remaining = tuple(_since(client_totals, _by_client(left_totals)) for client_totals in totals)
        return note.text_of(self.attempt, note.Note(self.query, remaining, left_totals))

    def spool(self, folder: Path) -> None:
        """
        Leave the counts that were not reported to the plugin: a file with a line for each client. Raises `OSError`.

        A line has query, user, client id and side, percent-encoded, then throttled ms, responses and longest ms.
        """
        with self._lock:
            totals = self.account.totals()
            new = [_since(client_totals, self._reported) for client_totals in totals]
            new = [client_totals for client_totals in new if client_totals.responses]
            if not new:
                return
            path = folder / uuid4().hex
            path.write_text("\n".join(_line(self.query, client_totals) for client_totals in new), encoding="ascii")
            path.rename(f"{path}.txt")  # other processes see the file as a whole or not at all
            for client_totals in new:
                self._left.add(client_totals._replace(quota_retries=0))
            for taken_by_client in (self._reported, self._sent):
                for client_totals in totals:  # the calls that an admin client repeated are not taken
                    previous = taken_by_client.get(client_totals.client, ClientTotals(client_totals.client))
                    taken_by_client[client_totals.client] = client_totals._replace(quota_retries=previous.quota_retries)

    def take_over(self, previous: AttemptCounter) -> None:
        """Count what came too late for the task that ran here before."""
        for totals in previous.rest():
            self.account.add(totals)

    def rest(self) -> Iterator[ClientTotals]:
        """Yield the counts that were neither reported nor noted."""
        with self._lock:
            for totals in self.account.totals():
                late = _since(totals, self._sent)
                if late.responses or late.quota_retries:
                    yield late

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        with self._lock:
            totals = self.account.totals()
            rows = tuple(row(_since(client_totals, self._reported)) for client_totals in totals)
            self._reported, self._sent = _by_client(totals), _by_client(totals)
        return tuple, ((VERSION, self.attempt.stage, self.query, rows),)


def _line(query: str, totals: ClientTotals) -> str:
    names = (quote(text, "", errors="replace") for text in (query, *totals.client))
    counts = (totals.throttled_ms, totals.responses, totals.longest_ms)
    return " ".join([*names, *(str(int(count)) for count in counts)])


def _by_client(counts: Iterable[ClientTotals]) -> dict[Client, ClientTotals]:
    return {client_totals.client: client_totals for client_totals in counts}


def _since(totals: ClientTotals, taken_by_client: Mapping[Client, ClientTotals]) -> ClientTotals:
    """Return the counts beyond those already taken; the longest throttle time is at most that of both together."""
    taken = taken_by_client.get(totals.client)
    if taken is None:
        return totals
    new_ms = totals.throttled_ms - taken.throttled_ms
    return totals._replace(
        throttled_ms=new_ms,
        responses=totals.responses - taken.responses,
        longest_ms=min(totals.longest_ms, new_ms),
        quota_retries=totals.quota_retries - taken.quota_retries,
    )


Route = Callable[[], ThrottleAccount]
"""The account of the task that runs now."""


class RoutedAccount(ThrottleAccount):
    """
    Account that counts for the running task, whichever it is: programs keep their producers for the next task.

    Its totals are those of the running task.
    """

    def __init__(self, route: Route) -> None:
        super().__init__()
        self._route = route

    def client(self, user: str, client_id: str, side: Side) -> ClientAccount:
        """
        Return the counts of one client, in this task and in those that follow.

        Raises `ValueError` for an unknown side.
        """
        client = Client(clipped(user), clipped(client_id), side)
        self._route().client(*client)
        return _RoutedClient(client, self._route)

    def totals(self) -> tuple[ClientTotals, ...]:
        """Return the counts of each client in this task so far."""
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

    def add(self, totals: ClientTotals) -> None:
        """Add the totals of any client, counted elsewhere, to this task's."""
        self._route().add(totals._replace(client=self._client))
