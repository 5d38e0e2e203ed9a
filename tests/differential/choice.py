"""Sources of random decisions."""

import math
import random
import struct
from collections.abc import Sequence
from typing import TypeVar

from tests import strategies

HOSTILE = (*(name for name in strategies.HOSTILE if len(name) < 100), "a+b", "a%20b", "CN=app,O=Org", "👩‍💻", "\0")
"""Names that need sanitizing, quoting or care."""


T = TypeVar("T")


class Choice:
    """Decisions of a generator with a seed: the same seed makes the same ones again."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)  # noqa: S311 - no secret

    def of(self, options: Sequence[T]) -> T:
        return options[int(self._random.random() * len(options))]

    def integer(self, low: int, high: int) -> int:
        """Return an integer between bounds, both included."""
        return self._random.randint(low, high)

    def real(self) -> float:
        """Take any finite double: half of them with any bits at all."""
        if self._random.random() < 0.5:
            return round(self._random.uniform(-1e6, 1e6), self._random.randint(0, 9))
        value: float = struct.unpack(">d", self._random.randbytes(8))[0]
        return value if math.isfinite(value) else 0.0

    def text(self) -> str:
        """
        Take any text, half of them from a few troublesome characters.

        Kafka decodes names from UTF-8, so lone surrogates do not exist there.
        """
        few = self._random.random() < 0.5
        return "".join(self._character(few=few) for _ in range(self._random.randint(0, 12)))

    def _character(self, *, few: bool) -> str:
        if few:
            return self._random.choice('ab:,=*?"\\% +~\n\r\té_-.&/')
        point = self._random.randint(0, 0x10FFFF - 0x800)
        return chr(point if point < 0xD800 else point + 0x800)
