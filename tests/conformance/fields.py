"""Objects of a vectors file, read key by key so that nothing in them is overlooked, and the runners of their steps."""

import math
from collections.abc import Callable
from typing import TypeVar

from quotascope.metrics import KafkaRelease


class Failure(Exception):
    """Any reason, in words."""


class Unmet(Failure):
    """The engine answered something else than expected."""


class Malformed(Failure):
    """The vector itself makes no sense: a missing or unknown key, a value of the wrong type, an unknown operation."""


COMMENTS = frozenset({"basis", "basis_exact", "note", "provenance", "source_test"})
"""Keys that say where a figure comes from and expect nothing."""

_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_REQUIRED = object()

T = TypeVar("T")


class Fields:
    """One object; `done` fails for keys that no one asked for."""

    def __init__(self, value: object) -> None:
        if not isinstance(value, dict):
            raise Malformed(f"an object was expected, not {value!r:.60}")
        self._values: dict[str, object] = value
        self._read: set[str] = set(COMMENTS)

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def raw(self, key: str, default: object = _REQUIRED) -> object:
        """Any value. Raises `Malformed` when it is missing and there is no default."""
        self._read.add(key)
        value = self._values.get(key, default)
        if value is _REQUIRED:
            raise Malformed(f"the key {key!r} is missing")
        return value

    def text(self, key: str, default: object = _REQUIRED) -> str:
        """A text."""
        return self._typed(key, default, as_text)

    def optional_text(self, key: str) -> str | None:
        """A text or null; the key must be there."""
        value = self.raw(key)
        return None if value is None else self._typed(key, value, as_text)

    def number(self, key: str, default: object = _REQUIRED) -> float:
        """A number, which may be the text NaN, Infinity or -Infinity."""
        return self._typed(key, default, as_number)

    def integer(self, key: str, default: object = _REQUIRED) -> int:
        """A whole number."""
        return self._typed(key, default, as_integer)

    def flag(self, key: str, default: object = _REQUIRED) -> bool:
        """True or false."""
        return self._typed(key, default, as_flag)

    def fields(self, key: str, default: object = _REQUIRED) -> "Fields":
        """An object inside this one; its own `done` is the caller's business."""
        return self._typed(key, default, Fields)

    def several(self, key: str, read: Callable[[object], T], default: object = _REQUIRED) -> list[T]:
        """An array whose every element is read by `read`."""
        value = self.raw(key, default)
        if not isinstance(value, list | tuple):
            raise Malformed(f"{key!r} should be an array, not {value!r:.60}")
        return [read(each) for each in value]

    def done(self) -> None:
        """Raise `Malformed` for keys that were not read."""
        unknown = sorted(set(self._values) - self._read)
        if unknown:
            raise Malformed(f"unknown keys: {', '.join(map(repr, unknown))}")

    def _typed(self, key: str, default: object, read: Callable[[object], T]) -> T:
        value = self.raw(key, default)
        try:
            return read(value)
        except Malformed as malformed:
            raise Malformed(f"{key!r}: {malformed}") from None


def as_text(value: object) -> str:
    """The value as a text."""
    if not isinstance(value, str):
        raise Malformed(f"a text was expected, not {value!r:.60}")
    return value


def as_number(value: object) -> float:
    """The value as a number; an integer stays one, so that it keeps all its digits."""
    if isinstance(value, str) and value in _NOT_FINITE:
        return _NOT_FINITE[value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Malformed(f"a number was expected, not {value!r:.60}")
    return value


def as_integer(value: object) -> int:
    """The value as a whole number."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise Malformed(f"a whole number was expected, not {value!r:.60}")
    return value


def as_flag(value: object) -> bool:
    """The value as a truth value."""
    if not isinstance(value, bool):
        raise Malformed(f"true or false was expected, not {value!r:.60}")
    return value


class Runner:
    """
    Runs the steps of one vector.

    A kind is a subclass: its constructor reads what it needs of the config, and each operation is a method named
    `op_<operation>` that reads all of its step. Times are epoch ms: `clock_origin_ms` of the config plus `at_ms` of the step,
    which is the last one's when it is left out.
    """

    def __init__(self, config: Fields, release: KafkaRelease) -> None:
        self._release = release
        self._origin_ms = config.integer("clock_origin_ms", 0)
        self._at_ms = 0

    def now_ms(self, step: Fields) -> int:
        """The time of a step."""
        self._at_ms = step.integer("at_ms", self._at_ms)
        return self._origin_ms + self._at_ms

    def run(self, step: Fields) -> None:
        """Run one step. Raises `Failure`."""
        operation = step.text("op")
        method = getattr(self, f"op_{operation}", None)
        if method is None:
            raise Malformed(f"unknown operation {operation!r:.60}")
        self.now_ms(step)
        method(step)
        step.done()
