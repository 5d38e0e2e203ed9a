"""Functions for the JVM, put together from Python without a jar."""

from __future__ import annotations

from typing import Any

from ...foreign import Java

BOOLEAN = "boolean"
INT = "int"
LONG = "long"
VOID = "void"
OBJECT = "java.lang.Object"
STRING = "java.lang.String"
CLASS = "java.lang.Class"
THROWABLE = "java.lang.Throwable"
OBJECTS = "[Ljava.lang.Object;"
_PRIMITIVES = {BOOLEAN: "Boolean", INT: "Integer", LONG: "Long", VOID: "Void"}


class Handles:
    """
    Makes method handles (`java.lang.invoke`) by py4j: the JVM then runs them without Python.

    Classes are named as `Class.forName` wants them. Everything raises py4j's errors, such as for a method that this Spark does not have.
    """

    def __init__(self, gateway: Java) -> None:
        self._gateway = gateway
        self._lang = gateway.jvm.java.lang
        self._make = self._lang.invoke.MethodHandles
        self._lookup = self._make.publicLookup()
        self._classes: dict[str, Any] = {}

    def kind(self, name: str) -> Java:
        """The class of that name."""
        if name not in self._classes:
            primitive = _PRIMITIVES.get(name)
            self._classes[name] = (
                getattr(self._lang, primitive).TYPE
                if primitive
                else self._lang.Class.forName(name)
            )
        return self._classes[name]

    def array(self, kind: Java, *values: Java) -> Java:
        """A Java array."""
        array = self._gateway.new_array(kind, len(values))
        for index, value in enumerate(values):
            array[index] = value
        return array

    def constructor(self, owner: str) -> Java:
        """``() -> owner``: its constructor without arguments."""
        return self._lookup.findConstructor(self.kind(owner), self._type(VOID))

    def method(self, owner: str, name: str, returns: str, *takes: str) -> Java:
        """``(owner, takes…) -> returns``."""
        return self._lookup.findVirtual(
            self.kind(owner), name, self._type(returns, *takes)
        )

    def static(self, owner: str, name: str, returns: str, *takes: str) -> Java:
        """``(takes…) -> returns``."""
        return self._lookup.findStatic(
            self.kind(owner), name, self._type(returns, *takes)
        )

    def constant(self, kind: str, value: Java) -> Java:
        """``() -> kind``."""
        return self._make.constant(self.kind(kind), value)

    def cast(self, handle: Java, returns: str, *takes: str) -> Java:
        """The same with other types, boxed or cast when it runs; a result can be dropped by `VOID`."""
        return handle.asType(self._type(returns, *takes))

    def bind(self, handle: Java, position: int, value: Java) -> Java:
        """The same with one argument fixed; numbers and objects alike."""
        return self._make.insertArguments(
            handle, position, self.array(self._lang.Object, value)
        )

    def ignoring(self, handle: Java, *takes: str, position: int = 0) -> Java:
        """The same with more arguments, which it does not look at."""
        kinds = self.array(self._lang.Class, *map(self.kind, takes))
        return self._make.dropArguments(handle, position, kinds)

    def of(self, outer: Java, inner: Java, position: int = 0) -> Java:
        """``outer(…, inner(…), …)``: the argument at this position is what `inner` makes of its own."""
        return self._make.collectArguments(outer, position, inner)

    def either(self, test: Java, then: Java, otherwise: Java) -> Java:
        """``then`` where the test says so, else ``otherwise``; all take the same arguments, the test perhaps fewer."""
        return self._make.guardWithTest(test, then, otherwise)

    def before(self, first: Java, handle: Java) -> Java:
        """`handle` after `first`, which takes the same leading arguments and gives nothing."""
        return self._make.foldArguments(handle, first)

    def guarded(self, handle: Java, fallback: Java) -> Java:
        """`handle`, or what `fallback` gives when anything is thrown; it takes the `Throwable`."""
        return self._make.catchException(handle, self.kind(THROWABLE), fallback)

    def item(self, index: int) -> Java:
        """``(Object[]) -> Object``."""
        return self.bind(self._make.arrayElementGetter(self.kind(OBJECTS)), 1, index)

    def is_a(self, name: str) -> Java:
        """``(Object) -> boolean``: whether it is of this class."""
        return self.method(CLASS, "isInstance", BOOLEAN, OBJECT).bindTo(self.kind(name))

    def interface(self, name: str, handle: Java) -> Java:
        """An object of this interface of one method, which calls the handle."""
        return self._lang.invoke.MethodHandleProxies.asInterfaceInstance(
            self.kind(name), handle
        )

    def _type(self, returns: str, *takes: str) -> Java:
        kinds = self.array(self._lang.Class, *map(self.kind, takes))
        return self._lang.invoke.MethodType.methodType(self.kind(returns), kinds)
