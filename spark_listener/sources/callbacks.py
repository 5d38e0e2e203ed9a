"""The events of a driver by callbacks from its JVM into Python."""

from __future__ import annotations

import operator
import threading
import time
from collections.abc import Callable, Iterable

from ..errors import SourceUnusable, brief
from ..event_log import event_of
from ..foreign import Java, Spark
from ..job import EventSink
from .bus import END, INTERFACE, QUEUE, ListenerBus
from .source import lateness


class CallbackSource:
    """
    Source for drivers whose events cannot be queued in the JVM.

    Every event of the job waits for Python once, on the thread of its own queue of the bus; successful tasks and first
    starts are counted there, and only of the rest is JSON asked for. A driver that is busy with Python can lose events,
    which Spark counts, and we with it.

    Raises:
        SourceUnusable: py4j is forbidden, or Spark does not turn events to JSON as the versions we know do.

    """

    name = "callbacks"

    def __init__(
        self, context: Spark, job: EventSink, *, event_names: Iterable[str], clock: Callable[[], float] = time.time
    ) -> None:
        self._job = job
        self._clock = clock
        self._event_names = frozenset(event_names)
        self._lock = threading.Lock()
        self._latest = 0.0
        self._dropped = 0
        self.ended = False
        try:
            self._register(context)
        except Exception as error:  # py4j raises whatever the JVM throws
            raise SourceUnusable(self.name, brief(error)) from error

    def collect(self) -> float:
        """Count what Spark dropped since the last call, and return the delay of events, which came by themselves."""
        with self._lock:
            dropped = self._bus.drops.getCount()
            self._job.lost(dropped - self._dropped)
            self._dropped = dropped
            latest, self._latest = self._latest, 0.0
        return latest

    def close(self) -> None:
        """Close the source. The server for callbacks stays, for it may have other users by now."""
        if not self.ended:
            self._bus.settle()
        only = self._arrays.copyOf(self._registered, 1)
        self._method("removeListener").invoke(self._bus.java, only)
        self.collect()

    def _register(self, context: Spark) -> None:
        """Start the server for callbacks, and add a Python object to the bus as a listener."""
        from pyspark.java_gateway import (  # noqa: PLC0415 - Connect's client has no gateway
            ensure_callback_server_started,
        )

        self._jvm = context._jvm  # noqa: SLF001 - PySpark has no public way
        self._gateway = context._gateway  # noqa: SLF001 - as above
        self._arrays = self._jvm.java.util.Arrays
        self._to_json = self._jvm.org.apache.spark.util.JsonProtocol.sparkEventToJsonString
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
        Return a method of the bus by reflection, which takes its arguments from an array.

        py4j makes another proxy of a Python object each time it is passed, so that the bus would never find what it is
        to remove; an array of the JVM keeps the one it has.
        """
        methods = self._bus.java.getClass().getMethods()
        return next(method for method in methods if method.getName() == name)

    def _listener(self) -> object:
        """
        Return an object with all methods that the interface has in this version of Spark.

        Events are handled by their class.
        """
        interface = self._jvm.java.lang.Class.forName(INTERFACE)
        body: dict[str, object] = {str(method.getName()): lambda *_: None for method in interface.getMethods()}
        for name in self._event_names:
            method = "on" + name.rpartition(".")[2].removeprefix("SparkListener")
            if method in body:
                body[method] = self._on_event
        if "onOtherEvent" in body:
            body["onOtherEvent"] = self._on_event
        body["equals"] = operator.is_  # the bus compares when it removes a listener
        body["Java"] = type("Java", (), {"implements": [INTERFACE]})
        return type("Callbacks", (), body)()

    def _on_event(self, event: Java) -> None:
        """Handle one event. Raise nothing and return None: the bus would log anything else, with both stacks."""
        try:
            name = str(event.getClass().getName())
            if name not in self._event_names:
                return
            if _is_left_out(name, event):
                self._job.passed(1)
                return
            parsed = event_of(self._to_json(event))
            if parsed is None:
                self._job.lost(1)
                return
            self._latest = max(self._latest, lateness(parsed, self._clock()))
            self._job.handle(parsed)
            self.ended = self.ended or parsed.get("Event") == END
        except Exception:  # noqa: BLE001 - as above
            self._job.lost(1)


def _is_left_out(name: str, event: Java) -> bool:
    """Return whether an event is a successful task, or the first start of a task in the first attempt of its stage."""
    if name.endswith("SparkListenerTaskEnd"):
        # not by TaskInfo: if output was lost with an executor (Resubmitted), it still is that of the successful attempt
        return bool(event.reason().productPrefix() == "Success")
    if name.endswith("SparkListenerTaskStart"):
        first_stage_attempt: bool = event.stageAttemptId() == 0
        return first_stage_attempt and bool(event.taskInfo().attemptNumber() == 0)
    return False
