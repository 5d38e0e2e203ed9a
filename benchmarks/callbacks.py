"""A Spark listener as PySpark programs write it: a Python object that the JVM calls for each event."""

from typing import Any

from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

INTERFACE = "org.apache.spark.scheduler.SparkListenerInterface"
QUEUE = "callbacks"


class Callbacks:
    """Counts the attempts and failures of each stage."""

    def __init__(self, spark: SparkSession) -> None:
        context: Any = spark.sparkContext
        ensure_callback_server_started(context._gateway)  # noqa: SLF001 - PySpark has no public way
        self.task_ends = 0
        self.failures: dict[int, int] = {}
        self.retries: dict[int, int] = {}
        jvm = context._jvm  # noqa: SLF001 - as above
        self._bus = context._jsc.sc().listenerBus()  # noqa: SLF001 - as above
        methods = jvm.java.lang.Class.forName(INTERFACE).getMethods()
        body: dict[str, Any] = dict.fromkeys((method.getName() for method in methods), _ignore)
        body["onTaskEnd"] = self._on_task_end
        body["equals"] = _is_same  # the bus asks when it removes a listener
        body["Java"] = type("Java", (), {"implements": [INTERFACE]})
        # by reflection, since py4j makes a new proxy each time an object is passed, which could not be removed again
        arguments = jvm.java.util.ArrayList()
        arguments.add(type("Listener", (), body)())
        arguments.add(QUEUE)
        self._arguments = arguments.toArray()
        self._arrays = jvm.java.util.Arrays
        self._invoke("addToQueue", self._arguments)

    def remove(self) -> None:
        """Take it off the bus."""
        self._invoke("removeListener", self._arrays.copyOf(self._arguments, 1))

    def _invoke(self, name: str, arguments: Any) -> None:  # noqa: ANN401 - the JVM's
        methods = self._bus.getClass().getMethods()
        method = next(candidate for candidate in methods if candidate.getName() == name)
        method.invoke(self._bus, arguments)

    def _on_task_end(self, event: Any) -> None:  # noqa: ANN401 - the JVM's
        self.task_ends += 1
        info = event.taskInfo()
        stage = event.stageId()
        if info.attemptNumber() > 0:
            self.retries[stage] = self.retries.get(stage, 0) + 1
        if info.failed():
            self.failures[stage] = self.failures.get(stage, 0) + 1
            event.reason().toString()


def _ignore(*_: object) -> None:
    """Ignore an event that is not counted."""


def _is_same(listener: object, other: object) -> bool:
    return listener is other
