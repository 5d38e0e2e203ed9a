"""Brings the events of a driver to its job, batch by batch."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable

from ...errors import SourceUnusable, brief
from ...foreign import Java, Spark
from ...job import EventSink
from ..bus import ListenerBus
from ..source import event_of, lateness
from .batches import Batches, EventBatch
from .counters import Counter
from .handles import Handles
from .listener import QueueingListener

_BATCH = 200
_PATIENCE_SECONDS = 5.0
_END = "SparkListenerApplicationEnd"


class PullSource:
    """
    The default source of a driver in classic mode.

    Args:
        context: the SparkContext.
        job: receives the events.
        wanted: JVM names of the classes of events to bring; one that this Spark does not have is left out.
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
        wanted: Iterable[str],
        capacity: int,
        thin: bool = True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._job = job
        self._clock = clock
        self._lock = threading.Lock()
        self.ended = False
        try:
            self._register(context, tuple(wanted), capacity, thin=thin)
        except Exception as error:  # py4j raises whatever the JVM throws
            raise SourceUnusable(self.name, brief(error)) from error

    def collect(self) -> float:
        """As `EventSource.collect`. No more than the queue can hold, so that it ends even when Spark is faster."""
        with self._lock:
            latest = 0.0
            for _ in range(1 + self._capacity // _BATCH):
                batch = self._batches.take()
                latest = max(latest, self._deliver(batch))
                if len(batch.texts) < _BATCH:
                    break
            return latest

    def close(self) -> None:
        """As `EventSource.close`; works after `spark.stop()`, too, when only the queue is left to be read."""
        if not self.ended:
            self._bus.settle(_PATIENCE_SECONDS)
        self._bus.remove(self._listener.java)
        self.collect()

    def _register(
        self, context: Spark, wanted: tuple[str, ...], capacity: int, *, thin: bool
    ) -> None:
        self._bus = ListenerBus(context)
        jvm = context._jvm  # noqa: SLF001 - PySpark has no public way
        handles = Handles(context._gateway)  # noqa: SLF001 - as above
        self._capacity = capacity
        self._listener = QueueingListener(
            handles,
            jvm,
            capacity=capacity,
            wanted=_classes(handles, jvm, wanted),
            thin=thin,
        )
        counters = (
            self._listener.skipped,
            self._listener.refused,
            Counter(handles, self._bus.drops),
        )
        self._batches = Batches(handles, jvm, self._listener.queue, counters, _BATCH)
        self._counts = self._batches.take().counts
        self._bus.add(self._listener.java)

    def _deliver(self, batch: EventBatch) -> float:
        """To the job; the events of a batch are parsed one by one, so that no more than one is held twice."""
        now = self._clock()
        latest = 0.0
        unreadable = 0
        for text in batch.texts:
            event = event_of(text)
            if event is None:
                unreadable += 1
                continue
            latest = max(latest, lateness(event, now))
            self.ended = self.ended or event.get("Event") == _END
            self._job.handle(event)
        self._count(batch.counts, unreadable)
        return latest

    def _count(self, counts: tuple[int, ...], unreadable: int) -> None:
        skipped, refused, dropped = (
            now - before for now, before in zip(counts, self._counts, strict=True)
        )
        self._counts = counts
        self._job.passed(skipped)
        self._job.lost(refused + dropped + unreadable)


def _classes(handles: Handles, jvm: Java, names: tuple[str, ...]) -> Java:
    """The classes of these names that there are, as a Java set."""
    classes = jvm.java.util.HashSet()
    for name in names:
        try:
            classes.add(handles.kind(name))
        except Exception:  # noqa: BLE001, S112 - Spark without SQL has no streaming events
            continue
    return classes
