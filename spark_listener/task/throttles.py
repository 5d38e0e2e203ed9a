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
_NOTES_ONLY = "there is no accumulator here (%s): without the Spark plugin, only attempts that fail report the throttle times of their Kafka clients"
_NOT_ATTACHED = "no listener is attached: only failed attempts report the throttle times of these Kafka clients"


class ThrottleLedger:
    """
    Sums by streaming query and client, in bounded space. All methods may be called from any thread.

    It is the value of an accumulator: see `Adding`.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._accounts: dict[str, ThrottleAccount] = {}
        self._stages: OrderedDict[int, None] = OrderedDict()

    def account(self, query: str) -> ThrottleAccount:
        """The counts of a query, by its id; empty for what belongs to none. Queries that come too late are counted as one."""
        with self._lock:
            if query not in self._accounts and len(self._accounts) >= _MOST_QUERIES:
                query = OVERFLOW
            return self._accounts.setdefault(query, ThrottleAccount())

    def add(self, sent: object) -> None:
        """Count what a task sent (`AttemptCounter`). Never raises: what cannot be read is left out, with a warning."""
        try:
            stage, query, totals = _update(sent)
        except (TypeError, ValueError):
            _LOG.warning(_UNREADABLE)
            return
        account = self.account(query)
        for each in totals:
            account.add(each)
        with self._lock:
            self._stages[stage] = None
            if len(self._stages) > _MOST_STAGES:
                self._stages.popitem(last=False)

    def totals(self) -> tuple[tuple[str, ClientTotals], ...]:
        """The counts of each client so far, by the id of the streaming query."""
        with self._lock:
            accounts = sorted(self._accounts.items())
        return tuple((query, each) for query, account in accounts for each in account.totals())

    def stages(self) -> Container[int]:
        """The ids of the stages of which tasks sent counts."""
        with self._lock:
            return frozenset(self._stages)


def _update(sent: Any) -> tuple[int, str, list[ClientTotals]]:  # noqa: ANN401 - whatever came
    version, stage, query, rows = sent
    if version != VERSION or not is_count(stage) or not isinstance(query, str):
        raise UnreadableRow
    return stage, query, [totals_of(each) for each in rows]


class Adding:
    """How Spark adds to a ledger: an `AccumulatorParam`."""

    def zero(self, _ledger: object) -> tuple[object, ...]:
        """What a task begins with."""
        return _EMPTY

    def addInPlace(self, ledger: ThrottleLedger, sent: object) -> ThrottleLedger:  # noqa: N802 - Spark's name
        """Called by the thread of the accumulators' server, which an exception would end."""
        if sent != _EMPTY:
            ledger.add(sent)
        return ledger


class JobThrottles:
    """
    The throttle times of the Python clients of one application.

    `JobThrottles.of(spark)` makes it in the driver. Functions that run in tasks use the same object, or `throttle_scope()`:

        with throttles.scope() as account:
            producer = Producer(confluent_kafka_config(config, account, side="write"))
    """

    def __init__(self, accumulator: int | None = None) -> None:
        self.accumulator = accumulator
        self.ledger = ThrottleLedger()

    @classmethod
    def of(cls, spark: Any, *, ship_task_files: bool = True) -> JobThrottles:  # noqa: ANN401 - a SparkSession of either kind
        """
        The one of this session's application, which is made when it is first asked for. Never raises.

        Under Spark Connect there are no accumulators: only attempts that fail report throttle times, in the note on their exception,
        and a warning says so.

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
        """Whether tasks that succeed report their throttle times; those that fail always do."""
        return self.accumulator is not None

    def scope(self) -> AbstractContextManager[ThrottleAccount]:
        """
        In a task the account of its attempt; in the driver that of the streaming query that this thread belongs to, if any.

        An exception that leaves the block in a task gets a note with the throttle times of the attempt.
        """
        task = running_task()
        if task is not None:
            return TaskScope(worker_of(self.accumulator), task)
        return nullcontext(self.ledger.account(_query()))

    def totals(self) -> tuple[tuple[str, ClientTotals], ...]:
        """In the driver: the counts so far by id of the streaming query (empty for none) and client, without notes on failures and what the plugin took."""
        return self.ledger.totals()

    def scoped_stages(self) -> Container[int]:
        """In the driver: the ids of the stages in which a scope was open."""
        return self.ledger.stages()

    def __reduce__(self) -> tuple[Any, ...]:
        return _arrived, (self.accumulator,)


_LOCK = threading.Lock()
_KNOWN: weakref.WeakKeyDictionary[SparkContext, JobThrottles] = weakref.WeakKeyDictionary()


def throttle_scope() -> AbstractContextManager[ThrottleAccount]:
    """
    `JobThrottles.scope()` of the application that runs this code, in a task or in its driver.

    Tasks find it in the files that `JobThrottles.of` ships. Without one, only failed attempts report throttle times, and a
    warning says so.
    """
    if running_task() is not None:
        return _arrived(_shipped()).scope()
    context = active_context()
    known = None if context is None else _KNOWN.get(context)
    if known is None:
        _LOG.warning(_NOT_ATTACHED)
        known = JobThrottles()
    return known.scope()


def _query() -> str:
    try:
        return query_of_thread()
    except Exception as error:  # noqa: BLE001 - of py4j, when the JVM is gone: the job continues
        _LOG.warning("the query of this thread is not known: %s", type(error).__name__)
        return ""


def _of_context(context: SparkContext, *, ship_task_files: bool) -> JobThrottles:
    known = _KNOWN.get(context)
    if known is None:
        known = JobThrottles()
        adding: Any = Adding()  # an AccumulatorParam by its methods
        known.accumulator = context.accumulator(known.ledger, adding).aid
        _KNOWN[context] = known
        if ship_task_files:
            _ship(context.addPyFile, known.accumulator)
    return known


def _ship(send: Callable[[str], object], accumulator: int | None) -> None:
    try:
        send(temporary_py_files(accumulator))
    except Exception as error:  # noqa: BLE001 - the job continues
        _LOG.warning("what tasks import could not be sent to them: %s", error)


def _arrived(accumulator: int | None) -> JobThrottles:
    """The unpickled `JobThrottles`: in its own driver, the same object."""
    for known in _KNOWN.values():
        if known.accumulator == accumulator:
            return known
    return JobThrottles(accumulator)


def _shipped() -> int | None:
    try:
        accumulator: int = importlib.import_module(HOME).ACCUMULATOR
    except ImportError:
        return None
    return accumulator
