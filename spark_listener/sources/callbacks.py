"""The events of a driver by callbacks from its JVM into Python."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from ..errors import SourceUnusable, brief
from ..foreign import Java, Spark
from ..job import EventSink
from .bus import QUEUE, ListenerBus
from .source import event_of, lateness

_INTERFACE = "org.apache.spark.scheduler.SparkListenerInterface"
_END = "SparkListenerApplicationEnd"
_PATIENCE_SECONDS = 5.0


class CallbackSource:
    """
    What is used when the JVM cannot be taught to queue events by itself.

    Every event of the job waits for Python once, on the thread of its own queue of the bus; successful tasks and first starts are counted there,
    and only of the rest is JSON asked for. A driver that is busy with Python can lose events, which Spark counts, and we with it.

    Raises:
        SourceUnusable: py4j is forbidden, or Spark does not turn events to JSON as the versions we know do.

    """

    name = "callbacks"

    def __init__(
        self,
        context: Spark,
        job: EventSink,
        *,
        wanted: Iterable[str],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._job = job
        self._clock = clock
        self._wanted = frozenset(wanted)
        self._lock = threading.Lock()
        self._latest = 0.0
        self._dropped = 0
        self.ended = False
        try:
            self._register(context)
        except Exception as error:  # py4j raises whatever the JVM throws
            raise SourceUnusable(self.name, brief(error)) from error

    def collect(self) -> float:
        """As `EventSource.collect`: events came by themselves; what Spark dropped in the meantime is counted here."""
        with self._lock:
            dropped = self._bus.drops.getCount()
            self._job.lost(dropped - self._dropped)
            self._dropped = dropped
            latest, self._latest = self._latest, 0.0
        return latest

    def close(self) -> None:
        """As `EventSource.close`. The server for callbacks stays, for it may have other users by now."""
        if not self.ended:
            self._bus.settle(_PATIENCE_SECONDS)
        only = self._arrays.copyOf(self._registered, 1)
        self._method("removeListener").invoke(self._bus.java, only)
        self.collect()

    def _register(self, context: Spark) -> None:
        from pyspark.java_gateway import (  # noqa: PLC0415 - Connect's client has no gateway
            ensure_callback_server_started,
        )

        self._jvm = context._jvm  # noqa: SLF001 - PySpark has no public way
        self._gateway = context._gateway  # noqa: SLF001 - as above
        self._arrays = self._jvm.java.util.Arrays
        self._to_json = (
            self._jvm.org.apache.spark.util.JsonProtocol.sparkEventToJsonString
        )
        self._bus = ListenerBus(context)
        self._dropped = self._bus.drops.getCount()
        ensure_callback_server_started(self._gateway)
        arguments = self._jvm.java.util.ArrayList()
        arguments.add(self._listener())
        arguments.add(QUEUE)
        self._registered = arguments.toArray()
        self._method("addToQueue").invoke(self._bus.java, self._registered)

    def _method(self, name: str) -> Java:
        """
        A method of the bus by reflection, which takes its arguments from an array.

        py4j makes another proxy of a Python object each time it is passed, so that the bus would never find what it is to remove; an array of the
        JVM keeps the one it has.
        """
        methods = self._bus.java.getClass().getMethods()
        return next(each for each in methods if each.getName() == name)

    def _listener(self) -> object:
        """An object with all methods that the interface has in this version of Spark."""
        interface = self._jvm.java.lang.Class.forName(_INTERFACE)
        names = {str(each.getName()) for each in interface.getMethods()}
        body: dict[str, object] = dict.fromkeys(names, _ignore)
        for name in names & {"onOtherEvent", *map(_callback, self._wanted)}:
            body[name] = self._on_event
        body["onTaskStart"] = self._on_task_start
        body["onTaskEnd"] = self._on_task_end
        body["equals"] = _is_same  # the bus asks when it removes a listener
        body["Java"] = type("Java", (), {"implements": [_INTERFACE]})
        return type("Callbacks", (), body)()

    def _on_task_start(self, event: Java) -> None:
        self._guarded(
            event,
            lambda: (
                event.stageAttemptId() == 0 and event.taskInfo().attemptNumber() == 0
            ),
        )

    def _on_task_end(self, event: Java) -> None:
        self._guarded(event, lambda: event.taskInfo().successful())

    def _on_event(self, event: Java) -> None:
        self._guarded(event, lambda: False)

    def _guarded(self, event: Java, skip: Callable[[], bool]) -> None:
        """Nothing may go back to the bus but None: it would log it, with both stacks."""
        try:
            if str(event.getClass().getName()) not in self._wanted:
                return
            if skip():
                self._job.passed(1)
            else:
                self._deliver(event_of(self._to_json(event)))
        except Exception:  # noqa: BLE001 - as above
            self._job.lost(1)

    def _deliver(self, event: dict[str, Any] | None) -> None:
        if event is None:
            self._job.lost(1)
            return
        self._latest = max(self._latest, lateness(event, self._clock()))
        self._job.handle(event)
        self.ended = self.ended or event.get("Event") == _END


def _ignore(*_: object) -> None:
    """An event that nobody wants."""


def _is_same(listener: object, other: object) -> bool:
    return listener is other


def _callback(class_name: str) -> str:
    return "on" + class_name.rpartition(".")[2].removeprefix("SparkListener")
