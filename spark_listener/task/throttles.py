"""What the Kafka clients of a job's Python code were told, in its driver and in its tasks."""

from __future__ import annotations

import importlib
import logging
import threading
import weakref
from collections.abc import Callable, Container
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from quotascope.clients.accounting import ClientTotals, ThrottleAccount

from .attempt import active_context, query_of_thread, running_task
from .ledger import Adding, Ledger
from .py_files import HOME, temporary_py_files
from .scope import TaskScope
from .worker import worker_of

if TYPE_CHECKING:
    from pyspark import SparkContext

__all__ = ["Throttles", "throttle_scope"]

_LOG = logging.getLogger(__name__)
_NOTES_ONLY = "there is no accumulator here (%s): only tasks that fail will tell what their Kafka clients waited"
_NOBODY = "no listener is attached: what these Kafka clients are told goes nowhere"


class Throttles:
    """
    The throttle times that were told to the Python clients of one application.

    `Throttles.of(spark)` makes it in the driver. Functions that run in tasks use the same object, or `throttle_scope()`:

        with throttles.scope() as account:
            producer = Producer(confluent_kafka_config(config, account, side="write"))
    """

    def __init__(self, accumulator: int | None = None) -> None:
        self.accumulator = accumulator
        self.ledger = Ledger()

    @classmethod
    def of(cls, spark: Any, *, ship_task_files: bool = True) -> Throttles:  # noqa: ANN401 - a SparkSession of either kind
        """
        The one of this session's application, which is made when it is first asked for. Never raises.

        Under Spark Connect there are no accumulators: only attempts that fail tell what they waited, by the note on their exception,
        and a warning says so.

        Args:
            spark: a SparkSession.
            ship_task_files: send the modules that tasks import to the executors.

        """
        try:
            with _LOCK:
                return _of_context(spark.sparkContext, ship_task_files=ship_task_files)
        except Exception as error:  # noqa: BLE001 - somebody's job goes on
            _LOG.warning(_NOTES_ONLY, type(error).__name__)
        if ship_task_files:
            _ship(lambda path: spark.addArtifacts(path, pyfile=True), None)
        return cls()

    @property
    def carries_successes(self) -> bool:
        """Whether tasks that succeed bring home what they were told; those that fail always do."""
        return self.accumulator is not None

    def scope(self) -> AbstractContextManager[ThrottleAccount]:
        """
        In a task the account of its attempt; in the driver that of the streaming query that this thread works for, if any.

        When an exception leaves the block in a task, it gets a note of what the attempt was told.
        """
        task = running_task()
        if task is not None:
            return TaskScope(worker_of(self.accumulator), task)
        return nullcontext(self.ledger.account(_query()))

    def totals(self) -> tuple[tuple[str, ClientTotals], ...]:
        """In the driver: the counts so far by id of the streaming query (empty for none) and client, without notes on failures."""
        return self.ledger.totals()

    def scoped_stages(self) -> Container[int]:
        """In the driver: the ids of the stages in which a scope was open."""
        return self.ledger.stages()

    def __reduce__(self) -> tuple[Any, ...]:
        return _arrived, (self.accumulator,)


_LOCK = threading.Lock()
_KNOWN: weakref.WeakKeyDictionary[SparkContext, Throttles] = weakref.WeakKeyDictionary()


def throttle_scope() -> AbstractContextManager[ThrottleAccount]:
    """
    `Throttles.scope()` of the application that runs this code, in a task or in its driver.

    Tasks find it by what `Throttles.of` ships. Without one, what clients are told goes nowhere but into notes on failures, and a
    warning says so.
    """
    if running_task() is not None:
        return _arrived(_shipped()).scope()
    context = active_context()
    known = None if context is None else _KNOWN.get(context)
    if known is None:
        _LOG.warning(_NOBODY)
        known = Throttles()
    return known.scope()


def _query() -> str:
    try:
        return query_of_thread()
    except Exception as error:  # noqa: BLE001 - of py4j, when the JVM is gone: somebody's job goes on
        _LOG.warning(
            "which query this thread works for is not known: %s", type(error).__name__
        )
        return ""


def _of_context(context: SparkContext, *, ship_task_files: bool) -> Throttles:
    known = _KNOWN.get(context)
    if known is None:
        known = Throttles()
        adding: Any = Adding()  # an AccumulatorParam by its methods
        known.accumulator = context.accumulator(known.ledger, adding).aid
        _KNOWN[context] = known
        if ship_task_files:
            _ship(context.addPyFile, known.accumulator)
    return known


def _ship(send: Callable[[str], object], accumulator: int | None) -> None:
    try:
        send(temporary_py_files(accumulator))
    except Exception as error:  # noqa: BLE001 - somebody's job goes on
        _LOG.warning("what tasks import could not be sent to them: %s", error)


def _arrived(accumulator: int | None) -> Throttles:
    """What a pickled `Throttles` is where it arrives: in its own driver it is itself."""
    for known in _KNOWN.values():
        if known.accumulator == accumulator:
            return known
    return Throttles(accumulator)


def _shipped() -> int | None:
    try:
        accumulator: int = importlib.import_module(HOME).ACCUMULATOR
    except ImportError:
        return None
    return accumulator
