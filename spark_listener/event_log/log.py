"""The event log of one application, read from its beginning to its present end."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final, Self

import orjson

from ..errors import EventLogDamaged, NoEventLog
from ..events import LOGGED, may_end_attempt
from ..job import EventSink
from .archive import BROKEN
from .codecs import Decode, decoder
from .coverage import Coverage
from .files import LogFile, files, is_running, locate
from .order import Partition

_OFTEN = 5_000
"""Lines between two calls of `progress`."""
_CHUNK = 256 * 1024
_LONGEST_LINE = 64 * 1024 * 1024
_BEGINNING = 1_000
"""Bytes of a longer line that are kept: they say whether it matters."""
_FIRST_LINES: Final = 100
"""
Lines within which a file must show that it is an event log: Databricks and others write other lines before Spark's.
"""
_HEAD: Final = 64
"""Bytes of a file that show its codec and its encoding."""

_BEGINS: Final = b'{"Event":"'
_JOINED: Final = b'}{"Event":"'
"""Pattern of two events between which a line feed is missing."""
_FIRST_ATTEMPT: Final = re.compile(  # in the order in which Spark has written it since 1.3
    rb'\{"Event":"SparkListenerTask(?:Start|(?P<end>End))","Stage ID":(?P<stage>\d+),(?:"Stage Attempt ID":0,)?'
    rb'(?:"Task Type":"\w+","Task End Reason":\{"Reason":"Success"\},)?'
    rb'"Task Info":\{"Task ID":(?P<task>\d+),"Index":(?P<index>\d+),"Attempt":0,'
    rb'(?:"Partition ID":-?\d+,)?"Launch Time":(?P<launch>\d+),'
)
_KIND: Final = re.compile(r"SparkListener|DBC|[\w$]+\.")
"""Pattern of the beginning of an event's name: Spark's own, Databricks', and full names of classes."""
_OF_SPARK: Final = re.compile(r"SparkListener|DBCEventLoggingListener|org\.apache\.spark\.")
"""Pattern of the beginning of an event's name by which a file shows that it is an event log."""
_DATABRICKS: Final = "DBCEventLoggingListenerMetadata"
"""Name of the event in Databricks' first line of each file: the file's number, and its SparkContext."""
_WANTED: Final = frozenset(kind.encode() for kind in LOGGED | {_DATABRICKS})
_TIME: Final = re.compile(rb'"Timestamp":(\d{12,14})\b')
_TIMED: Final = 600
"""Bytes of a skipped line in which its time is searched for."""
_BOM: Final = b"\xef\xbb\xbf"
_WIDE: Final = (b"\xff\xfe", b"\xfe\xff")
"""Byte order marks of UTF-16."""


class EventLog:
    """
    Reader of the files of a log that reads each line once, including lines that are written later.

    Args:
        path: a file, a folder of rolled files, a zip, or a folder with a single log; `.inprogress` may be left out.
        whole: whether the log is read for a report: `feed` passes ends of first attempts that succeeded, too, leaves
            out lines that stand twice, and looks for missing ones. That takes several times as long, as most lines
            are such ends.

    Raises `EventLogError` and `OSError`.

    """

    def __init__(self, path: Path, *, whole: bool = False) -> None:
        self.path = locate(path)
        self.coverage = Coverage() if whole else None
        """Attempts and lines that are missing or stand twice; None unless the log is read as a whole."""
        self.finished = False
        """True if the application has closed the log, and all of it was read."""
        self._reader: LogReader | None = None
        self._raw_bytes = 0
        """Bytes of the files before the one that is open."""
        self._lost = 0
        """Number of incomplete lines and missing files that no job was told of yet."""
        self.missing_files = 0
        """Number of files that are missing although no compaction has replaced them."""
        self._context: int | None = None
        """Number of the SparkContext whose files these are, on Databricks."""
        self._rollover = 0
        """Number that the next file of Databricks has."""
        first_file = self._next(files(self.path))
        if first_file is not None:
            self._reader = self._opened(first_file)
        self.compacted = first_file is not None and first_file.compacted
        """True if the History server has removed the tasks of jobs that it considers ended."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def raw_bytes(self) -> int:
        """Bytes of the files that were read."""
        return self._raw_bytes + (self._reader.raw_bytes if self._reader else 0)

    @property
    def is_cut(self) -> bool:
        """True if the last line is incomplete."""
        return self._reader is not None and self._reader.incomplete

    def size(self) -> int:
        """Return the bytes of the files now. Raises `EventLogError` and `OSError`."""
        return sum(file.size() for file in files(locate(self.path)))

    def feed(self, job: EventSink, progress: Callable[[int], None] | None = None) -> int:
        """
        Pass the new events to a job; return the number of new lines.

        `progress` is called from time to time with the bytes of the files that were read. Raises `EventLogError` and
        `OSError`.
        """
        count = passed = 0
        try:
            for count, line in enumerate(self.lines(), start=1):
                if progress is not None and count % _OFTEN == 0:
                    progress(self.raw_bytes)
                if self._is_left_out(line):
                    passed += 1
                    continue
                events = events_of(line)
                if not events:
                    job.lost(1, ends=may_end_attempt(line))
                for event in events:
                    if event["Event"] == _DATABRICKS:
                        self._rolled_over(event)
                    # a repeated event is recognized by its line; of a joined line, each by its content
                    own_line = line if len(events) == 1 else repr(event).encode()
                    if self.coverage is None or self.coverage.takes(event, own_line):
                        job.handle(event)
        finally:
            job.passed(passed)
            job.lost(self._lost)  # incomplete lines, and missing files
            self._lost = 0
        return count

    def lines(self) -> Iterator[bytes]:
        """
        Yield the lines that are new since the last time, over all files, without those that are blank.

        Raises `EventLogError` and `OSError`.
        """
        closed = not is_running(self.path)
        while True:
            following = self._next(files(locate(self.path)))
            reader = self._reader
            if reader is not None:
                yield from reader.lines()
                if closed or following is not None:
                    reader.finish()
            if following is None:
                break
            self._go_on(following)
        self.finished = closed

    def skip_damage(self) -> bool:
        """
        Leave out the rest of a file that raised `EventLogDamaged`; return whether the log has files after it.

        Raises as `lines`.
        """
        following = self._next(files(locate(self.path)))
        if following is not None:
            self._go_on(following)
        return following is not None

    def close(self) -> None:
        """Close the file that is open."""
        if self._reader is not None:
            self._reader.close()

    def _is_left_out(self, line: bytes) -> bool:
        """
        Return whether a line is not needed, without parsing it.

        A line in another layout than Spark's is always needed.
        """
        if _JOINED in line or (self.coverage is not None and not line.endswith(b"}")):
            return False
        # a start of a first attempt, or its success: only a check of the whole log needs any of it
        attempt = _FIRST_ATTEMPT.match(line)
        if attempt is not None:
            if self.coverage is None:
                return True
            if attempt["end"] is not None:
                return False
            self.coverage.at(int(attempt["launch"]))
            partition = Partition(int(attempt["stage"]), 0, int(attempt["index"]))
            self.coverage.started(int(attempt["task"]), partition, 0, int(attempt["launch"]), speculative=False)
            return True
        # an event of a kind that no record is made of
        kind = line[len(_BEGINS) : line.find(b'"', len(_BEGINS))]
        if not line.startswith(_BEGINS) or kind.rpartition(b".")[2] in _WANTED:
            return False
        if self.coverage is not None and kind.startswith(b"SparkListener"):
            time = _TIME.search(line, 0, _TIMED)
            if time is not None:
                self.coverage.at(int(time[1]))
        return True

    def _rolled_over(self, header: Mapping[str, Any]) -> None:
        """
        Check the first line of a file of Databricks.

        Raises `NoEventLog` if it is of another application than the file before it.
        """
        context, number = header.get("SparkContext Id"), header.get("Rollover Number")
        if type(context) is int:
            if self._context not in (None, context):
                raise NoEventLog(
                    f"{self.path} holds files of two applications (SparkContext Id {self._context} and {context}): "
                    "give one of them"
                )
            self._context = context
        if type(number) is int and number >= self._rollover:
            self.missing_files += number - self._rollover
            self._lost += number - self._rollover
            self._rollover = number + 1

    def _next(self, files: Sequence[LogFile]) -> LogFile | None:
        """Return the file after the current one, the first if there is none."""
        index = -1 if self._reader is None else self._reader.file.index
        return next((file for file in files if file.index > index), None)

    def _go_on(self, file: LogFile) -> None:
        """Close the current file, and open the one that follows it."""
        if self._reader is not None:
            self._raw_bytes += self._reader.raw_bytes
            self._lost += self._reader.incomplete
            self._reader.close()
        self._reader = self._opened(file)

    def _opened(self, file: LogFile) -> LogReader:
        """Open the file that follows the current one; Spark numbers those of a folder from 1."""
        index = 0 if self._reader is None else self._reader.file.index
        missing = 0 if file.compacted or not file.numbered else max(0, file.index - index - 1)
        self.missing_files += missing
        self._lost += missing
        return LogReader(file)


def events_of(line: bytes) -> Sequence[Mapping[str, Any]]:
    """
    Return the event in a line, several where a line feed is missing between them.

    No event is returned if a part of the line is something else.
    """
    event = event_of(line)
    if event is not None:
        return (event,)
    if b"}{" not in line or len(line) > _LONGEST_LINE:
        return ()
    events, start, text = [], 0, line.decode(errors="replace").strip()
    decode = json.JSONDecoder().raw_decode
    while start < len(text):
        try:
            parsed, start = decode(text, start)
        except (ValueError, RecursionError):
            return ()
        if not _is_event(parsed):
            return ()
        events.append(parsed)
    return events


def event_of(line: bytes | str) -> Mapping[str, Any] | None:
    """Return the event in a line; None if there is none."""
    try:
        event = orjson.loads(line)
    except orjson.JSONDecodeError:
        text = line.decode(errors="replace") if isinstance(line, bytes) else line
        try:  # orjson refuses halves of surrogate pairs and NaN, which Spark writes
            event = json.loads(text)
        except (ValueError, RecursionError):
            return None
    return event if _is_event(event) else None


def _is_event(event: object) -> bool:
    """Return whether a value of JSON is an event."""
    name = event.get("Event") if isinstance(event, dict) else None
    return isinstance(name, str) and _KIND.match(name) is not None


class LogReader:
    """
    Lines of a file, each read once, as soon as it is complete.

    Raises `CodecUnusable`, `EventLogDamaged` and `OSError`.
    """

    def __init__(self, file: LogFile) -> None:
        self.file = file
        self.raw_bytes = 0
        """Bytes that were read, as they are in the file."""
        self._too_long = False
        """True if only the beginning of the line in `_rest` is kept."""
        self._open: IO[bytes] = file.open()
        self._head = b""
        """First bytes, from which the codec is recognized; empty after they were decompressed."""
        self._decode: Decode | None = None
        try:
            self._head = self._raw(_HEAD)
            if self._head or file.suffix:
                self._decode = decoder(str(file.path), file.suffix, self._head)
        except BaseException:
            self._open.close()
            raise
        self._rest: list[bytes] = []
        """Pieces of the line that is not complete yet."""
        self._others = 0
        """Number of lines before the first event of Spark."""
        self._is_log = False
        """True after the first event of Spark."""
        self._is_begun = False
        """True after the first decompressed bytes, whose encoding was checked."""

    @property
    def incomplete(self) -> bool:
        """True if there is a beginning of a line that was not read."""
        return any(part.strip(_BOM + b"\r\n\t ") for part in self._rest)

    def close(self) -> None:
        """Close the file."""
        self._open.close()

    def finish(self) -> None:
        """
        Record that nothing more is written to the file.

        Raises `EventLogDamaged` if its compressed bytes lack their end.
        """
        if self._decode is not None:
            for _ in self._decode(b""):
                pass

    def lines(self) -> Iterator[bytes]:
        """
        Yield the lines that were completed since the last call.

        A last line without a line feed is yielded if it is a whole event. A line that is too long to be an event is
        yielded up to a part of its beginning. Blank lines are left out; Windows' and old Macs' line ends are read.

        Raises:
            NoEventLog: none of the first lines is an event of Spark.

        """
        while data := self._head or self._raw(_CHUNK):
            self._head = b""
            self.raw_bytes += len(data)
            for piece in self._decoded(data):
                for line in self._complete(piece):
                    yield from self._events(line)
        # what follows the last line feed: lines of old Macs, or a last line that may still be written
        last_line = b"".join(self._rest)
        if b"\r" in last_line and not self._too_long:
            lines, _, last_line = last_line.rpartition(b"\r")
            self._rest = [last_line]
            yield from self._events(lines)
        if last_line.rstrip().endswith(b"}") and not self._too_long and events_of(last_line):
            self._rest = []
            yield from self._events(last_line)
        begins = b"".join(self._rest).lstrip(_BOM + b"\r\n\t ")[:1]
        if not self._is_log and (self._others or begins not in (b"", b"{")):
            raise self._something_else()

    def _raw(self, size: int) -> bytes:
        """Return the next bytes of the file as they are. Raises `EventLogDamaged` and `OSError`."""
        try:
            return self._open.read(size)
        except BROKEN as error:
            raise EventLogDamaged(f"{self.file.path} is damaged: {error}") from error

    def _decoded(self, data: bytes) -> Iterator[bytes]:
        """Yield the content of some bytes of the file. Raises `NoEventLog` if its beginning is not UTF-8."""
        if self._decode is None:
            self._decode = decoder(str(self.file.path), self.file.suffix, data[:_HEAD])
        for piece in self._decode(data):
            if piece and not self._is_begun:
                self._is_begun = True
                head = piece[:_HEAD]
                if head.startswith(_WIDE) or b"\0" in head:
                    raise NoEventLog(
                        f"{self.file.path} is not an event log of Spark in UTF-8: "
                        "text in UTF-16 can be converted (iconv -f UTF-16 -t UTF-8)"
                    )
            yield piece

    def _events(self, line: bytes) -> Iterator[bytes]:
        """Yield the events of a line; raw carriage returns are no part of JSON."""
        for part in line.split(b"\r") if b"\r" in line else (line,):
            text = part.removeprefix(_BOM)
            if not text or text.isspace():
                continue
            if not self._is_log:
                events = events_of(text)
                self._is_log = any(_OF_SPARK.match(event["Event"]) for event in events)
                self._others += not self._is_log
                if self._others >= _FIRST_LINES and not self._is_log:
                    raise self._something_else()
            yield text

    def _something_else(self) -> NoEventLog:
        """Return the error for a file that is not an event log."""
        return NoEventLog(f"{self.file.path} is not an event log of Spark")

    def _complete(self, data: bytes) -> Iterator[bytes]:
        """Yield the lines that some decoded bytes complete, and keep the rest for the next bytes."""
        # the end of the line in `_rest`, and, after the first line feed, whole lines and the beginning of another one
        beginning, *lines = data.split(b"\n")
        self._hold([*self._rest, beginning])
        if not lines:
            return
        lines.insert(0, b"".join(self._rest))
        self._too_long = False
        remainder = lines.pop()
        yield from lines
        self._hold([remainder])

    def _hold(self, chunks: list[bytes]) -> None:
        """Keep the incomplete line."""
        size = sum(map(len, chunks))
        if self._too_long or size > _LONGEST_LINE:
            self._too_long = True
            chunks = [b"".join(chunks)[:_BEGINNING]]
        self._rest = chunks
