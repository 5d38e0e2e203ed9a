"""Encoding of values in the pipe to Kafka's classes; the counterpart of `java/Wire.java`."""

import math
import re
import struct
from collections.abc import Iterator
from typing import Protocol, Union

NAN = "7ff8000000000000"


class Word(str):
    """A token of the protocol, sent unchanged: an operation, the name of a class, a placeholder."""

    __slots__ = ()


class Composite(Protocol):
    """An argument that is several tokens."""

    def parts(self) -> "tuple[Argument, ...]":
        """Parts that are sent."""


Argument = Union[float, str, None, Composite, "tuple[Argument, ...]"]
"""Argument of an operation."""


def bits(value: float) -> str:
    """Write the 64 bits of a double in hex without leading zeros; every NaN has the same."""
    if math.isnan(value):
        return NAN
    return f"{struct.unpack('>Q', struct.pack('>d', value))[0]:x}"


def quote(text: str) -> str:
    """Write a text as the hex of its UTF-8 behind a dot."""
    return "." + text.encode().hex()


def tokens(*arguments: Argument) -> Iterator[str]:
    """Write arguments: bools as 0 and 1, doubles as bits, texts as hex, words as they are, None as a minus."""
    for argument in arguments:
        match argument:
            case None:
                yield "-"
            case Word():
                yield argument
            case str():
                yield quote(argument)
            case float():
                yield bits(argument)
            case int():
                yield str(int(argument))
            case tuple():
                yield from tokens(*argument)
            case _:
                yield from tokens(*argument.parts())


def flag(value: object) -> str:
    return "1" if value else "0"


def readable(answer: str) -> str:
    """Decode the texts and the doubles of an answer, for the reader of a failure."""
    decoded = re.sub(r"\.((?:[0-9a-f]{2})*)", _text, answer)
    return re.sub(r"\b[0-9a-f]{13,16}\b", _double, decoded)


def _text(match: re.Match[str]) -> str:
    return repr(bytes.fromhex(match[1]).decode(errors="replace"))


def _double(match: re.Match[str]) -> str:
    return repr(struct.unpack(">d", struct.pack(">Q", int(match[0], 16)))[0])
