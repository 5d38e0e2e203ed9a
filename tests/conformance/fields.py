"""Objects of a vectors file, read as arguments of functions, so that no key is overlooked; runners of steps."""

import inspect
import math
import operator
from collections.abc import Callable
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from quotascope.metrics.kafka.release import KafkaRelease


class Failure(Exception):
    """An expected failure, described by any text."""


class Unmet(Failure):
    """An answer of the engine that differs from the expected one."""


class Malformed(Failure):
    """The vector itself makes no sense: a missing or unknown key, a value of the wrong type, an unknown operation."""


COMMENTS = frozenset({"basis", "basis_exact", "note", "provenance", "source_test"})
"""Keys that say where a figure comes from and expect nothing."""
TOLERANCE = 1e-9
"""Absolute, where a vector gives none; 0 asks for the very same double."""

_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_NOUNS = {
    bool: "true or false",
    dict: "an object",
    float: "a number",
    int: "a whole number",
    list: "an array",
    str: "a text",
}

T = TypeVar("T")


def called(function: Callable[..., T], value: object) -> T:
    """
    Call a function with the keys of an object as its arguments, each read as it is annotated.

    Raises `Malformed` for a key that is missing, unknown or of another type.
    """
    given = {key: part for key, part in read(dict[str, object], value).items() if key not in COMMENTS}
    arguments: dict[str, object] = {}
    for name, (parameter, kind) in _parameters(function).items():
        if parameter.kind is parameter.VAR_KEYWORD:
            arguments |= given
            given = {}
        elif name in given:
            try:
                arguments[name] = read(kind, given.pop(name))
            except Malformed as malformed:
                raise Malformed(f"{name!r}: {malformed}") from None
        elif parameter.default is parameter.empty:
            raise Malformed(f"the key {name!r} is missing")
    refuse_unknown(given)
    return function(**arguments)


def _parameters(function: Callable[..., object]) -> dict[str, tuple[inspect.Parameter, Any]]:
    """The parameters that a call gives, each with its type."""
    plain = getattr(function, "__func__", function)
    parameters = _declared(plain)[0]
    return (
        parameters
        if plain is function
        else {name: parameter for name, parameter in parameters.items() if name != "self"}
    )


@cache
def _declared(function: Callable[..., object]) -> tuple[dict[str, tuple[inspect.Parameter, Any]], Any]:
    """Return the parameters of a function with their types, and the type of its result."""
    hints = get_type_hints(function, include_extras=True)
    parameters = inspect.signature(function).parameters
    return {name: (parameter, hints.get(name, object)) for name, parameter in parameters.items()}, hints["return"]


def refuse_unknown(keys: dict[str, object]) -> None:
    """Raise `Malformed` for keys that were not read."""
    if keys:
        raise Malformed(f"unknown keys: {', '.join(map(repr, sorted(keys)))}")


def read(kind: Any, value: object) -> Any:  # noqa: PLR0911 - one for each kind
    """
    Return the value as a type: one of JSON's, an enumeration's member by its name, or `Annotated` with its reader.

    A number may be the text NaN, Infinity or -Infinity. Raises `Malformed`.
    """
    origin, parts = get_origin(kind) or kind, get_args(kind)
    if kind is object:
        return value
    if origin is Annotated:
        return parts[1](value)
    if origin in (Union, UnionType):
        return None if value is None else read(parts[0], value)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _member(kind, read(str, value))
    if origin is float:
        return float(number(value))
    if origin is int and isinstance(value, float) and value.is_integer():
        return int(value)
    if not isinstance(value, origin) or (isinstance(value, bool) and origin is not bool):
        raise _unlike(origin, value)
    return _inside(parts, value)


def _inside(parts: tuple[Any, ...], value: object) -> object:
    match value:
        case list():
            return [read(parts[0], item) for item in value]
        case dict():
            return {key: read(parts[1], item) for key, item in value.items()}
        case _:
            return value


def _member(kind: type[Enum], name: str) -> Enum:
    if name not in kind.__members__:
        raise Malformed(f"{name!r:.60} is none of {', '.join(kind.__members__)}")
    return kind[name]


def number(value: object) -> float:
    """Return the value as a number; an integer keeps all its digits."""
    if isinstance(value, str) and value in _NOT_FINITE:
        return _NOT_FINITE[value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _unlike(float, value)
    return value


def _unlike(kind: type, value: object) -> Malformed:
    return Malformed(f"{_NOUNS[kind]} was expected, not {value!r:.60}")


class Answers(dict[str, object]):
    """The answers of a step by their keys, where there is more than one."""


class Runner:
    """
    A runner of one vector's steps.

    A kind is a subclass: the arguments of `_begin` are the keys of its config, and each operation is a method named
    `_op_<operation>` whose arguments are the keys of its step. The result of such a method is compared with what the
    step expects.
    """

    def __init__(self, release: KafkaRelease, origin_ms: int) -> None:
        self._release = release
        self._origin_ms = self._now_ms = origin_ms

    def begin(self, config: dict[str, object]) -> None:
        called(getattr(self, "_begin", _nothing), config)

    def run(self, step: dict[str, object]) -> None:
        if "op" not in step:
            raise Malformed("the key 'op' is missing")
        operation = read(str, step["op"])
        method = getattr(self, f"_op_{operation}", None)
        if method is None:
            raise Malformed(f"unknown operation {operation!r:.60}")
        if "at_ms" in step:
            self._now_ms = self._origin_ms + read(int, step["at_ms"])
        arguments = {key: value for key, value in step.items() if key not in ("op", "at_ms")}
        expected = {
            key: arguments.pop(key)
            for key in list(arguments)
            if key.startswith(("expect", "tol")) and key not in _parameters(method)
        }
        answer = called(method, arguments)
        if _declared(method.__func__)[1] is NoneType:
            refuse_unknown(expected)
        else:
            _compare(answer if isinstance(answer, Answers) else {"expect": answer}, expected)


def _nothing() -> None:
    """Return the first value of a kind without a config."""


def _compare(answers: dict[str, object], expected: dict[str, object]) -> None:
    """Raise `Unmet` unless the answers equal the expected values or lie within their limits."""
    left = dict(expected)
    tolerance = number(left.pop("tol", TOLERANCE))
    for key, actual in answers.items():
        for limit, met in ((f"{key}_min", operator.le), (f"{key}_max", operator.ge)):
            if limit in left and not met(number(left.pop(limit)), number(actual)):
                raise Unmet(f"{limit} {expected[limit]!r}, got {actual!r}")
        if key in left and not is_same(left.pop(key), actual, tolerance):
            raise Unmet(f"{key} {expected[key]!r} within {tolerance!r}, got {actual!r}")
    refuse_unknown(left)


def is_same(expected: object, actual: object, tolerance: float = TOLERANCE) -> bool:
    """
    Return whether an answer is the expected one; NaN equals NaN.

    Raises `Malformed` for an expectation of another type.
    """
    if isinstance(actual, bool | str):
        return bool(read(type(actual), expected) == actual)
    if not isinstance(actual, int | float) or expected is None:
        return expected == actual
    wanted = number(expected)
    if math.isnan(wanted) or math.isnan(actual):
        return math.isnan(wanted) and math.isnan(actual)
    return wanted == actual or abs(wanted - actual) <= tolerance
