"""What is inside compressed files, a block at a time, up to the very place where one breaks off."""

import zlib
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

_GZIP: Final = 16 + zlib.MAX_WBITS
_PIECE: Final = 4096
"""Bytes that are taken of zstd at once: a break loses a few lines at most."""


class Broken(Exception):
    """A compressed file is damaged or ends too early; private to this package."""


def gzip_blocks(raw: Any, size: int) -> Iterator[bytes]:  # noqa: ANN401 - a buffered reader
    """
    The content of all members of a gzip file, at most `size` bytes at once.

    Raises `Broken` after everything that was decoded before the break; what is no gzip after a member breaks the file, zeros do not.
    """
    member, data, begun = zlib.decompressobj(_GZIP), raw.read(size), False
    while data:
        begun = True
        yield from _decoded(member, data, size)
        if member.eof:
            rest = _without_padding(member.unused_data, raw, size)
            member, data, begun = zlib.decompressobj(_GZIP), rest, False
        else:
            data = member.unconsumed_tail or raw.read(size)
    if begun:
        yield member.flush()
        if not member.eof:
            raise Broken("truncated gzip")


def zstd_blocks(raw: Any, size: int) -> Iterator[bytes]:  # noqa: ANN401 - a buffered reader
    """As `gzip_blocks`, but what was decoded of the last 4 KiB before the break may be lost."""
    held: list[bytes] = []
    try:
        stream = pa.CompressedInputStream(pa.PythonFile(raw, "r"), "zstd")
        while piece := stream.read(min(_PIECE, size)):
            held.append(piece)
            if len(held) * _PIECE >= size:
                yield b"".join(held)
                held.clear()
    except (OSError, pa.ArrowException) as error:
        yield b"".join(held)
        raise Broken(str(error)) from error
    yield b"".join(held)


def _decoded(member: Any, data: bytes, size: int) -> Iterator[bytes]:  # noqa: ANN401 - has no public type
    before = member.copy()
    try:
        yield member.decompress(data, size)
    except zlib.error as error:
        yield b"".join(_byte_by_byte(before, data))
        raise Broken(str(error)) from error


def _byte_by_byte(member: Any, data: bytes) -> Iterator[bytes]:  # noqa: ANN401 - as above
    """What comes before the error, which zlib throws away when it is given all of it at once."""
    for place in range(len(data)):
        try:
            yield member.decompress(data[place : place + 1])
        except zlib.error:
            return


def _without_padding(data: bytes, raw: Any, size: int) -> bytes:  # noqa: ANN401 - a buffered reader
    """What follows a member: tapes and some appenders fill up with zeros."""
    while not (rest := data.lstrip(b"\0")):
        data = raw.read(size)
        if not data:
            return b""
    return bytes(rest)
