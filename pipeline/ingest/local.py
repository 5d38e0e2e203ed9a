"""
Logs that this process reads: lines of files, whatever these are compressed by, a chunk at a time; each chunk is one commit.

A line of any length takes no more memory than the longest that is read.
"""

import gzip
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from ..columns import gathered
from ..errors import UnreadableLog
from ..request_log.parsing import LONGEST, Parsed, parse_lines
from ..table import Progress
from .committing import Ingest
from .files import STANDARD_INPUT, log_files, size_of
from .options import IngestOptions, IngestReport, IngestTables

CHUNK: Final = 250_000
"""Rows that are held in memory and committed at once, if they have no more than `CHUNK_BYTES`."""
CHUNK_BYTES: Final = 96 << 20
"""Of these rows; what is done with them takes several times as much. A row of a usual log has some 300 bytes, one with long names 100 kB."""
BLOCK: Final = 4 << 20
"""Bytes that are read at once."""
COMPRESSED_BLOCK: Final = 64 << 10
"""As above, of compressed files: their content may be a thousand times as large."""
_PIECE: Final = 4096
"""Bytes that are decompressed at once: a break loses a few lines at most."""


def ingest(
    paths: Sequence[str], into: str, options: IngestOptions | None = None, progress: Progress = lambda _done, _all: None
) -> IngestReport:
    """
    Read request logs into the tables of a folder; lines that are there already add nothing. Without a line no table is made.

    A run that is killed leaves whole chunks behind, and the next run over the same files adds the rest.

    Args:
        paths: files, folders or `-` for standard input; plain, gzip or zstd by their first bytes.
        into: a folder, or a URI that `Table` knows.
        options: what has to be known about the logs.
        progress: called after each file, and after each block of it, with the bytes of files as they lie on disk.

    Raises:
        UnreadableLog: a path is not there or cannot be read; nothing was added. A file that breaks off is in the report instead.
        BadSnapshot: the topic snapshot cannot be read.
        TableError: the tables cannot be read or written; what was committed before stays.

    """
    options = options or IngestOptions()
    files, left_out = log_files(paths, options.names, follow_links=options.follow_links)
    topics = options.topics()
    report = IngestReport(left_out=left_out)
    adding: Ingest | None = None
    for held in gathered(_parsed(files, options, progress, report.broken), CHUNK, CHUNK_BYTES):
        adding = adding or Ingest(IngestTables.create(into), topics)
        report.add(adding.add(partial(adding.stage, [Parsed.of(held)])))
    return report


def _parsed(
    files: Sequence[str], options: IngestOptions, progress: Progress, broken: dict[str, str]
) -> Iterator[pa.RecordBatch]:
    """Parse the lines of files; of a file that breaks off the lines before that, and why in `broken`."""
    sizes = [size_of(file) for file in files]
    done, total = 0, sum(sizes)
    for file, size in zip(files, sizes, strict=True):
        progress(done, total)
        source, number = options.source(file), 1
        try:
            for lines, at in lines_of(file):
                parsed = parse_lines(lines, range(number, number + len(lines)), source)
                number += len(lines)
                yield from (*parsed.requests.to_batches(), *parsed.quarantine.to_batches())
                progress(done + min(at, size), total)  # the file may grow meanwhile
        except UnreadableLog as error:
            broken[file] = error.why
        done += size
    progress(total, total)


def lines_of(file: str) -> Iterator[tuple[list[bytes], int]]:
    """
    The lines of a file or of standard input, without their line feeds, and the bytes of the file on disk that were read by then (0 of a pipe).

    One that is longer than `LONGEST` is cut to one byte more than that. Raises `UnreadableLog`, after all lines that could be read, when the
    file cannot be opened or its compression breaks off.
    """
    rest, skipping, at = b"", False, 0
    try:
        with nullcontext(sys.stdin.buffer) if file == STANDARD_INPUT else Path(file).open("rb") as raw:
            seekable = raw.seekable()
            for block in _decompressed(raw):
                at = raw.tell() if seekable else 0
                first, *more = block.split(b"\n")
                if not skipping:
                    rest += first[: LONGEST + 1 - len(rest)]
                skipping = not more and len(rest) > LONGEST
                if more:
                    yield [rest, *more[:-1]], at
                    rest = more[-1]
    except (OSError, Broken) as error:
        if rest:
            yield [rest], at
        if isinstance(error, Broken):
            why = f"the compressed file is damaged or ends too early ({error})"
        else:
            why = error.strerror or str(error)  # str(error) has the path as well
        raise UnreadableLog(file, why) from error
    if rest:
        yield [rest], at


def _decompressed(raw: Any) -> Iterator[bytes]:  # noqa: ANN401 - a buffered reader
    beginning = raw.peek(4)[:4]
    if beginning.startswith(b"\x1f\x8b"):
        return _unpacked(gzip.GzipFile(fileobj=raw).read1)
    if beginning.startswith(b"\x28\xb5\x2f\xfd"):
        return _unpacked(pa.CompressedInputStream(pa.PythonFile(raw, "r"), "zstd").read)
    return iter(partial(raw.read, BLOCK), b"")


class Broken(Exception):
    """A compressed file is damaged or ends too early; private to this module."""


def _unpacked(read: Callable[[int], bytes]) -> Iterator[bytes]:
    """
    What a decompressor reads, some pieces at a time.

    Raises `Broken` after all that was decoded before the break, but for the last 8 KiB.
    """
    held: list[bytes] = []
    try:
        while piece := read(min(_PIECE, COMPRESSED_BLOCK)):
            held.append(piece)
            if len(held) * _PIECE >= COMPRESSED_BLOCK:
                yield b"".join(held)
                held.clear()
    except (OSError, EOFError, zlib.error, pa.ArrowException) as error:
        yield b"".join(held)
        if isinstance(error, OSError) and error.errno is not None:  # the disk's, not the decompressor's
            raise
        raise Broken(str(error)) from error
    yield b"".join(held)
