"""
Ingest of logs by this process: reading the lines of files, compressed or not, and committing chunks of them.

A line of any length takes no more memory than the longest line that is read as a request.
"""

import os
import re
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from io import RawIOBase
from itertools import chain
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import Any, Final

import pyarrow as pa

from ..columns import gathered
from ..errors import UnreadableLog
from ..request_log.joining import Joiner
from ..request_log.parsing import LONGEST, Parsed, parse_lines, parse_rest
from ..table import Progress
from ..table.storage import SHARDS
from .committing import Ingest, Staged
from .files import STANDARD_INPUT, log_files, printable, size_of
from .options import IngestOptions, IngestReport, IngestTables

CHUNK: Final = 250_000
"""Largest number of rows that are held in memory and committed at once."""
CHUNK_BYTES: Final = 96 << 20
"""
Largest size of the rows that are held in memory at once; work on them takes several times as much memory.

A usual row has some 300 bytes, and one with long names 100 kB.
"""
BLOCK: Final = 4 << 20
"""Number of bytes that are read at once."""
COMPRESSED_BLOCK: Final = 64 << 10
"""Number of bytes that are read at once of a compressed file, whose content may be a thousand times as large."""
_HEAD: Final = 4
"""Number of bytes at the beginning of a file that show how it is compressed."""
_NO_TEXT: Final = tuple((re.compile(begin, re.DOTALL), what) for begin, what in (
    (rb"\x1f\x8b|\x28\xb5\x2f\xfd", "it is compressed twice: unpack it once"),
    (rb"BZh[1-9]1AY&SY", "it is compressed with bzip2, which ingest does not read: unpack it (bunzip2), or pipe it in"),
    (rb"\xfd7zXZ\0", "it is compressed with xz, which ingest does not read: unpack it (unxz), or pipe it in"),
    (rb"PK\x03\x04", "it is a zip archive: unpack it"),
    (rb"\x04\x22\x4d\x18|LZ4Block", (
        "it is compressed with lz4, which ingest does not read: unpack it (lz4 -d), or pipe it in")),
    (rb"\xff\x06\0\0sNaPpY|\x82SNAPPY\0", (
        "it is compressed with snappy, which ingest does not read: unpack it, or pipe it in")),
    (rb"PAR1|Obj\x01|ORC(?![ -~]{9})", (
        "it is Parquet, Avro or ORC, and not lines of text: write the message of each row on one line")),
    (rb".{257}ustar", "it is a tar archive: unpack it, so that the folders say which broker each log is of"),
    (rb"\xff\xfe|\xfe\xff|(?:[^\0]\0){8}|(?:\0[^\0]){8}|\0\0\xfe\xff|(?:\0{3}[^\0]){4}|(?:[^\0]\0{3}){4}",
     "it is text in UTF-16 or UTF-32: convert it, such as with iconv -f UTF-16 -t UTF-8"),
))  # fmt: skip
"""Patterns of the beginnings of files that are no text in UTF-8, and what the user can do."""
DAMAGED: Final = (
    "the compressed file is damaged or ends too early ({}); nothing from there on was read, as any line may be "
    "altered: bring the whole file"
)
HELD: Final = 32 << 20
"""Largest number of unpacked bytes of a compressed member that are held in memory until its checksum is verified."""
_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_WITH_HEADER: Final = 16 + zlib.MAX_WBITS
"""Mode of zlib for a member of gzip, whose checksum and length are compared."""


def ingest(
    paths: Sequence[str],
    into: str,
    options: IngestOptions | None = None,
    progress: Progress = lambda _done, _all: None,
    *,
    shards: int = SHARDS,
) -> IngestReport:
    """
    Read request logs into the tables of a folder. Known lines add nothing, and without any line no table is made.

    If the run is killed, committed chunks stay, and the next run over the same files adds the other lines. If no option
    names the broker of files, there is a single commit after the last line, because only then it is certain whether
    all lines are of one broker.

    Args:
        paths: files, folders or `-` for standard input; plain, gzip or zstd by their first bytes.
        into: folder, or a URI that `Table` knows.
        options: broker, zone and other facts about the logs.
        progress: called after each block of a file, and after each file, with the bytes read so far and of all files,
            as they are on disk.
        shards: number of shards that users are spread over, if the tables are new.

    Raises:
        UnreadableLog: a path does not exist or cannot be read; nothing was added. A file that breaks off is in the
            report instead.
        UnknownBroker: the broker of a request is not certain; nothing was added, except from standard input and pipes.
        BadSnapshot: the topic snapshot cannot be read.
        TableError: the tables cannot be read or written; earlier commits stay.

    """
    options = options or IngestOptions()
    files, left_out = log_files(paths, options.names, follow_links=options.follow_links)
    topics = options.topics()
    report = IngestReport(left_out=left_out)
    for file in files:
        options.source(file)
    parsed = _parsed(files, options, progress, report.broken)
    if options.names_brokers or not all(map(os.path.isfile, files)):
        chunk_writer: Ingest | None = None
        for chunk in gathered(parsed, CHUNK, CHUNK_BYTES):
            if chunk_writer is None:
                chunk_writer = Ingest(IngestTables.create(into, shards), topics)
            report.add(chunk_writer.add(partial(chunk_writer.stage, [Parsed.of(chunk)])))
        return report

    first_batch = next(parsed, None)
    if first_batch is None:
        return report
    unstaged: Iterator[pa.RecordBatch] | None = chain([first_batch], parsed)
    writer = Ingest(IngestTables.create(into, shards), topics)

    def stage() -> Staged:
        """Stage all lines for one commit; a second attempt reads the files again."""
        nonlocal unstaged
        batches = _parsed(files, options, progress, report.broken) if unstaged is None else unstaged
        unstaged = None
        return writer.stage(map(Parsed.of, gathered(batches, CHUNK, CHUNK_BYTES)))

    report.add(writer.add(stage))
    return report


def _parsed(
    files: Sequence[str], options: IngestOptions, progress: Progress, broken: dict[str, str]
) -> Iterator[pa.RecordBatch]:
    """
    Yield the parsed lines of files, as batches of requests or of the quarantine.

    If a file breaks off, the lines before that are parsed, and the reason is added to `broken`.
    """
    sizes = [size_of(file) for file in files]
    done, total = 0, sum(sizes)
    for file, size in zip(files, sizes, strict=True):
        progress(done, total)
        source, number, joiner = options.source(file), 1, Joiner(LONGEST)
        try:
            for lines, read_bytes in lines_of(file):
                parsed = parse_lines(lines, range(number, number + len(lines)), source, joiner)
                number += len(lines)
                yield from (*parsed.requests.to_batches(), *parsed.quarantine.to_batches())
                progress(done + min(read_bytes, size), total)  # the file may grow meanwhile
        except UnreadableLog as error:
            broken[printable(file)] = error.why
        unfinished = parse_rest(joiner, source)
        yield from (*unfinished.requests.to_batches(), *unfinished.quarantine.to_batches())
        done += size
    progress(total, total)


def lines_of(file: str) -> Iterator[tuple[list[bytes], int]]:
    """
    Yield the lines of a file or of standard input, and the number of bytes read so far (0 for a pipe).

    A line longer than `LONGEST` is cut to one byte more than that.

    Raises `UnreadableLog` after all lines before the error: if the file cannot be read, or a member of a compressed
    file is damaged or ends too early. No line of such a member is yielded.
    """
    try:
        with nullcontext(sys.stdin.buffer) if file == STANDARD_INPUT else Path(file).open("rb") as raw:
            yield from lines_in(raw, file)
    except OSError as error:
        raise UnreadableLog(file, error.strerror or str(error)) from error  # str(error) has the path as well


def lines_in(raw: Any, file: str) -> Iterator[tuple[list[bytes], int]]:  # noqa: ANN401 - a buffered reader
    """
    Yield the lines of an open file as `lines_of` does; `file` is the name for errors.

    The last line of a block is `unfinished` until a later block ends it. If it has become longer than `LONGEST`, the
    rest of it is skipped.
    """
    unfinished, skipping, read_bytes = b"", False, 0
    seekable = raw.seekable()
    try:
        for block in _decompressed(raw):
            read_bytes = raw.tell() if seekable else 0
            line_end, *lines = block.split(b"\n")
            if not skipping:
                unfinished += line_end[: LONGEST + 1 - len(unfinished)]
            skipping = not lines and len(unfinished) > LONGEST
            if lines:
                yield [unfinished, *lines[:-1]], read_bytes
                unfinished = lines[-1]
    except Broken as error:  # the rest of a line may be in the damaged part
        raise UnreadableLog(file, DAMAGED.format(error)) from error
    except Unsuitable as error:
        raise UnreadableLog(file, str(error)) from error
    except OSError as error:
        if unfinished:
            yield [unfinished], read_bytes
        raise UnreadableLog(file, error.strerror or str(error)) from error
    if unfinished:
        yield [unfinished], read_bytes


def _decompressed(raw: Any) -> Iterator[bytes]:  # noqa: ANN401 - a buffered reader
    """Yield the content of a file in blocks, decompressed if its first bytes are those of gzip or zstd."""
    beginning = raw.peek(_HEAD)[:_HEAD]
    for magic, members in ((_GZIP, _gzip), (_ZSTD, _zstd)):
        if beginning.startswith(magic):
            # a large member is read twice, which takes a file that can be read from its beginning again
            with nullcontext(raw) if raw.seekable() else _spooled(raw) as file:
                yield from _of_text(members(file))
            return
    yield from _of_text(iter(partial(raw.read, BLOCK), b""))


def _of_text(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """
    Yield blocks unchanged. Raises `Unsuitable` if the first one does not begin like text in UTF-8.

    Otherwise the lines of such a file would fill the quarantine.
    """
    first_block = next(filter(None, blocks), b"")
    for begin, remedy in _NO_TEXT:
        if begin.match(first_block):
            raise Unsuitable(remedy)
    yield first_block
    yield from blocks


class Unsuitable(Exception):
    """The content of a file is not lines in UTF-8; private to this module."""


class Broken(Exception):
    """A compressed file is damaged or ends too early; private to this module."""


def _spooled(pipe: Any) -> Any:  # noqa: ANN401 - buffered readers
    """Return a temporary file with the compressed content of a pipe."""
    file = TemporaryFile()  # noqa: SIM115 - closed by the caller
    copyfileobj(pipe, file)
    file.seek(0)
    return file


def _gzip(raw: Any) -> Iterator[bytes]:  # noqa: ANN401 - a buffered reader
    """Yield the content of all members of a gzip file; zeros between them are padding."""
    while block := raw.read(COMPRESSED_BLOCK):
        if content := block.lstrip(b"\0"):
            raw.seek(-len(content), os.SEEK_CUR)  # back to the begin of the member
            yield from _checked(raw, partial(_gzip_member, raw))


def _gzip_member(raw: Any) -> Iterator[bytes]:  # noqa: ANN401 - a buffered reader
    """
    Yield the content of a member, and leave the file at the member's end.

    The last block is yielded after the checksum of the member is verified.
    """
    decoder = zlib.decompressobj(_WITH_HEADER)
    while not decoder.eof:
        data = decoder.unconsumed_tail or raw.read(COMPRESSED_BLOCK)  # the tail is input that the last call left
        if not data:
            raise Broken("it ends within a member")
        try:
            yield decoder.decompress(data, COMPRESSED_BLOCK)
        except zlib.error as error:
            raise Broken(str(error)) from error
    raw.seek(-len(decoder.unused_data), os.SEEK_CUR)  # back to the first byte after the member


class _LeftOpen(RawIOBase):
    """A file that stays open when Arrow closes it."""

    def __init__(self, raw: Any) -> None:  # noqa: ANN401 - a buffered reader
        self._raw = raw

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        return bytes(self._raw.read(size))


def _zstd(raw: Any) -> Iterator[bytes]:  # noqa: ANN401 - a buffered reader
    """Yield the content of a zstd file, whose frames all count as one member."""
    return _checked(raw, partial(_zstd_frames, raw))


def _zstd_frames(raw: Any) -> Iterator[bytes]:  # noqa: ANN401 - a buffered reader
    """Yield the content of all frames up to the end of the file. Raises `Broken`, or an error of the disk."""
    stream = pa.CompressedInputStream(pa.PythonFile(_LeftOpen(raw), "r"), "zstd")
    try:
        while piece := stream.read(COMPRESSED_BLOCK):
            yield piece
    except (OSError, pa.ArrowException) as error:
        if isinstance(error, OSError) and error.errno is not None:  # the disk's, not the decompressor's
            raise
        raise Broken(str(error)) from error


def _checked(raw: Any, unpacked: Callable[[], Iterator[bytes]]) -> Iterator[bytes]:  # noqa: ANN401 - a buffered reader
    """
    Yield the content of a member after its checksum was verified: in a damaged member, any line may be altered.

    A member of more than `HELD` bytes is decoded a second time. Raises `Broken`. The file is left after the member.
    """
    begin = raw.tell()
    blocks: list[bytes] = []
    size = 0
    for block in unpacked():  # to its end, where the checksum is verified
        size += len(block)
        if size > HELD:
            blocks.clear()
        else:
            blocks.append(block)
    if size <= HELD:
        yield from filter(None, blocks)
    else:
        raw.seek(begin)
        yield from filter(None, unpacked())
