"""Takes events out of a queue in the JVM, many in one round trip, as JSON."""

from __future__ import annotations

from dataclasses import dataclass

from ...foreign import Java
from .counters import Counter
from .handles import BOOLEAN, INT, OBJECT, STRING, VOID, Handles

_LIST = "java.util.ArrayList"
_QUEUE = "java.util.concurrent.LinkedBlockingQueue"
_EVENT = "org.apache.spark.scheduler.SparkListenerEvent"
TO_JSON = "sparkEventToJsonString"
"""A method of JsonProtocol, private in Scala but not in bytecode."""
_LONGEST = 1_000_000
"""Characters of JSON: a task that fails with a text as long as this is not worth what it costs to bring it here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventBatch:
    """What one round trip brought."""

    texts: tuple[str, ...]
    """One JSON object each; empty for an event of which Spark made none, or too long a one."""
    counts: tuple[int, ...]
    """Of the counters, in their order, at a moment after the events were taken."""


class Batches:
    """
    One function of the JVM: new list, drain the queue into it, each event to JSON, add the counters, join the lines.

    Args:
        most: events of one batch.

    """

    def __init__(
        self,
        handles: Handles,
        jvm: Java,
        queue: Java,
        counters: tuple[Counter, ...],
        most: int,
    ) -> None:
        self._handles = handles
        self._counters = counters
        self.most = most
        self._nothing = jvm.java.util.ArrayList()
        self._take = self._composed(queue)

    def take(self) -> EventBatch:
        """The oldest events that are there."""
        text: str = self._take.invokeWithArguments(self._nothing)
        lines = text.split("\n")
        events = len(lines) - len(self._counters)
        return EventBatch(
            texts=tuple(lines[:events]), counts=tuple(map(int, lines[events:]))
        )

    def _composed(self, queue: Java) -> Java:
        make = self._handles
        join = make.static(
            STRING, "join", STRING, "java.lang.CharSequence", "java.lang.Iterable"
        )
        text = make.cast(make.bind(join, 0, "\n"), STRING, _LIST)
        for counter in reversed(self._counters):
            text = make.before(self._add(counter), text)
        text = make.before(self._to_json(), text)
        text = make.before(self._drain(queue), text)
        return make.of(text, make.constructor(_LIST))

    def _drain(self, queue: Java) -> Java:
        make = self._handles
        drain = make.method(_QUEUE, "drainTo", INT, "java.util.Collection", INT)
        return make.cast(make.bind(drain.bindTo(queue), 1, self.most), VOID, _LIST)

    def _to_json(self) -> Java:
        make = self._handles
        convert = make.static(
            "org.apache.spark.util.JsonProtocol", TO_JSON, STRING, _EVENT
        )
        empty = make.constant(STRING, "")
        bounded = make.of(
            self._unless_longer(empty), make.cast(convert, STRING, OBJECT)
        )
        either = make.guarded(bounded, make.ignoring(empty, "java.lang.Throwable"))
        operator = make.interface("java.util.function.UnaryOperator", either)
        replace = make.method(
            _LIST, "replaceAll", VOID, "java.util.function.UnaryOperator"
        )
        return make.bind(replace, 1, operator)

    def _unless_longer(self, empty: Java) -> Java:
        """``(String) -> String``. Method handles cannot compare numbers, but no string has a beginning behind its end."""
        make = self._handles
        begins = make.method(STRING, "startsWith", BOOLEAN, STRING, INT)
        longer = make.bind(make.bind(begins, 2, _LONGEST), 1, "")
        same = make.method(STRING, "toString", STRING)
        return make.either(longer, make.ignoring(empty, STRING), same)

    def _add(self, counter: Counter) -> Java:
        make = self._handles
        add = make.cast(make.method(_LIST, "add", BOOLEAN, OBJECT), VOID, _LIST, STRING)
        return make.of(add, counter.text(), position=1)
