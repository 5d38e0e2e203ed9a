"""The event log of one application, read from the beginning or from where it was left, as far as it goes now."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from ..errors import NoEventLog
from ..job import Books
from .layout import LogFile, files, is_running, locate
from .lines import event_of, is_wanted
from .reading import LogReader

_OFTEN = 5_000
"""Lines between two signs of progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """How far a log was read; plain values that can be kept."""

    index: int
    """Of the file."""
    offset: int
    """Bytes of its lines, decompressed."""


class EventLog:
    """
    Finds the files of a log and reads each line once, also those that are written later.

    Args:
        path: a file, a folder of rolled files, or a folder with a single log; `.inprogress` may be left out.
        after: where an earlier reading ended.

    Raises `EventLogError` and `OSError`.

    """

    def __init__(self, path: Path, after: Position | None = None) -> None:
        self.path = locate(path)
        self.finished = False
        """Whether the application has closed the log, and all of it was read."""
        self._after = after or Position(index=-1, offset=0)
        self._reader: LogReader | None = None
        self._raw_bytes = 0
        self._cut = 0
        self._told_cut = 0
        first = self._next(files(self.path))
        if first is not None:
            self._reader = self._open(first)
        self.compacted = first is not None and first.compacted
        """Whether the History server has left out what it holds to be over: tasks of jobs that ended."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def position(self) -> Position:
        """Where the next reading begins."""
        if self._reader is None:
            return self._after
        return Position(index=self._reader.file.index, offset=self._reader.offset)

    @property
    def raw_bytes(self) -> int:
        """Bytes of the files that were read."""
        return self._raw_bytes + (self._reader.raw_bytes if self._reader else 0)

    def size(self) -> int:
        """Bytes of the files now. Raises `OSError`."""
        return sum(each.path.stat().st_size for each in files(locate(self.path)))

    def feed(self, job: Books, progress: Callable[[int], None] | None = None) -> int:
        """
        Hand over what is new to the books of a job; return how many lines that were.

        `progress` is told now and then how many bytes of the files were read. Raises `EventLogError` and `OSError`.
        """
        count = passed = 0
        try:
            for count, line in enumerate(self.lines(), start=1):
                if progress is not None and count % _OFTEN == 0:
                    progress(self.raw_bytes)
                if not is_wanted(line):
                    passed += 1
                elif (event := event_of(line)) is None:
                    job.lost(1)
                else:
                    job.handle(event)
        finally:
            job.passed(passed)
            job.lost(self._newly_cut())
        return count

    def lines(self) -> Iterator[bytes]:
        """
        Lines that are new since the last time, over all files.

        Raises `EventLogError` and `OSError`.
        """
        closed = not is_running(self.path)
        while True:
            following = self._next(files(locate(self.path)))
            if self._reader is not None:
                yield from self._checked(self._reader)
            if following is None:
                break
            self._turn(following)
        self.finished = closed

    def _newly_cut(self) -> int:
        """Lines of which only a part was there, since this was last asked."""
        cut = self._cut + (self._reader.dropped if self._reader else 0)
        self._told_cut, before = cut, self._told_cut
        return cut - before

    def close(self) -> None:
        """Close the file that is open."""
        if self._reader is not None:
            self._reader.close()

    def _checked(self, reader: LogReader) -> Iterator[bytes]:
        for line in reader.lines():
            if reader.offset == len(line) + 1 and event_of(line) is None:
                raise NoEventLog(f"{reader.file.path} is no event log of Spark")
            yield line

    def _next(self, found: Sequence[LogFile]) -> LogFile | None:
        """The file after the one that is read; a folder that was compacted meanwhile holds it still."""
        at = self._after.index if self._reader is None else self._reader.file.index
        if self._reader is None and any(
            each.index == at and not each.compacted for each in found
        ):
            at -= 1
        return next((each for each in found if each.index > at), None)

    def _open(self, file: LogFile) -> LogReader:
        known = file.index == self._after.index
        return LogReader(file, skip=self._after.offset if known else 0)

    def _turn(self, following: LogFile) -> None:
        if self._reader is not None:
            self._raw_bytes += self._reader.raw_bytes
            self._cut += self._reader.dropped + self._reader.incomplete
            self._reader.close()
        self._reader = self._open(following)
