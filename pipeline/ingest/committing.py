"""
Adding lines to the tables, each once, in one process and on Spark.

`Ingest.stage` writes the new rows of a chunk, in this process or on a worker of Spark; `Ingest.add` commits staged
files.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..releases import NODES, Named
from ..request_log.mutations import LEDGER_COLUMNS, MutationLedger
from ..request_log.parsing import Parsed
from ..request_log.schema import REQUESTS
from ..table import File, Table, retried, staging, writing
from ..table.storage import DAY_MS, partitions_of
from .brokers import Brokers
from .options import IngestReport, IngestTables

RUNS: Final = "quotascope.ingest"
"""Id under which all commits are counted, so that of two runs at once one fails and looks again for new rows."""
REMEMBERED: Final = 4_000_000
"""Number of identities that are held in memory between lookups; another row takes some 24 bytes."""


@dataclass(slots=True, kw_only=True)
class Staged:
    """Result of staging lines, before a commit makes it part of the tables."""

    report: IngestReport = field(default_factory=IngestReport)
    """Counts of these lines, without those of added requests."""
    requests: list[File] = field(default_factory=list)
    """Files of new requests."""
    quarantine: list[File] = field(default_factory=list)
    """Files of new unreadable lines."""
    unresolved: pa.Table = field(default_factory=REQUESTS.empty_table)
    """New requests that name topics, if their mutations may depend on lines that others stage."""
    named: Named = field(default_factory=Named)
    """Last time at which each release was named."""
    nodes: int = 0
    """Greatest number of nodes that a response to Metadata named."""

    def add(self, staged: "Staged") -> None:
        """Add the result of other lines."""
        self.report.add(staged.report)
        self.requests += staged.requests
        self.quarantine += staged.quarantine
        self.unresolved = pa.concat_tables([self.unresolved, staged.unresolved])
        self.named.add(staged.named)
        self.nodes = max(self.nodes, staged.nodes)


class Batch(NamedTuple):
    """Batch of lines that a stream sends again after an interruption."""

    stream: str
    number: int


class Ingest:
    """
    Adds lines to tables, and remembers identities, brokers and partitions of topics from one batch to the next.

    Args:
        tables: tables that lines are added to.
        snapshot: partitions by topic before the first line; more is learned from the table.

    """

    def __init__(self, tables: IngestTables, snapshot: Mapping[str, int] | None = None) -> None:
        self.tables = tables
        self._ledger = MutationLedger(snapshot)
        self._learned: int | None = None
        """Last commit of requests of which the ledger has the topics."""
        self._requests = Seen(tables.requests)
        self._quarantine = Seen(tables.quarantine)
        self._brokers = Brokers()

    def add(self, stage: Callable[[], Staged], batch: Batch | None = None) -> IngestReport:
        """
        Stage and commit, the requests before the quarantine.

        Repeat it while another run commits first, perhaps the same rows.

        Args:
            stage: calls `stage` with the lines, here or on workers, for each attempt.
            batch: number of the batch in a stream. A batch that is committed in full is not staged again.

        Raises:
            LostCommit: other runs committed first each time (`retried`); added rows stay, and are not added twice.
            TableError: a table could not be read or written; nothing was added to it.

        """
        added = 0

        def attempt() -> IngestReport:
            with writing(table.storage for table in self.tables):
                return add_once()

        def add_once() -> IngestReport:
            nonlocal added
            if batch and all(table.holds(*batch) for table in self.tables):
                return IngestReport()
            runs = [table.last_epoch(RUNS) for table in self.tables]
            staged = stage()
            report, unresolved = staged.report, _once(staged.unresolved)
            report.repeated += len(staged.unresolved) - len(unresolved)
            # requests of an attempt that lost the commit of its quarantine are in the table: duplicates now
            report.duplicates -= added
            marks = {batch.stream: batch.number} if batch else {}
            notes = staged.named.notes() | report.brokers.notes() | marks
            if staged.nodes:
                notes[NODES] = staged.nodes
            with (
                self.tables.quarantine.discarded_unless_committed(staged.quarantine),
                self.tables.requests.discarded_unless_committed(staged.requests),
            ):
                brokers = Brokers()
                brokers.add(self._brokers)
                brokers.add(report.brokers)
                brokers.check(self.tables.requests)
            with self.tables.quarantine.discarded_unless_committed(staged.quarantine):
                with self.tables.requests.discarded_unless_committed(staged.requests):
                    self._stage_resolved(unresolved, staged)
                added += _commit(self.tables.requests, staged.requests, runs[0], notes)
            _commit(self.tables.quarantine, staged.quarantine, runs[1], marks)
            report.kept = added
            self._brokers = brokers
            self._requests.own(staged.requests)
            self._quarantine.own(staged.quarantine)
            return report

        return retried(attempt)

    def stage(self, chunks: Iterable[Parsed], *, of_many: bool = False) -> Staged:
        """
        Write the new rows of chunks, one after the other; no reader sees them before `add` commits them.

        Args:
            chunks: lines that are held in memory at once; lines of another call must not be the same unless these are
                committed.
            of_many: whether others stage at the same time, so that requests that name topics are left to `add`.

        """
        staged = Staged()
        report = staged.report
        with staging(self.tables) as (staged.requests, staged.quarantine):
            for chunk in chunks:
                staged.named.add(Named.of(*(chunk.requests[name] for name in ("broker", "timestamp", "level"))))
                staged.nodes = max(staged.nodes, pc.max(chunk.requests["nodes"]).as_py() or 0)
                report.read += len(chunk.requests) + (pc.sum(chunk.quarantine["lines"]).as_py() or 0)
                report.count_apis(chunk)
                requests = self._requests.new_rows(chunk.requests, staged.requests)
                new_requests = requests.fresh.select(REQUESTS.names)
                report.brokers.add(Brokers.of(chunk.requests, requests.fresh))
                report.duplicates += requests.duplicates
                report.repeated += len(chunk.requests) - requests.duplicates - len(new_requests)
                if of_many:
                    names_topics = pc.is_valid(new_requests["topics"])
                    staged.unresolved = pa.concat_tables([staged.unresolved, new_requests.filter(names_topics)])
                    new_requests = new_requests.filter(pc.invert(names_topics))
                self._stage_resolved(new_requests, staged)
                refused = self._quarantine.new_rows(chunk.quarantine, staged.quarantine)
                report.quarantined_before += refused.duplicates
                report.count_refused(refused.unknown)
                staged.quarantine.extend(self.tables.quarantine.stage(refused.fresh))
        return staged

    def _stage_resolved(self, fresh: pa.Table, staged: Staged) -> None:
        if fresh["topics"].null_count < len(fresh):
            self._learn()
        resolved = self._ledger.resolve(fresh)
        staged.report.forwarded += resolved.forwarded
        staged.requests += self.tables.requests.stage(resolved.requests)

    def _learn(self) -> None:
        """
        Let the ledger learn the topics of new commits, of this run or of others.

        Files that were only compacted are not read again.
        """
        table = self.tables.requests
        self._learned, files = table.new_since(self._learned)
        for batch in table.batches(files, LEDGER_COLUMNS):  # learning a row twice changes nothing
            mutating = batch.filter(pc.is_valid(batch["topics"]))
            if len(mutating):
                self._ledger.remember(pa.Table.from_batches([mutating]))


def _commit(table: Table, files: Sequence[File], last_epoch: int | None, notes: Mapping[str, int]) -> int:
    """Add the rows of staged files as the run after the last one; return their number."""
    if not files:
        return 0
    return table.advance(
        RUNS, files, after_epoch=last_epoch, epoch=0 if last_epoch is None else last_epoch + 1, notes=notes
    )


class Seen:
    """
    Identities of rows that a table holds, or held before their days were dropped.

    Rows are looked up by their identity, and only in files of the same shard with overlapping times: the cost of a
    lookup does not grow with the table.

    """

    def __init__(self, table: Table) -> None:
        self._table = table
        self._loaded: dict[str, pa.Array[Any]] = {}
        self._own: set[str] = set()
        """Paths of files that the same run committed."""

    def own(self, files: Sequence[File]) -> None:
        """Note files of this run: rows of them that come again are repeated in its input, not known before."""
        self._own.update(file.path for file in files)

    def new_rows(self, rows: pa.Table, staged: Sequence[File] = ()) -> "NewRows":
        """Return the rows that the table did not hold before this run, each once; rows of dropped days are left out."""
        if not len(rows):
            return NewRows(rows, rows, 0)
        files = self._overlapping(rows, [*self._table.files(), *staged])
        # read after the files, so that days dropped in between are noticed
        first_day, time = self._table.first_kept_day, self._table.layout.day_of
        count = _lines(rows)
        if time and first_day is not None:
            old = pc.less(rows[time], pa.scalar(first_day * DAY_MS, pa.int64()))
            rows = rows.filter(pc.invert(old))
        ours = self._own | {file.path for file in staged}
        known_identities = [self._identities(file) for file in files if file.path not in ours]
        if known_identities:
            rows = rows.filter(pc.invert(pc.is_in(rows["identity"], pa.chunked_array(known_identities, pa.binary()))))
        first_rows = _once(rows)
        own_identities = [self._identities(file) for file in files if file.path in ours]
        if own_identities:
            first_rows = first_rows.filter(
                pc.invert(pc.is_in(first_rows["identity"], pa.chunked_array(own_identities, pa.binary())))
            )
        return NewRows(first_rows, rows, count - _lines(rows))

    def _overlapping(self, rows: pa.Table, files: list[File]) -> list[File]:
        layout = self._table.layout
        if layout.day_of is None:
            return files
        partitions = set(np.unique(partitions_of(rows, layout)).tolist())
        span: Any = pc.min_max(rows[layout.day_of]).as_py()
        return [
            file
            for file in files
            if file.day * layout.shards + file.shard in partitions and file.overlaps(span["min"], span["max"] + 1)
        ]

    def _identities(self, file: File) -> "pa.Array[Any]":
        loaded = self._loaded.pop(file.path, None)
        if loaded is None:
            loaded = self._table.read(["identity"], files=[file])["identity"].combine_chunks()
        self._loaded[file.path] = loaded
        while len(self._loaded) > 1 and sum(map(len, self._loaded.values())) > REMEMBERED:
            del self._loaded[next(iter(self._loaded))]  # drops the least recently used
        return loaded


class NewRows(NamedTuple):
    """New rows of a chunk."""

    fresh: pa.Table
    """Rows that neither the table nor staged files hold, each once, in their order."""
    unknown: pa.Table
    """All rows that the table did not hold before this run, repeated ones included."""
    duplicates: int
    """Number of lines of rows that the table held before this run."""


def _lines(rows: pa.Table) -> int:
    """Return the number of lines of rows: a short unreadable text that comes again has one row."""
    return int(pc.sum(rows["lines"]).as_py() or 0) if "lines" in rows.column_names else len(rows)


def _once(rows: pa.Table) -> pa.Table:
    """Return the first row of each identity."""
    distinct = pc.count_distinct(rows["identity"]).as_py()
    if distinct == len(rows):
        return rows
    numbered = pa.table({"identity": rows["identity"], "row": np.arange(len(rows))})
    first_rows = numbered.group_by("identity").aggregate([("row", "min")])["row_min"]
    return rows.take(np.sort(first_rows.to_numpy()))
