"""Counters in the JVM."""

from __future__ import annotations

from ...foreign import Java
from .handles import LONG, OBJECT, STRING, VOID, Handles

_COUNTER = "com.codahale.metrics.Counter"


class Counter:
    """
    One of Spark's own metrics library, counted up by any thread of the JVM and never by Python.

    JDK classes would do, but py4j makes numbers of Python of them.
    """

    def __init__(self, handles: Handles, java: Java | None = None) -> None:
        self._handles = handles
        self.java = handles.kind(_COUNTER).newInstance() if java is None else java

    def up(self) -> Java:
        """``(Object) -> void``: one more."""
        increase = self._handles.method(_COUNTER, "inc", VOID).bindTo(self.java)
        return self._handles.ignoring(increase, OBJECT)

    def text(self) -> Java:
        """``() -> String``: the count so far."""
        count = self._handles.method(_COUNTER, "getCount", LONG).bindTo(self.java)
        return self._handles.of(
            self._handles.static("java.lang.Long", "toString", STRING, LONG), count
        )
