"""The event log of one application, read from its beginning as far as it has been written."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final, Self

import orjson

from ..errors import NoEventLog
from ..events import LOGGED, may_end_attempt
from ..job import EventSink
from .files import LogFile, decoder, files, is_running, locate

_OFTEN = 5_000
"""Lines between two calls of `progress`."""
_CHUNK = 256 * 1024
_LONGEST_LINE = 64 * 1024 * 1024
_BEGINNING = 1_000
"""Bytes of a longer line that are kept: they say whether it matters."""

_BEGINS: Final = b'{"Event":"'
_FIRST_ATTEMPT: Final = re.compile(  # in the order in which Spark 3.5 to 4.3 write it
    rb'\{"Event":"SparkListenerTask(?:Start|(?P<end>End))","Stage ID":\d+,"Stage Attempt ID":0,'
    rb'(?:"Task Type":"\w+","Task End Reason":\{"Reason":"Success"\},)?'
    rb'"Task Info":\{"Task ID":\d+,"Index":\d+,"Attempt":0,'
)
_KIND: Final = re.compile(r"SparkListener|[\w$]+\.")
"""How the name of an event begins: Spark's own, and the full names of classes."""
_WANTED: Final = frozenset(kind.encode() for kind in LOGGED)


class EventLog:
    """
    Finds the files of a log and reads each line once, also those that are written later.

    Args:
        path: a file, a folder of rolled files, or a folder with a single log; `.inprogress` may be left out.
        successes: whether `feed` passes ends of first attempts that succeeded, too. Most lines are such: it takes several times as long.

    Raises `EventLogError` and `OSError`.

    """

    def __init__(self, path: Path, *, successes: bool = False) -> None:
        self.path = locate(path)
        self._successes = successes
        self.finished = False
        """Whether the application has closed the log, and all of it was read."""
        self._reader: LogReader | None = None
        self._raw_bytes = 0
        self._lost = 0
        self.missing_files = 0
        """Rolled files that are not there, nor were compacted."""
        first = self._next(files(self.path))
        if first is not None:
            self._reader = self._opened(first)
        self.compacted = first is not None and first.compacted
        """Whether the History server has removed the tasks of jobs that it considers ended."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def raw_bytes(self) -> int:
        """Bytes of the files that were read."""
        return self._raw_bytes + (self._reader.raw_bytes if self._reader else 0)

    def size(self) -> int:
        """Bytes of the files now. Raises `OSError`."""
        return sum(each.path.stat().st_size for each in files(locate(self.path)))

    def feed(self, job: EventSink, progress: Callable[[int], None] | None = None) -> int:
        """
        Pass the new events to a job; return the number of new lines.

        `progress` is called from time to time with the bytes of the files that were read. Raises `EventLogError` and `OSError`.
        """
        count = passed = 0
        try:
            for count, line in enumerate(self.lines(), start=1):
                if progress is not None and count % _OFTEN == 0:
                    progress(self.raw_bytes)
                if not is_wanted(line, successes=self._successes):
                    passed += 1
                elif (event := event_of(line)) is None:
                    job.lost(1, ends=may_end_attempt(line))
                else:
                    job.handle(event)
        finally:
            job.passed(passed)
            job.lost(self._lost)  # lines of which only a part was there, and missing files
            self._lost = 0
        return count

    def lines(self) -> Iterator[bytes]:
        """
        Lines that are new since the last time, over all files.

        Raises `EventLogError` and `OSError`.
        """
        closed = not is_running(self.path)
        while True:
            following = self._next(files(locate(self.path)))
            reader = self._reader
            if reader is not None:
                for line in reader.lines():
                    if reader.offset == len(line) + 1 and event_of(line) is None:
                        raise NoEventLog(f"{reader.file.path} is not an event log of Spark")
                    yield line
            if following is None:
                break
            if reader is not None:
                self._raw_bytes += reader.raw_bytes
                self._lost += reader.incomplete
                reader.close()
            self._reader = self._opened(following)
        self.finished = closed

    def close(self) -> None:
        """Close the file that is open."""
        if self._reader is not None:
            self._reader.close()

    def _next(self, found: Sequence[LogFile]) -> LogFile | None:
        """The file after the one that is read, the first where none is."""
        at = -1 if self._reader is None else self._reader.file.index
        return next((each for each in found if each.index > at), None)

    def _opened(self, file: LogFile) -> LogReader:
        """The file that follows the one that is read; Spark numbers those of a folder from 1."""
        at = 0 if self._reader is None else self._reader.file.index
        missing = 0 if file.compacted else max(0, file.index - at - 1)
        self.missing_files += missing
        self._lost += missing
        return LogReader(file)


def is_wanted(line: bytes, *, successes: bool = False) -> bool:
    """Whether a line may matter, without parsing it; a line in a layout that Spark does not write may."""
    first = _FIRST_ATTEMPT.match(line)
    if first is not None:
        return successes and first["end"] is not None
    if not line.startswith(_BEGINS):
        return True
    kind = line[len(_BEGINS) : line.find(b'"', len(_BEGINS))]
    return kind.rpartition(b".")[2] in _WANTED


def event_of(line: bytes | str) -> Mapping[str, Any] | None:
    """The event in a line; None when there is none."""
    try:
        event = orjson.loads(line)
    except orjson.JSONDecodeError:
        try:  # halves of surrogate pairs and NaN, which Spark writes, are nothing to orjson
            event = json.loads(line)
        except (ValueError, RecursionError):
            return None
    name = event.get("Event") if isinstance(event, dict) else None
    return event if isinstance(name, str) and _KIND.match(name) else None


class LogReader:
    """
    The lines of a file, each once, as soon as it is complete.

    Raises `CodecUnusable`, `EventLogDamaged` and `OSError`.

    """

    def __init__(self, file: LogFile) -> None:
        self.file = file
        self.offset = 0
        """Bytes of the lines that were read, decompressed."""
        self.raw_bytes = 0
        """Bytes that were read, as they are in the file."""
        self._too_long = False
        self._decode = decoder(file.path, file.suffix)
        self._open: BinaryIO = file.path.open("rb")
        self._rest: list[bytes] = []

    @property
    def incomplete(self) -> bool:
        """Whether there is a beginning of a line that was not read."""
        return any(self._rest)

    def close(self) -> None:
        """Close the file."""
        self._open.close()

    def lines(self) -> Iterator[bytes]:
        """Those that were completed since the last time; of one that is too long to be an event, the beginning."""
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
        self._too_long = False
        rest = lines.pop()
        for line in lines:
            self.offset += len(line) + 1
            yield line
        self._hold([rest])

    def _hold(self, rest: list[bytes]) -> None:
        """Keep what is there of a line."""
        size = sum(map(len, rest))
        if self._too_long or size > _LONGEST_LINE:
            self._too_long = True
            rest = [b"".join(rest)[:_BEGINNING]]
            self.offset += size - len(rest[0])
        self._rest = rest
