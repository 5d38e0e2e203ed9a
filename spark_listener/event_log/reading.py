"""Reads one file of an event log as it grows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from .codec import decoder
from .layout import LogFile

_CHUNK = 256 * 1024
_LONGEST_LINE = 64 * 1024 * 1024


class LogReader:
    """
    The lines of a file, each once, as soon as it is complete.

    Args:
        file: what to read.
        skip: bytes that were read before, decompressed.

    Raises `CodecUnusable`, `EventLogDamaged` and `OSError`.

    """

    def __init__(self, file: LogFile, skip: int = 0) -> None:
        self.file = file
        self.offset = 0
        """Bytes of the lines that were read, decompressed."""
        self.raw_bytes = 0
        """Bytes that were read, as they are in the file."""
        self.dropped = 0
        """Lines that were too long to be one."""
        self._too_long = False
        self._skip = skip
        self._decode = decoder(file.path, file.suffix)
        self._open: BinaryIO = file.path.open("rb")
        self._rest: list[bytes] = []

    @property
    def incomplete(self) -> bool:
        """Whether there is a beginning of a line that was not read."""
        return self._too_long or any(self._rest)

    def close(self) -> None:
        """Close the file."""
        self._open.close()

    def lines(self) -> Iterator[bytes]:
        """Those that were completed since the last time."""
        while data := self._open.read(_CHUNK):
            self.raw_bytes += len(data)
            for piece in self._decode(data):
                yield from self._complete(piece)

    def _complete(self, data: bytes) -> Iterator[bytes]:
        first, *lines = data.split(b"\n")
        self._hold([*self._rest, first])
        if not lines:
            return
        lines.insert(0, b"".join(self._rest))
        rest = lines.pop()
        for line in lines:
            self.offset += len(line) + 1
            if self._too_long:  # of the first of them only
                self._drop()
            elif self.offset > self._skip:
                yield line
        self._hold([rest])

    def _hold(self, rest: list[bytes]) -> None:
        """Keep the beginning of a line, unless it is too long to be one."""
        size = sum(map(len, rest))
        if self._too_long or size > _LONGEST_LINE:
            self._too_long = True
            self.offset += size
            rest = []
        self._rest = rest

    def _drop(self) -> None:
        """A line that was too long has come to its end: one line is lost, unless it was before."""
        self._too_long = False
        self.dropped += self.offset > self._skip
