"""One process that reads logs into tables, a chunk of lines after the other; each chunk is one commit."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

import pyarrow as pa

from quotascope.metrics import KafkaRelease

from ..errors import UnreadableLog
from ..request_log.mutations import MutationLedger
from ..request_log.parsing import Parsed, parse_lines
from ..request_log.releases import keep, last_named
from ..request_log.schema import QUARANTINE, REQUESTS
from .committing import Committer, Staged
from .files import log_files, size_of
from .lines import lines_of
from .options import IngestOptions, IngestReport, IngestTables

CHUNK: Final = 250_000
"""Rows that are held in memory and committed at once, if they have no more than `CHUNK_BYTES`."""
CHUNK_BYTES: Final = 96 << 20
"""Of these rows; what is done with them takes several times as much. A row of a usual log has some 300 bytes, one with long names 100 kB."""

Progress: TypeAlias = Callable[[int, int], None]
"""Called with bytes done and bytes in all, of the files as they lie on disk; 0 in all when these are unknown."""


def ingest(
    paths: Sequence[str],
    into: str,
    options: IngestOptions | None = None,
    progress: Progress = lambda _done, _all: None,
) -> IngestReport:
    """
    Read request logs into the tables of a folder; lines that are there already add nothing.

    A run that is killed leaves whole chunks behind, and the next run over the same files adds the rest.

    Args:
        paths: files, folders or `-` for standard input; plain, gzip or zstd by their first bytes.
        into: a folder, or a URI that `Table` knows.
        options: what has to be known about the logs.
        progress: called after each file, and after each block of it.

    Raises:
        UnreadableLog: a path is not there; nothing was added. A file that breaks off is in the report instead.
        BadSnapshot: the topic snapshot cannot be read.
        TableError: the tables cannot be read or written; what was committed before stays.

    """
    options = options or IngestOptions()
    found = log_files(paths, options.names, follow_links=options.follow_links)
    committer = Committer(IngestTables.create(into), MutationLedger(options.topics()))
    report = IngestReport(left_out=found.left_out)
    for chunk in _chunks(found.files, options, progress, report.broken):
        # an attempt that lost its commit looks up the same lines again
        report.add(committer.add([chunk].copy))
    return report


def _chunks(
    files: Sequence[str],
    options: IngestOptions,
    progress: Progress,
    broken: dict[str, str],
) -> Iterator[Staged]:
    """Parse the lines of files, a chunk at a time; of a file that breaks off the lines before that, and why in `broken`."""
    sizes = [size_of(file) for file in files]
    done, total = 0, sum(sizes)
    chunk = _Chunk()
    junk: set[bytes] = set()
    for file, size in zip(files, sizes, strict=True):
        progress(done, total)

        def note(at: int, begin: int = done, size: int = size) -> None:
            progress(begin + min(at, size), total)  # the file may grow meanwhile

        source, number = options.source(file), 1
        try:
            for lines in lines_of(file, note):
                numbers = range(number, number + len(lines))
                chunk.add(parse_lines(lines, numbers, source, junk), len(lines))
                number += len(lines)
                if chunk.rows >= CHUNK or chunk.bytes >= CHUNK_BYTES:
                    yield chunk.taken()
        except UnreadableLog as error:
            broken[file] = error.why
        done += size
    yield chunk.taken()
    progress(total, total)


class _Chunk:
    """Lines that were parsed but not committed."""

    def __init__(self) -> None:
        self.rows = self.bytes = 0
        self._staged = Staged()
        self._parsed: list[Parsed] = []
        self._named: dict[KafkaRelease, int] = {}
        """When each release was named last, by all lines so far."""

    def add(self, parsed: Parsed, lines: int) -> None:
        self._staged.lines += lines
        self._staged.quarantined_before += parsed.again
        keep(self._named, last_named(parsed.requests["timestamp"], parsed.levels))
        for table in (parsed.requests, parsed.quarantine):
            self.rows += table.num_rows
            self.bytes += table.nbytes
        if parsed.requests.num_rows or parsed.quarantine.num_rows:
            self._parsed.append(parsed)

    def taken(self) -> Staged:
        """What was added, to be committed; begins the next chunk."""
        staged, parsed = self._staged, self._parsed
        staged.named = dict(self._named)
        staged.unresolved = pa.concat_tables([REQUESTS.empty_table(), *(each.requests for each in parsed)])  # fmt: skip
        staged.unreadable = pa.concat_tables([QUARANTINE.empty_table(), *(each.quarantine for each in parsed)])  # fmt: skip
        self.rows = self.bytes = 0
        self._staged, self._parsed = Staged(), []
        return staged
