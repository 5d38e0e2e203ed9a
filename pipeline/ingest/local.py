"""
Logs that this process reads: lines of files, compressed or not, a chunk at a time; each chunk is one commit.

A line of any length takes no more memory than the longest that is read.
"""

import os
import re
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from io import RawIOBase
from itertools import chain, repeat
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
"""Number of rows that are held in memory and committed at once, if they have no more than `CHUNK_BYTES`."""
CHUNK_BYTES: Final = 96 << 20
"""
Size of these rows; work on them takes several times as much.

A row of a usual log has some 300 bytes, one with long names 100 kB.
"""
BLOCK: Final = 4 << 20
"""Number of bytes that are read at once."""
COMPRESSED_BLOCK: Final = 64 << 10
"""Number of bytes of compressed files that are read at once: their content may be a thousand times as large."""
_HEAD: Final = 4
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
"""Beginnings of files that are no text in UTF-8, with remedies."""
DAMAGED: Final = (
    "the compressed file is damaged or ends too early ({}); nothing from there on was read, as any line may be "
    "altered: bring the whole file"
)
HELD: Final = 32 << 20
"""Unpacked bytes of a compressed member that are held until its checksum is verified."""
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
    Read request logs into the tables of a folder; known lines add nothing. Without a line no table is made.

    A killed run leaves complete chunks behind, and the next run over the same files adds the other lines; if no option
    names the broker of files, there is one commit, after all lines.

    Args:
        paths: files, folders or `-` for standard input; plain, gzip or zstd by their first bytes.
        into: a folder, or a URI that `Table` knows.
        options: broker, zone and other facts about the logs.
        progress: called after each file, and after each block of it, with the bytes of files as they lie on disk.
        shards: number of shards that users are spread over, if the tables are new.

    Raises:
        UnreadableLog: a path does not exist or cannot be read; nothing was added. A file that breaks off is in the
            report instead.
        UnknownBroker: it is not certain of which broker a request is; nothing was added, but from standard input and
            pipes.
        BadSnapshot: the topic snapshot cannot be read.
        TableError: the tables cannot be read or written; earlier commits stay.

    """
    options = options or IngestOptions()
    files, left_out = log_files(paths, options.names, follow_links=options.follow_links)
    topics = options.topics()
    report = IngestReport(left_out=left_out)
    for file in files:
        options.source(file)
    if options.names_brokers or not all(map(os.path.isfile, files)):
        chunks: Ingest | None = None
        for batches in gathered(_parsed(files, options, progress, report.broken), CHUNK, CHUNK_BYTES):
            chunks = chunks or Ingest(IngestTables.create(into, shards), topics)
            report.add(chunks.add(partial(chunks.stage, [Parsed.of(batches)])))
        return report

    parsed = _parsed(files, options, progress, report.broken)
    first_batch = next(parsed, None)
    if first_batch is None:
        return report
    attempts = chain([chain([first_batch], parsed)], repeat(None))

    def stage() -> Staged:
        """Stage all lines for one commit: whether they are of one broker is certain only after the last one."""
        batches = next(attempts) or _parsed(files, options, progress, report.broken)
        return adding.stage(map(Parsed.of, gathered(batches, CHUNK, CHUNK_BYTES)))

    adding = Ingest(IngestTables.create(into, shards), topics)
    report.add(adding.add(stage))
    return report


def _parsed(
    files: Sequence[str], options: IngestOptions, progress: Progress, broken: dict[str, str]
) -> Iterator[pa.RecordBatch]:
    """
    Parse the lines of files.

    If a file breaks off, parse the lines before that, and note the reason in `broken`.
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
    Yield the lines of a file or of standard input, and the bytes of the file read so far (0 for a pipe).

    A line longer than `LONGEST` is cut to one byte more than that. Raises `UnreadableLog`, after all readable lines,
    when the file cannot be read, and after the lines of complete members, when one is damaged or ends too early.
    """
    try:
        with nullcontext(sys.stdin.buffer) if file == STANDARD_INPUT else Path(file).open("rb") as raw:
            yield from lines_in(raw, file)
    except OSError as error:
        raise UnreadableLog(file, error.strerror or str(error)) from error  # str(error) has the path as well


def lines_in(raw: Any, file: str) -> Iterator[tuple[list[bytes], int]]:  # noqa: ANN401 - a buffered reader
    """Yield lines as `lines_of` does, of an open file; `file` is its name, for errors."""
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
    beginning = raw.peek(_HEAD)[:_HEAD]
    for magic, members in ((_GZIP, _gzip), (_ZSTD, _zstd)):
        if beginning.startswith(magic):
            # a large member is read twice
            with nullcontext(raw) if raw.seekable() else _spooled(raw) as file:
                yield from _of_text(members(file))
            return
    yield from _of_text(iter(partial(raw.read, BLOCK), b""))


def _of_text(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """
    Pass on blocks.

    Raises `Unsuitable` before the first block if it is not text in UTF-8, since its lines would not count as requests.
    """
    first_block = next(filter(None, blocks), b"")
    for begin, remedy in _NO_TEXT:
        if begin.match(first_block):
            raise Unsuitable(remedy)
    yield first_block
    yield from blocks


class Unsuitable(Exception):
    """Error for a file with other content than lines in UTF-8; private to this module."""


class Broken(Exception):
    """Error for a compressed file that is damaged or ends too early; private to this module."""


def _spooled(pipe: Any) -> Any:  # noqa: ANN401 - buffered readers
    """Return the content of a pipe as a file, still compressed."""
    file = TemporaryFile()  # noqa: SIM115 - closed by the caller
    copyfileobj(pipe, file)
    file.seek(0)
    return file


def _gzip(raw: Any) -> Iterator[bytes]:  # noqa: ANN401 - a buffered reader
    """Yield the content of the members of a gzip file; zeros around them are padding."""
    while block := raw.read(COMPRESSED_BLOCK):
        if content := block.lstrip(b"\0"):
            raw.seek(-len(content), os.SEEK_CUR)
            yield from _checked(raw, partial(_gzip_member, raw))


def _gzip_member(raw: Any) -> Iterator[bytes]:  # noqa: ANN401 - a buffered reader
    """
    Yield the content of a member, and leave the file at its end.

    The last bytes come after its checksum is verified.
    """
    decoder = zlib.decompressobj(_WITH_HEADER)
    while not decoder.eof:
        data = decoder.unconsumed_tail or raw.read(COMPRESSED_BLOCK)
        if not data:
            raise Broken("it ends within a member")
        try:
            yield decoder.decompress(data, COMPRESSED_BLOCK)
        except zlib.error as error:
            raise Broken(str(error)) from error
    raw.seek(-len(decoder.unused_data), os.SEEK_CUR)


class _LeftOpen(RawIOBase):
    """A file that stays open when Arrow closes it."""

    def __init__(self, raw: Any) -> None:  # noqa: ANN401 - a buffered reader
        self._raw = raw

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        return bytes(self._raw.read(size))


def _zstd(raw: Any) -> Iterator[bytes]:  # noqa: ANN401 - a buffered reader
    """Yield the content of a zstd file: all of its frames are taken for one member."""
    return _checked(raw, partial(_zstd_frames, raw))


def _zstd_frames(raw: Any) -> Iterator[bytes]:  # noqa: ANN401 - a buffered reader
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
    Yield the content of a member after its checksum was verified: before that, any of its lines may be altered.

    A member of more than `HELD` is decoded a second time. Raises `Broken`, and leaves the file after the member.
    """
    begin = raw.tell()
    blocks: list[bytes] = []
    size = 0
    for block in unpacked():
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
