"""The two things of protobuf's wire format that are written by hand."""

from __future__ import annotations

_MORE = 0x80


def varint(number: int) -> bytes:
    """A whole number of at least 0, seven bits a byte."""
    written = bytearray()
    while number >= _MORE:
        written.append(number & 0x7F | _MORE)
        number >>= 7
    written.append(number)
    return bytes(written)


def delimited(field: int, content: bytes) -> bytes:
    """A field that holds a text or a message."""
    return varint(field << 3 | 2) + varint(len(content)) + content
