"""One process that reads logs into tables, a chunk of lines after the other; each chunk is one commit."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import pyarrow as pa

from ..errors import LostCommit, UnreadableLog
from ..request_log.mutations import MutationLedger
from ..request_log.parsing import Parsed, parse_lines
from ..request_log.schema import QUARANTINE, REQUESTS
from ..table import Table, retried
from .committing import next_run
from .files import STANDARD_INPUT, log_files
from .known_topics import KnownTopics
from .lines import lines_of
from .options import Options
from .report import Report
from .seen import Seen
from .tables import Tables

CHUNK: Final = 250_000
"""Lines that are held in memory and committed at once, about 200 MB."""

Progress: TypeAlias = Callable[[int, int], None]
"""Called with bytes done and bytes in all; 0 in all when nobody knows."""


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
        progress: told after each file.

    Raises:
        UnreadableLog: a path is not there; nothing was added. A file that breaks off is in the report instead.
        BadSnapshot: the topic snapshot cannot be read.
        TableError: the tables cannot be read or written; what was committed before stays.

    """
    options = options or Options()
    files = log_files(paths, options.names)
    run = _Run(Tables.create(into), MutationLedger(options.topics()))
    sizes = [0 if file == STANDARD_INPUT else Path(file).stat().st_size for file in files]  # fmt: skip
    for number, file in enumerate(files):
        progress(sum(sizes[:number]), sum(sizes))
        run.read(file, options)
    run.flush()
    progress(sum(sizes), sum(sizes))
    return run.report


class _Run:
    """Lines that were parsed but not committed, and what was counted."""

    def __init__(self, tables: Tables, ledger: MutationLedger) -> None:
        self.report = Report()
        self._tables = tables
        self._topics = KnownTopics(tables.requests, ledger)
        self._requests = Seen(tables.requests, "timestamp")
        self._quarantine = Seen(tables.quarantine, None)
        self._parsed: list[Parsed] = []
        self._held = 0

    def read(self, file: str, options: Options) -> None:
        """Take the lines of a file; those before a break count."""
        source = options.source(file)
        number = 1
        try:
            for lines in lines_of(file):
                numbers = range(number, number + len(lines))
                self._parsed.append(parse_lines(lines, numbers, source))
                number += len(lines)
                self._held += len(lines)
                if self._held >= CHUNK:
                    self.flush()
        except UnreadableLog as error:
            self.report.broken[file] = error.why

    def flush(self) -> None:
        """Commit what was taken."""
        parsed, self._parsed = self._parsed, []
        self.report.read += self._held
        self._held = 0
        requests = [REQUESTS.empty_table(), *(each.requests for each in parsed)]
        self._add_requests(pa.concat_tables(requests))
        refused = [QUARANTINE.empty_table(), *(each.quarantine for each in parsed)]
        self._add_quarantine(pa.concat_tables(refused))

    def _add_requests(self, requests: pa.Table) -> None:
        def new() -> _New:
            fresh = self._requests.fresh(requests)
            resolved = self._topics.resolve(fresh)
            return _New(resolved.requests, len(requests) - len(fresh), resolved.forwarded)  # fmt: skip

        new_rows = _append(self._tables.requests, new)
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


def _append(table: Table, new: Callable[[], _New]) -> _New:
    """Add rows; when another run added some meanwhile, find out again which are new."""

    def attempt() -> _New:
        batch = next_run(table)
        rows = new()
        if len(rows.rows) and not table.append(batch.name, rows.rows, batch.epoch):
            raise LostCommit(table.storage.uri, "another run added rows")
        return rows

    return retried(attempt)
