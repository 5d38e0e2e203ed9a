"""Spark's listener bus, in a queue of our own."""

from __future__ import annotations

from contextlib import suppress

from ..foreign import Java, Spark

INTERFACE = "org.apache.spark.scheduler.SparkListenerInterface"
END = "SparkListenerApplicationEnd"
"""The last event."""
_PATIENCE_MS = 5_000
QUEUE = "quotascope"
"""
Name of the queue.

In a queue of its own, a listener has its own thread and its own losses, and cannot slow or starve those of others. Its
size can be set: ``spark.scheduler.listenerbus.eventqueue.quotascope.capacity``.
"""


class ListenerBus:
    """
    The bus of a SparkContext (Spark: `LiveListenerBus`).

    Its Scala-private methods are public in bytecode, alike in the versions of docs/guides/spark.md; what is
    missing in another raises when it is used.
    """

    def __init__(self, context: Spark) -> None:
        self._bus = context._jsc.sc().listenerBus()  # noqa: SLF001 - PySpark has no public way
        self.drops = self._bus.metrics().metricRegistry().counter(f"queue.{QUEUE}.numDroppedEvents")
        """
        Spark's own count of events that did not fit into the queue.

        Not reset when listeners are removed and added.
        """

    @property
    def java(self) -> Java:
        """The Java object."""
        return self._bus

    def add(self, listener: Java) -> None:
        """Register a Java listener in our queue."""
        self._bus.addToQueue(listener, QUEUE)

    def remove(self, listener: Java) -> None:
        """Remove a listener; Spark ends a queue without listeners, with its thread."""
        self._bus.removeListener(listener)

    def settle(self) -> None:
        """Wait until all events posted so far were delivered, for five seconds at most."""
        with suppress(Exception):  # a TimeoutException of Scala's, or no bus left to wait for
            self._bus.waitUntilEmpty(_PATIENCE_MS)
