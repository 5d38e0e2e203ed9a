"""The throttle times of the Kafka clients in a job's Python code, in its driver and in its tasks."""

from __future__ import annotations

import importlib
import logging
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Container
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from quotascope.clients.accounting import OVERFLOW, ClientTotals, ThrottleAccount

from .attempt import active_context, query_of_thread, running_task
from .py_files import HOME, temporary_py_files
from .rows import UnreadableRow, is_count, totals_of
from .worker import VERSION, TaskScope, worker_of

if TYPE_CHECKING:
    from pyspark import SparkContext

__all__ = ["JobThrottles", "throttle_scope"]

_LOG = logging.getLogger(__name__)
_MOST_QUERIES = 100
_MOST_STAGES = 10_000
_UNREADABLE = "throttle times of a task are not counted: it sent what this version of quotascope does not know"
_EMPTY: tuple[object, ...] = ()
"""Value of the accumulator of a task that sent no counts."""
_NOTES_ONLY = (
    "there is no accumulator here (%s): "
    "without the Spark plugin, only attempts that fail report the throttle times of their Kafka clients"
)
_NOT_ATTACHED = "no listener is attached: only failed attempts report the throttle times of these Kafka clients"


class ThrottleLedger:
    """
    Sums of throttle times by streaming query and client, in bounded space, from any thread.

    It is the value of an accumulator (`Adding`).
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._accounts: dict[str, ThrottleAccount] = {}
        self._stages: OrderedDict[int, None] = OrderedDict()

    def account(self, query: str) -> ThrottleAccount:
        """
        Return the counts of a query, given its id; the id is empty for counts that belong to no query.

        Queries beyond the cap are counted as one.
        """
        with self._lock:
            if query not in self._accounts and len(self._accounts) >= _MOST_QUERIES:
                query = OVERFLOW
            return self._accounts.setdefault(query, ThrottleAccount())

    def add(self, sent: object) -> None:
        """Add the counts that a task sent (`AttemptCounter`). Never raises: unreadable counts only cause a warning."""
        try:
            stage, query, totals = _update(sent)
        except (TypeError, ValueError):
            _LOG.warning(_UNREADABLE)
            return
        account = self.account(query)
        for client_totals in totals:
            account.add(client_totals)
        with self._lock:
            self._stages[stage] = None
            if len(self._stages) > _MOST_STAGES:
                self._stages.popitem(last=False)

    def totals(self) -> tuple[tuple[str, ClientTotals], ...]:
        """Return the counts of each client so far, by the id of the streaming query."""
        with self._lock:
            accounts = sorted(self._accounts.items())
        return tuple((query, client_totals) for query, account in accounts for client_totals in account.totals())

    def stages(self) -> Container[int]:
        """Return the ids of the stages whose tasks sent counts."""
        with self._lock:
            return frozenset(self._stages)


def _update(sent: Any) -> tuple[int, str, list[ClientTotals]]:  # noqa: ANN401 - whatever came
    """Return stage, query and counts that a task sent. Raises ``TypeError`` and ``ValueError``."""
    version, stage, query, rows = sent
    if version != VERSION or not is_count(stage) or not isinstance(query, str):
        raise UnreadableRow
    return stage, query, [totals_of(values) for values in rows]


class Adding:
    """`AccumulatorParam` by which Spark adds counts of tasks to a ledger."""

    def zero(self, _ledger: object) -> tuple[object, ...]:
        """Return the initial value of a task."""
        return _EMPTY

    def addInPlace(self, ledger: ThrottleLedger, sent: object) -> ThrottleLedger:  # noqa: N802 - Spark's name
        """Add the counts that a task sent; an exception would end Spark's thread that calls this."""
        if sent != _EMPTY:
            ledger.add(sent)
        return ledger


class JobThrottles:
    """
    The throttle times of the Python clients of one application.

    `JobThrottles.of(spark)` makes it in the driver. Functions that run in tasks use the same object, or
    `throttle_scope()`:

        with throttles.scope() as account:
            producer = Producer(confluent_kafka_config(config, account, side="write"))
    """

    def __init__(self, accumulator: int | None = None) -> None:
        self.accumulator = accumulator
        self.ledger = ThrottleLedger()

    @classmethod
    def of(cls, spark: Any, *, ship_task_files: bool = True) -> JobThrottles:  # noqa: ANN401 - a session of either kind
        """
        Return the throttle times of this session's application, created at the first call. Never raises.

        Under Spark Connect there are no accumulators: only attempts that fail report throttle times, in the note on
        their exception, and a warning says so.

        Args:
            spark: a SparkSession.
            ship_task_files: send the modules that tasks import to the executors.

        """
        try:
            with _LOCK:
                return _of_context(spark.sparkContext, ship_task_files=ship_task_files)
        except Exception as error:  # noqa: BLE001 - the job continues
            _LOG.warning(_NOTES_ONLY, type(error).__name__)
        if ship_task_files:
            _ship(lambda path: spark.addArtifacts(path, pyfile=True), None)
        return cls()

    @property
    def carries_successes(self) -> bool:
        """True if tasks that succeed report their throttle times; tasks that fail always do."""
        return self.accumulator is not None

    def scope(self) -> AbstractContextManager[ThrottleAccount]:
        """
        Return a context that gives the account for throttle times: the attempt's in a task, the query's in the driver.

        In the driver, the query is the streaming query of this thread, if any. An exception that leaves the context in
        a task gets a note with the throttle times of the attempt.
        """
        task = running_task()
        if task is not None:
            return TaskScope(worker_of(self.accumulator), task)
        return nullcontext(self.ledger.account(_query()))

    def totals(self) -> tuple[tuple[str, ClientTotals], ...]:
        """
        Return, in the driver, the counts so far by id of the streaming query (empty for none) and client.

        Notes on failures and the counts that the plugin took are not among them.
        """
        return self.ledger.totals()

    def scoped_stages(self) -> Container[int]:
        """Return, in the driver, the ids of the stages in which a scope was open."""
        return self.ledger.stages()

    def __reduce__(self) -> tuple[Any, ...]:
        return _arrived, (self.accumulator,)


_LOCK = threading.Lock()
_KNOWN: weakref.WeakKeyDictionary[SparkContext, JobThrottles] = weakref.WeakKeyDictionary()


def throttle_scope() -> AbstractContextManager[ThrottleAccount]:
    """
    Return `JobThrottles.scope()` of the application that runs this code, in a task or in its driver.

    Tasks find it in the files that `JobThrottles.of` ships. Without one, only failed attempts report throttle times,
    and a warning says so.
    """
    if running_task() is not None:
        return _arrived(_shipped()).scope()
    context = active_context()
    throttles = None if context is None else _KNOWN.get(context)
    if throttles is None:
        _LOG.warning(_NOT_ATTACHED)
        throttles = JobThrottles()
    return throttles.scope()


def _query() -> str:
    """Return the id of the streaming query of this thread; empty if there is none, or it is unknown."""
    try:
        return query_of_thread()
    except Exception as error:  # noqa: BLE001 - of py4j, when the JVM is gone: the job continues
        _LOG.warning("the query of this thread is not known: %s", type(error).__name__)
        return ""


def _of_context(context: SparkContext, *, ship_task_files: bool) -> JobThrottles:
    """Return the throttle times of a SparkContext, with a new accumulator at the first call."""
    throttles = _KNOWN.get(context)
    if throttles is None:
        throttles = JobThrottles()
        adding: Any = Adding()  # an AccumulatorParam by its methods
        throttles.accumulator = context.accumulator(throttles.ledger, adding).aid
        _KNOWN[context] = throttles
        if ship_task_files:
            _ship(context.addPyFile, throttles.accumulator)
    return throttles


def _ship(send: Callable[[str], object], accumulator: int | None) -> None:
    """Send the modules that tasks import; a failure is a warning in the log."""
    try:
        send(temporary_py_files(accumulator))
    except Exception as error:  # noqa: BLE001 - the job continues
        _LOG.warning("what tasks import could not be sent to them: %s", error)


def _arrived(accumulator: int | None) -> JobThrottles:
    """Return the unpickled `JobThrottles`: in its own driver, the same object."""
    for throttles in _KNOWN.values():
        if throttles.accumulator == accumulator:
            return throttles
    return JobThrottles(accumulator)


def _shipped() -> int | None:
    """Return the number of the accumulator that the driver sent with the modules; None if it sent none."""
    try:
        accumulator: int = importlib.import_module(HOME).ACCUMULATOR
    except ImportError:
        return None
    return accumulator
