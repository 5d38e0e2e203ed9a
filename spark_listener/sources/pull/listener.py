"""A listener in the JVM that keeps what is worth it in a bounded queue."""

from __future__ import annotations

from ...foreign import Java
from .counters import Counter
from .handles import BOOLEAN, CLASS, INT, OBJECT, OBJECTS, STRING, VOID, Handles

_SCHEDULER = "org.apache.spark.scheduler"
_INTERFACE = f"{_SCHEDULER}.SparkListenerInterface"
_TASK_END = f"{_SCHEDULER}.SparkListenerTaskEnd"
_TASK_START = f"{_SCHEDULER}.SparkListenerTaskStart"
_METHOD = "java.lang.reflect.Method"
_QUEUE = "java.util.concurrent.LinkedBlockingQueue"


class QueueingListener:
    """
    A `SparkListenerInterface` made of method handles.

    For each event, on the thread of the bus: an unwanted one is ignored; a task that succeeded and the first start of a task in the first attempt at its stage are counted
    and left out, when `thin`; the rest is offered to the queue, and counted as refused when that is full. It never waits and never throws.
    """

    def __init__(
        self, handles: Handles, jvm: Java, *, capacity: int, wanted: Java, thin: bool
    ) -> None:
        self._handles = handles
        self.queue = jvm.java.util.concurrent.LinkedBlockingQueue(capacity)
        self.skipped = Counter(handles)
        self.refused = Counter(handles)
        loader = handles.kind(_INTERFACE).getClassLoader()
        interfaces = handles.array(jvm.java.lang.Class, handles.kind(_INTERFACE))
        handler = self._handler(jvm, self._on_event(wanted, thin=thin))
        self.java = jvm.java.lang.reflect.Proxy.newProxyInstance(
            loader, interfaces, handler
        )

    def _handler(self, jvm: Java, on_event: Java) -> Java:
        """What `Proxy` calls with itself, the method and its arguments: of the interface, always one event."""
        make = self._handles
        event = make.cast(make.of(on_event, make.item(0)), OBJECT, OBJECTS)
        event = make.ignoring(event, OBJECT, _METHOD)
        declared_by = make.method(_METHOD, "getDeclaringClass", CLASS)
        same = make.method(OBJECT, "equals", BOOLEAN, OBJECT)
        same = make.cast(same.bindTo(make.kind(_INTERFACE)), BOOLEAN, CLASS)
        of_interface = make.ignoring(make.of(same, declared_by), OBJECT)
        handler = make.either(of_interface, event, self._as_object(jvm))
        return make.interface("java.lang.reflect.InvocationHandler", handler)

    def _as_object(self, jvm: Java) -> Java:
        """Answers hashCode, toString and equals by name; the bus compares listeners by identity before it asks."""
        make = self._handles
        answers = jvm.java.util.HashMap()
        for name, answer in {
            "hashCode": 1,
            "toString": "quotascope",
            "equals": False,
        }.items():
            answers.put(name, answer)
        answer = make.method("java.util.HashMap", "get", OBJECT, OBJECT).bindTo(answers)
        name = make.method(_METHOD, "getName", STRING)
        by_name = make.of(make.cast(answer, OBJECT, STRING), name)
        return make.ignoring(make.ignoring(by_name, OBJECT), OBJECTS, position=2)

    def _on_event(self, wanted: Java, *, thin: bool) -> Java:
        """``(Object) -> void``."""
        make = self._handles
        nothing = make.ignoring(make.cast(make.constant(OBJECT, None), VOID), OBJECT)
        offer = make.method(_QUEUE, "offer", BOOLEAN, OBJECT).bindTo(self.queue)
        keep = make.either(offer, nothing, self.refused.up())
        if thin:
            for skip in (self._succeeded(), self._started_first()):
                keep = make.either(skip, self.skipped.up(), keep)
        guarded = make.guarded(
            keep, make.ignoring(self.refused.up(), "java.lang.Throwable")
        )
        return make.either(self._is_wanted(wanted), guarded, nothing)

    def _is_wanted(self, wanted: Java) -> Java:
        make = self._handles
        contains = make.method("java.util.HashSet", "contains", BOOLEAN, OBJECT)
        contains = make.cast(contains.bindTo(wanted), BOOLEAN, CLASS)
        kind = make.cast(make.method(OBJECT, "getClass", CLASS), CLASS, OBJECT)
        return make.of(contains, kind)

    def _succeeded(self) -> Java:
        make = self._handles
        reason = make.method(_TASK_END, "reason", "org.apache.spark.TaskEndReason")
        reason = make.cast(reason, OBJECT, OBJECT)
        success = make.of(make.is_a("org.apache.spark.Success$"), reason)
        return make.either(make.is_a(_TASK_END), success, self._never())

    def _started_first(self) -> Java:
        """The first start of a task in the first attempt at its stage."""
        make = self._handles
        info = make.method(_TASK_START, "taskInfo", f"{_SCHEDULER}.TaskInfo")
        attempt = make.method(f"{_SCHEDULER}.TaskInfo", "attemptNumber", INT)
        stage_attempt = make.method(_TASK_START, "stageAttemptId", INT)
        first = self._is_zero(make.of(attempt, info))
        for test in (self._is_zero(stage_attempt), make.is_a(_TASK_START)):
            first = make.either(test, first, self._never())
        return first

    def _is_zero(self, number: Java) -> Java:
        make = self._handles
        same = make.static("java.util.Objects", "equals", BOOLEAN, OBJECT, OBJECT)
        return make.of(make.bind(same, 0, 0), make.cast(number, OBJECT, OBJECT))

    def _never(self) -> Java:
        return self._handles.ignoring(
            self._handles.constant(BOOLEAN, value=False), OBJECT
        )
