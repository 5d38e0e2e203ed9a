"""
Source that reads a driver's events through a bounded queue in its JVM.

The queue is a listener in Java (`EventQueue`), which is loaded into the running driver. Python takes its events in
batches, when it has time: a driver that is busy, or dies, costs the JVM nothing.
"""

from __future__ import annotations

import operator
import threading
import time
from collections.abc import Callable, Iterable
from functools import lru_cache

from ..errors import SourceUnusable, brief
from ..event_log import event_of
from ..events import may_end_attempt
from ..foreign import Java, Spark
from ..job import EventSink
from ..jvm import JAR
from .bus import END, INTERFACE, ListenerBus
from .source import lateness

_QUEUE = "io.quotascope.spark.EventQueue"
_BATCH = 200


class PullSource:
    """
    The default source of a driver in classic mode.

    Args:
        context: the SparkContext.
        job: receives the events.
        event_names: JVM names of the classes of events to bring.
        capacity: events that wait in the JVM at most; 5 kB of its heap each, more for long messages.
        thin: leave out successful tasks and first starts of tasks, but count them.

    Raises:
        SourceUnusable: py4j is forbidden, or something of the JVM or of Spark is not as in the versions we know.

    """

    name = "pull"

    def __init__(
        self,
        context: Spark,
        job: EventSink,
        *,
        event_names: Iterable[str],
        capacity: int,
        thin: bool = True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._job = job
        self._capacity = capacity
        self._clock = clock
        self._lock = threading.Lock()
        self.ended = False
        try:
            self._bus = ListenerBus(context)
            gateway = context._gateway  # noqa: SLF001 - PySpark has no public way
            self._queue = _event_queue(gateway, capacity, event_names, successes=not thin)
            self._counts = (0, 0, self._bus.drops.getCount())
            """Events until the last fetch that the queue left out, that it had no room for, and that Spark dropped."""
            self._bus.add(self._queue)
        except Exception as error:  # py4j raises whatever the JVM throws
            raise SourceUnusable(self.name, brief(error)) from error

    def collect(self) -> float:
        """Fetch the queued events, no more than the queue can hold, so that the call ends even when Spark is faster."""
        with self._lock:
            latest = 0.0
            for _ in range(1 + self._capacity // _BATCH):
                # a line for each event, and then the numbers of events that were left out and that had no room
                *events, skipped, refused = self._queue.take(_BATCH).split("\n")
                now = self._clock()
                for text in events:  # parsed one by one, so that at most one event is held twice
                    event = event_of(text)
                    if event is None:
                        self._job.lost(1, ends=may_end_attempt(text.encode()))
                        continue
                    latest = max(latest, lateness(event, now))
                    self.ended = self.ended or event.get("Event") == END
                    self._job.handle(event)
                self._count(int(skipped), int(refused))
                if len(events) < _BATCH:
                    break
            return latest

    def close(self) -> None:
        """
        Fetch the last events, and detach.

        Works after `spark.stop()`, too, when only the queue is left to be read.
        """
        if not self.ended:
            self._bus.settle()
        self._bus.remove(self._queue)
        self.collect()

    def _count(self, skipped: int, refused: int) -> None:
        """Count the events that were left out and lost since the last fetch, from the counts so far."""
        counts_before = self._counts
        self._counts = (skipped, refused, self._bus.drops.getCount())
        passed, newly_refused, newly_dropped = map(operator.sub, self._counts, counts_before)
        self._job.passed(passed)
        self._job.lost(newly_refused + newly_dropped)


def _event_queue(gateway: Java, capacity: int, event_names: Iterable[str], *, successes: bool) -> Java:
    """Return a new `EventQueue`."""
    names = gateway.jvm.java.util.HashSet()
    for name in event_names:
        names.add(name)
    arguments = gateway.new_array(gateway.jvm.java.lang.Object, 3)
    for place, value in enumerate((capacity, names, successes)):
        arguments[place] = value
    kind = _loader(gateway).loadClass(_QUEUE)
    return kind.getConstructors()[0].newInstance(arguments)


@lru_cache(maxsize=1)
def _loader(gateway: Java) -> Java:
    """
    Load our jar beside Spark's classes; it need not be on the driver's class path.

    There is one loader for all listeners, because py4j remembers methods by the names of classes, and takes a class of
    another loader for the same.
    """
    urls = gateway.new_array(gateway.jvm.java.net.URL, 1)
    urls[0] = gateway.jvm.java.io.File(str(JAR)).toURI().toURL()
    spark = gateway.jvm.java.lang.Class.forName(INTERFACE).getClassLoader()
    return gateway.jvm.java.net.URLClassLoader(urls, spark)
