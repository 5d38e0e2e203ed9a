"""
Counting of throttle times in a Python worker, the process that runs tasks one after the other.

`TaskScope` is the context in a task. `PythonWorker` has the counts of the running attempt (`AttemptCounter`). While the
attempt runs, they are written for the executor's plugin, if there is one. At its end, an accumulator sends the other
counts to the driver if it succeeds, and a note on its exception has them if it fails.
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
    Context in a task that counts throttle times of its attempt, and adds a note to an exception that leaves it.

    An attempt may have several scopes, also nested ones. They count together, and every note has all counts.
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
    Counts of the tasks of this process, for one accumulator.

    Args:
        accumulator: number of the driver's accumulator; None without one, as under Spark Connect. Then only notes on
            failed attempts reach the driver, and other counts only if the executor has the plugin (`jvm`).

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
        """Count for a task from now on; an attempt that is already counted goes on."""
        attempt = attempt_of(task)
        with self._lock:
            if attempt != self._counter.attempt:
                previous = self._counter
                self._counter = AttemptCounter(attempt, query_of(task))
                self._counter.take_over(previous)
            if self._accumulator is not None:
                from pyspark.accumulators import Accumulator  # noqa: PLC0415 - where tasks run

                # registers itself, so that the worker sends the counter when the task has succeeded; Spark forgets all
                # accumulators before each task, and calls the parameter, None here, in the driver only
                param: Any = None
                Accumulator(self._accumulator, self._counter, param)

    def note(self) -> str:
        """Return the text of the note on the running attempt, which fails."""
        with self._lock:
            return self._counter.note()

    def end_scope(self) -> None:
        """End a scope without an exception; without an accumulator, write counts for the plugin. Never raises."""
        if self._accumulator is None:
            self._leave_to_plugin()

    def _report(self) -> None:
        """
        Write counts for the plugin regularly, as a task may run for hours in Real-Time Mode.

        The counts of an attempt with a note wait for its end, when either the note or the accumulator reports them.
        """
        while self._spool is not None:
            time.sleep(_REPORT_SECONDS)
            self._leave_to_plugin(while_running=True)

    def _leave_to_plugin(self, *, while_running: bool = False) -> None:
        """Write counts for the plugin; an error ends that for this process."""
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
    Return the folder of the plugin (`PythonSpool`), None without a plugin.

    The plugin creates it in the executor's first local directory, which Spark names to its workers.
    """
    first_directory = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
    if not first_directory:  # otherwise it would be a folder in the current one
        return None
    folder = Path(first_directory, "quotascope")
    return folder if folder.is_dir() else None


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

    It is the value of the task's accumulator. When the worker pickles it at the end of a successful task, it becomes
    plain tuples with all throttle times until then, also of clients that are used beyond the scope, except those that
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
        """Counts that the accumulator or the plugin has."""
        self._spooled = ThrottleAccount(_MOST_CLIENTS)
        """Counts that were written for the plugin."""
        self._sent: dict[Client, ClientTotals] = {}
        """Counts that the accumulator, the plugin or a note has."""

    def note(self) -> str:
        """
        Return the text of a note with all counts, and those apart that the plugin has.

        Counts of the accumulator are among them, as they are lost when the attempt fails.
        """
        with self._lock:
            self.noted = True
            totals = self.account.totals()
            self._sent = _by_client(totals)
            spooled = self._spooled.totals()
            remaining = tuple(_since(client_totals, _by_client(spooled)) for client_totals in totals)
        return note.text_of(self.attempt, note.Note(self.query, remaining, spooled))

    def spool(self, folder: Path) -> None:
        """
        Write the counts that were not reported yet to a file for the plugin. Raises `OSError`.

        The file has a line for each client: query, user, client id and side, percent-encoded, followed by throttled ms,
        responses and longest ms.
        """
        with self._lock:
            totals = self.account.totals()
            new = [_since(client_totals, self._reported) for client_totals in totals]
            new = [client_totals for client_totals in new if client_totals.responses]
            if not new:
                return
            path = folder / uuid4().hex  # the plugin reads files with the suffix .txt only
            path.write_text("\n".join(_line(self.query, client_totals) for client_totals in new), encoding="ascii")
            path.rename(f"{path}.txt")  # other processes see the file as a whole or not at all
            for client_totals in new:
                self._spooled.add(client_totals._replace(quota_retries=0))
            # all counts are reported now but for the calls that an admin client repeated: the plugin has none of these
            for taken_by_client in (self._reported, self._sent):
                for client_totals in totals:
                    previous = taken_by_client.get(client_totals.client, ClientTotals(client_totals.client))
                    taken_by_client[client_totals.client] = client_totals._replace(quota_retries=previous.quota_retries)

    def take_over(self, previous: AttemptCounter) -> None:
        """Add the counts that came too late for the previous task of this process."""
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
        """Pickle the counts that were not reported yet as plain tuples, and record them as reported."""
        with self._lock:
            totals = self.account.totals()
            rows = tuple(row(_since(client_totals, self._reported)) for client_totals in totals)
            self._reported, self._sent = _by_client(totals), _by_client(totals)
        return tuple, ((VERSION, self.attempt.stage, self.query, rows),)


def _line(query: str, totals: ClientTotals) -> str:
    """Return the line of a client in a file for the plugin."""
    names = (quote(text, "", errors="replace") for text in (query, *totals.client))
    counts = (totals.throttled_ms, totals.responses, totals.longest_ms)
    return " ".join([*names, *(str(int(count)) for count in counts)])


def _by_client(counts: Iterable[ClientTotals]) -> dict[Client, ClientTotals]:
    """Return counts by client."""
    return {client_totals.client: client_totals for client_totals in counts}


def _since(totals: ClientTotals, taken_by_client: Mapping[Client, ClientTotals]) -> ClientTotals:
    """Return the counts of a client without those already taken; the longest throttle time is an upper bound."""
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
    Account that counts for whichever task is running, because programs keep their producers from task to task.

    Its totals are those of the running task.
    """

    def __init__(self, route: Route) -> None:
        super().__init__()
        self._route = route

    def client(self, user: str, client_id: str, side: Side) -> ClientAccount:
        """
        Return the account of one client, which counts for this task and for later ones.

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
        """Add totals that were counted elsewhere to the counts of this client in the running task."""
        self._route().add(totals._replace(client=self._client))
