"""
Sizes of the protocol's types, in bytes.

*Flexible* versions (KIP-482) write lengths as unsigned varints of length + 1 and end each structure with its tagged fields; older ones
write lengths as int16 (strings) or int32 (all else).
"""

from collections.abc import Sized
from typing import Any, TypeAlias

Json: TypeAlias = Any
"""What a JSON document holds; using it checks its shape."""

UUID = 16
"""A topic id."""
NO_TAGS = 1
"""The count of tagged fields when there are none."""
WRONG_SHAPE = (AttributeError, KeyError, TypeError, ValueError)
"""What using a message of another shape raises."""


def varint(number: int) -> int:
    """An unsigned varint: seven bits a byte."""
    return (number.bit_length() + 6) // 7 or 1


def text(value: str | None, *, flexible: bool) -> int:
    """A nullable string. A lone surrogate goes out as one `?`, as Java encodes it."""
    if value is None:
        return 1 if flexible else 2
    length = len(value) if value.isascii() else len(value.encode(errors="replace"))
    return (varint(length + 1) if flexible else 2) + length


def count(items: Sized | None, *, flexible: bool) -> int:
    """The length in front of a nullable array."""
    if not flexible:
        return 4
    return 1 if items is None else varint(len(items) + 1)


def records(size: int | None, *, flexible: bool) -> int:
    """Records of this many bytes with the length in front of them; None for null."""
    if size is None:
        return 1 if flexible else 4
    return (varint(size + 1) if flexible else 4) + size
