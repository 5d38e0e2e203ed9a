"""Where random decisions come from: Hypothesis, which can shrink them, or a seeded generator, which is sixty times faster."""

import math
import random
import struct
from collections.abc import Sequence
from functools import cache
from typing import Protocol, TypeVar

from hypothesis import strategies as st

HOSTILE = (
    "",
    "<default>",
    "a b",
    "a+b",
    "a%20b",
    "CN=app,O=Org",
    'q"uo\\te',
    "x:y*z?",
    "näme",
    "\n",
    "\t",
    "\0",
    "👩‍💻",
    "~!'()",
)
"""Names that need sanitizing, quoting or care."""


T = TypeVar("T")


class Choice(Protocol):
    """A source of decisions."""

    def of(self, options: Sequence[T]) -> T:
        """Take one of the options; the first is the simplest."""

    def integer(self, low: int, high: int) -> int:
        """Take an integer, both ends included."""

    def real(self) -> float:
        """Take any finite double."""

    def text(self) -> str:
        """Take any text that UTF-8 can carry: Kafka decodes names from UTF-8, so lone surrogates do not exist there."""


class Shrinkable:
    """Decisions drawn by Hypothesis."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw

    def of(self, options: Sequence[T]) -> T:
        return options[self._draw(_integers(0, len(options) - 1))]

    def integer(self, low: int, high: int) -> int:
        return self._draw(_integers(low, high))

    def real(self) -> float:
        return self._draw(_REALS)

    def text(self) -> str:
        return self._draw(_TEXTS)


class Seeded:
    """Decisions of a seeded generator."""

    def __init__(self, generator: random.Random) -> None:
        self._random = generator

    def of(self, options: Sequence[T]) -> T:
        return options[int(self._random.random() * len(options))]

    def integer(self, low: int, high: int) -> int:
        return self._random.randint(low, high)

    def real(self) -> float:
        """Take any finite double: half of them with any bits at all."""
        if self._random.random() < 0.5:
            return round(self._random.uniform(-1e6, 1e6), self._random.randint(0, 9))
        value: float = struct.unpack(">d", self._random.randbytes(8))[0]
        return value if math.isfinite(value) else 0.0

    def text(self) -> str:
        """Take any text, half of them from a few troublesome characters."""
        few = self._random.random() < 0.5
        return "".join(self._character(few=few) for _ in range(self._random.randint(0, 12)))

    def _character(self, *, few: bool) -> str:
        if few:
            return self._random.choice('ab:,=*?"\\% +~\n\r\té_-.&/')
        point = self._random.randint(0, 0x10FFFF - 0x800)
        return chr(point if point < 0xD800 else point + 0x800)


@cache
def _integers(low: int, high: int) -> st.SearchStrategy[int]:
    return st.integers(low, high)


_REALS = st.floats(allow_nan=False, allow_infinity=False)
_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
