"""
Lines of a file, whatever it is compressed by, a block at a time.

A line of any length takes no more memory than the longest that is read.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from ..errors import UnreadableLog
from ..request_log.parsing import LONGEST
from .compression import Broken, gzip_blocks, zstd_blocks
from .files import STANDARD_INPUT

BLOCK: Final = 4 << 20
"""Bytes that are read at once."""
COMPRESSED_BLOCK: Final = 64 << 10
"""As above, of compressed files, whose content may be a thousand times as large."""

_MAGIC: Final = {b"\x1f\x8b": gzip_blocks, b"\x28\xb5\x2f\xfd": zstd_blocks}


def lines_of(
    file: str, at: Callable[[int], None] = lambda _bytes: None
) -> Iterator[list[bytes]]:
    """
    The lines of a file or of standard input, without their line feeds.

    One that is longer than `LONGEST` is cut to one byte more than that. `at` is called with the bytes of the file, as it lies on disk, of
    which the lines were read. Raises `UnreadableLog`, after all lines that could be read, when the file cannot be opened or its
    compression breaks off.
    """
    rest, skipping = b"", False
    try:
        with _opened(file, at) as blocks:
            for block in blocks:
                first, *more = block.split(b"\n")
                if not skipping:
                    rest += first[: LONGEST + 1 - len(rest)]
                skipping = not more and len(rest) > LONGEST
                if more:
                    yield [rest, *more[:-1]]
                    rest = more[-1]
    except (OSError, Broken) as error:
        if rest:
            yield [rest]
        raise UnreadableLog(file, _why(error)) from error
    if rest:
        yield [rest]


def _why(error: Exception) -> str:
    if isinstance(error, Broken):
        return f"the compressed file is damaged or ends too early ({error})"
    return str(error)


@contextmanager
def _opened(file: str, at: Callable[[int], None]) -> Iterator[Iterator[bytes]]:
    """The content of a file of any compression, a block at a time."""
    if file == STANDARD_INPUT:
        yield _decompressed(sys.stdin.buffer)
        return
    with Path(file).open("rb") as raw:
        yield _noted(_decompressed(raw), raw, at)


def _noted(
    blocks: Iterator[bytes],
    raw: Any,  # noqa: ANN401 - a buffered reader
    at: Callable[[int], None],
) -> Iterator[bytes]:
    for block in blocks:
        yield block
        at(raw.tell())


def _decompressed(raw: Any) -> Iterator[bytes]:  # noqa: ANN401 - a buffered reader
    beginning = raw.peek(4)[:4]
    for magic, blocks in _MAGIC.items():
        if beginning.startswith(magic):
            return blocks(raw, COMPRESSED_BLOCK)
    return iter(partial(raw.read, BLOCK), b"")
