"""One process that reads logs into tables, a chunk of lines after the other; each chunk is one commit."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

import pyarrow as pa

from quotascope.metrics import KafkaRelease

from ..errors import LostCommit, UnreadableLog
from ..request_log.mutations import MutationLedger
from ..request_log.parsing import Parsed, parse_lines
from ..request_log.releases import keep, last_named, notes
from ..request_log.schema import QUARANTINE, REQUESTS
from ..table import NO_NOTES, Table, retried
from .committing import next_run
from .files import log_files, size_of
from .known_topics import KnownTopics
from .lines import lines_of
from .options import Options
from .report import Report
from .seen import Seen
from .tables import Tables

CHUNK: Final = 250_000
"""Rows that are held in memory and committed at once, if they have no more than `CHUNK_BYTES`."""
CHUNK_BYTES: Final = 96 << 20
"""Of these rows; what is done with them takes several times as much. A row of a usual log has some 300 bytes, one with long names 100 kB."""

Progress: TypeAlias = Callable[[int, int], None]
"""Called with bytes done and bytes in all, of the files as they lie on disk; 0 in all when these are unknown."""


def ingest(
    paths: Sequence[str],
    into: str,
    options: Options | None = None,
    progress: Progress = lambda _done, _all: None,
) -> Report:
    """
    Read request logs into the tables of a folder; lines that are there already add nothing.

    A run that is killed leaves whole chunks behind, and the next run over the same files adds the rest.

    Args:
        paths: files, folders or `-` for standard input; plain, gzip or zstd, told by their first bytes.
        into: a folder, or a URI that `Table` knows.
        options: what has to be known about the logs.
        progress: told after each file, and after each block of it.

    Raises:
        UnreadableLog: a path is not there; nothing was added. A file that breaks off is in the report instead.
        BadSnapshot: the topic snapshot cannot be read.
        TableError: the tables cannot be read or written; what was committed before stays.

    """
    options = options or Options()
    found = log_files(paths, options.names, follow_links=options.follow_links)
    files = found.files
    run = _Run(Tables.create(into), MutationLedger(options.topics()))
    sizes = [size_of(file) for file in files]
    run.report.left_out = found.left_out
    for number, file in enumerate(files):
        before = sum(sizes[:number])
        progress(before, sum(sizes))
        run.read(file, options, partial(_note, progress, before, sizes[number], sum(sizes)))  # fmt: skip
    run.flush()
    progress(sum(sizes), sum(sizes))
    return run.report


def _note(progress: Progress, before: int, size: int, total: int, at: int) -> None:
    """Tell how far the reading of a file is, which may grow meanwhile."""
    progress(before + min(at, size), total)


class _Run:
    """Lines that were parsed but not committed, and what was counted."""

    def __init__(self, tables: Tables, ledger: MutationLedger) -> None:
        self.report = Report()
        self._tables = tables
        self._topics = KnownTopics(tables.requests, ledger)
        self._requests = Seen(tables.requests, "timestamp")
        self._quarantine = Seen(tables.quarantine, None)
        self._parsed: list[Parsed] = []
        self._rows = self._bytes = 0
        self._junk: set[bytes] = set()
        self._named: dict[KafkaRelease, int] = {}
        """When each release was named last, by all lines so far."""

    def read(self, file: str, options: Options, at: Callable[[int], None]) -> None:
        """Take the lines of a file; those before a break count."""
        source = options.source(file)
        number = 1
        try:
            for lines in lines_of(file, at):
                numbers = range(number, number + len(lines))
                self._take(parse_lines(lines, numbers, source, self._junk))
                number += len(lines)
                self.report.read += len(lines)
                if self._rows >= CHUNK or self._bytes >= CHUNK_BYTES:
                    self.flush()
        except UnreadableLog as error:
            self.report.broken[file] = error.why

    def _take(self, parsed: Parsed) -> None:
        self.report.quarantined_before += parsed.again
        keep(self._named, last_named(parsed.requests["timestamp"], parsed.levels))
        for table in (parsed.requests, parsed.quarantine):
            self._rows += table.num_rows
            self._bytes += table.nbytes
        if parsed.requests.num_rows or parsed.quarantine.num_rows:
            self._parsed.append(parsed)

    def flush(self) -> None:
        """Commit what was taken."""
        parsed, self._parsed = self._parsed, []
        self._rows = self._bytes = 0
        requests = [REQUESTS.empty_table(), *(each.requests for each in parsed)]
        self._add_requests(pa.concat_tables(requests))
        refused = [QUARANTINE.empty_table(), *(each.quarantine for each in parsed)]
        self._add_quarantine(pa.concat_tables(refused))

    def _add_requests(self, requests: pa.Table) -> None:
        def new() -> _New:
            fresh = self._requests.fresh(requests)
            resolved = self._topics.resolve(fresh)
            return _New(resolved.requests, len(requests) - len(fresh), resolved.forwarded)  # fmt: skip

        new_rows = _append(self._tables.requests, new, notes(self._named))
        self.report.kept += len(new_rows.rows)
        self.report.duplicates += new_rows.known
        self.report.forwarded += new_rows.forwarded

    def _add_quarantine(self, quarantine: pa.Table) -> None:
        def new() -> _New:
            fresh = self._quarantine.fresh(quarantine)
            return _New(fresh, len(quarantine) - len(fresh))

        new_rows = _append(self._tables.quarantine, new)
        self.report.quarantined += len(new_rows.rows)
        self.report.quarantined_before += new_rows.known
        reasons: list[Any] = new_rows.rows["reason"].to_pylist()
        self.report.reasons.update(reasons)


class _New(NamedTuple):
    """What is to be added, and how many rows are not."""

    rows: pa.Table
    known: int
    forwarded: int = 0


def _append(
    table: Table, new: Callable[[], _New], notes: Mapping[str, int] = NO_NOTES
) -> _New:
    """Add rows, and keep notes with them; when another run added some meanwhile, find out again which are new."""

    def attempt() -> _New:
        batch = next_run(table)
        rows = new()
        if len(rows.rows) and not table.append(
            batch.name, rows.rows, batch.epoch, notes
        ):
            raise LostCommit(table.storage.uri, "another run added rows")
        return rows

    return retried(attempt)
