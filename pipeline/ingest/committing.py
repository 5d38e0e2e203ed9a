"""
Adding of lines to the tables: every line once, in one process or on Spark.

`Ingest.stage` writes the new rows of chunks to files, in this process or on a worker of Spark. `Ingest.add` commits the
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
"""Id under which all commits are counted: of two runs at once, one fails and looks for new rows again."""
REMEMBERED: Final = 4_000_000
"""Largest number of identities that are held in memory between lookups, of some 24 bytes each."""


@dataclass(slots=True, kw_only=True)
class Staged:
    """Result of staging lines. A commit makes it part of the tables."""

    report: IngestReport = field(default_factory=IngestReport)
    """Counts of the lines; only a commit counts added requests (`IngestReport.kept`)."""
    requests: list[File] = field(default_factory=list)
    """Files of new requests."""
    quarantine: list[File] = field(default_factory=list)
    """Files of new unreadable lines."""
    unresolved: pa.Table = field(default_factory=REQUESTS.empty_table)
    """New requests with topics, if the number of their mutations may depend on lines that other workers stage."""
    named: Named = field(default_factory=Named)
    """Releases that the lines name."""
    nodes: int = 0
    """Largest number of nodes in a response to Metadata."""

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
    Writer of lines to tables, which remembers identities, brokers and partitions of topics between batches.

    Args:
        tables: tables that lines are added to.
        snapshot: number of partitions by topic before the first line. Later numbers are learned from the table.

    """

    def __init__(self, tables: IngestTables, snapshot: Mapping[str, int] | None = None) -> None:
        self.tables = tables
        self._ledger = MutationLedger(snapshot)
        self._learned: int | None = None
        """Last commit of requests from which the ledger has learned topics."""
        self._requests = Seen(tables.requests)
        self._quarantine = Seen(tables.quarantine)
        self._brokers = Brokers()

    def add(self, stage: Callable[[], Staged], batch: Batch | None = None) -> IngestReport:
        """
        Stage lines, commit the requests, and then commit the quarantine.

        All of it is repeated if another run commits first, because that may have added the same rows.

        Args:
            stage: function that calls `stage` with the lines, in this process or on workers; called for each attempt.
            batch: batch of a stream; if it was committed completely, it is not staged again.

        Raises:
            LostCommit: other runs committed first in all attempts (`retried`). Rows that were added stay, and are not
                added again.
            TableError: a table could not be read or written; nothing was added to it.

        """
        added = 0  # number of requests that all attempts have committed; a later attempt counts them as duplicates

        def attempt() -> IngestReport:
            """Add the lines while this process is registered as a writer of the tables."""
            with writing(table.storage for table in self.tables):
                return add_once()

        def add_once() -> IngestReport:
            """
            Stage the lines and commit them; an error removes the staged files that are not committed.

            Raises `LostCommit` if another run has committed since `runs` was looked up, before the lines were staged.
            """
            nonlocal added
            if batch and all(table.holds(*batch) for table in self.tables):
                return IngestReport()
            # before staging: a run that commits after this may add rows that count as new here
            runs = [table.last_epoch(RUNS) for table in self.tables]
            staged = stage()
            report, unresolved = staged.report, _once(staged.unresolved)
            report.repeated += len(staged.unresolved) - len(unresolved)
            report.duplicates -= added
            batch_note = {batch.stream: batch.number} if batch else {}
            notes = staged.named.notes() | report.brokers.notes() | batch_note
            if staged.nodes:
                notes[NODES] = staged.nodes
            # nothing is committed unless the brokers are certain
            with (
                self.tables.quarantine.discarded_unless_committed(staged.quarantine),
                self.tables.requests.discarded_unless_committed(staged.requests),
            ):
                brokers = Brokers()
                brokers.add(self._brokers)
                brokers.add(report.brokers)
                brokers.check(self.tables.requests)
            # The requests are committed first. If that fails, the unreadable lines are not committed either.
            with self.tables.quarantine.discarded_unless_committed(staged.quarantine):
                with self.tables.requests.discarded_unless_committed(staged.requests):
                    self._stage_resolved(unresolved, staged)
                added += _commit(self.tables.requests, staged.requests, runs[0], notes)
            _commit(self.tables.quarantine, staged.quarantine, runs[1], batch_note)
            report.kept = added
            self._brokers = brokers
            self._requests.own(staged.requests)
            self._quarantine.own(staged.quarantine)
            return report

        return retried(attempt)

    def stage(self, chunks: Iterable[Parsed], *, of_many: bool = False) -> Staged:
        """
        Write the new rows of chunks to files, which no reader sees before `add` commits them.

        Args:
            chunks: chunks of lines, one of which is in memory at a time. The same line must not be in two calls before
                the first is committed.
            of_many: whether other workers stage lines at the same time. Then requests with topics are left to `add`.

        """
        staged = Staged()
        report = staged.report
        with staging(self.tables) as (staged.requests, staged.quarantine):
            for chunk in chunks:
                staged.named.add(Named.of(*(chunk.requests[name] for name in ("broker", "timestamp", "level"))))
                staged.nodes = max(staged.nodes, pc.max(chunk.requests["nodes"]).as_py() or 0)
                report.read += len(chunk.requests) + (pc.sum(chunk.quarantine["lines"]).as_py() or 0)
                report.count_apis(chunk)
                looked_up = self._requests.new_rows(chunk.requests, staged.requests)
                requests = looked_up.fresh.select(REQUESTS.names)
                report.brokers.add(Brokers.of(chunk.requests, looked_up.fresh))
                report.duplicates += looked_up.duplicates
                report.repeated += len(chunk.requests) - looked_up.duplicates - len(requests)
                if of_many:
                    has_topics = pc.is_valid(requests["topics"])
                    staged.unresolved = pa.concat_tables([staged.unresolved, requests.filter(has_topics)])
                    requests = requests.filter(pc.invert(has_topics))
                self._stage_resolved(requests, staged)
                unreadable = self._quarantine.new_rows(chunk.quarantine, staged.quarantine)
                report.quarantined_before += unreadable.duplicates
                report.count_refused(unreadable.unknown)
                staged.quarantine.extend(self.tables.quarantine.stage(unreadable.fresh))
        return staged

    def _stage_resolved(self, fresh: pa.Table, staged: Staged) -> None:
        """Write new requests with the number of their mutations."""
        if fresh["topics"].null_count < len(fresh):
            self._learn()
        resolved = self._ledger.resolve(fresh)
        staged.report.forwarded += resolved.forwarded
        staged.requests += self.tables.requests.stage(resolved.requests)

    def _learn(self) -> None:
        """
        Let the ledger learn topics from commits that it has not read yet, of this run or of others.

        Files that were only compacted are not read again.
        """
        table = self.tables.requests
        self._learned, files = table.new_since(self._learned)
        for batch in table.batches(files, LEDGER_COLUMNS):  # learning a row twice changes nothing
            mutating = batch.filter(pc.is_valid(batch["topics"]))
            if len(mutating):
                self._ledger.remember(pa.Table.from_batches([mutating]))


def _commit(table: Table, files: Sequence[File], last_epoch: int | None, notes: Mapping[str, int]) -> int:
    """Commit staged files as the run after the last one, and return the number of their rows."""
    if not files:
        return 0
    epoch = 0 if last_epoch is None else last_epoch + 1
    return table.advance(RUNS, files, after_epoch=last_epoch, epoch=epoch, notes=notes)


class Seen:
    """
    Lookup of the rows that a table holds, or held before their days were dropped, by their identity.

    Only files of the same shard with overlapping times are read, so that the cost of a lookup does not grow with the
    table.
    """

    def __init__(self, table: Table) -> None:
        self._table = table
        self._loaded: dict[str, pa.Array[Any]] = {}
        """Identities by path of the file, the most recently used last."""
        self._own: set[str] = set()
        """Paths of files that the same run committed."""

    def own(self, files: Sequence[File]) -> None:
        """Remember files that this run committed: a row that is in them is a repetition, and not a duplicate."""
        self._own.update(file.path for file in files)

    def new_rows(self, rows: pa.Table, staged: Sequence[File] = ()) -> "NewRows":
        """
        Return the rows that neither the table nor `staged` files hold, each once.

        Rows of days that were dropped count as rows that the table holds.
        """
        if not len(rows):
            return NewRows(rows, rows, 0)
        files = self._overlapping(rows, [*self._table.files(), *staged])
        # read after the files, so that days dropped in between are noticed
        first_day, time_name = self._table.first_kept_day, self._table.layout.day_of
        count = _lines(rows)
        if time_name and first_day is not None:
            is_dropped = pc.less(rows[time_name], pa.scalar(first_day * DAY_MS, pa.int64()))
            rows = rows.filter(pc.invert(is_dropped))
        own_paths = self._own | {file.path for file in staged}
        unknown = self._without(rows, [file for file in files if file.path not in own_paths])
        fresh = self._without(_once(unknown), [file for file in files if file.path in own_paths])
        return NewRows(fresh, unknown, count - _lines(unknown))

    def _without(self, rows: pa.Table, files: Sequence[File]) -> pa.Table:
        """Return the rows whose identity is in none of some files."""
        if not files:
            return rows
        identities = pa.chunked_array([self._identities(file) for file in files], pa.binary())
        return rows.filter(pc.invert(pc.is_in(rows["identity"], identities)))

    def _overlapping(self, rows: pa.Table, files: list[File]) -> list[File]:
        """Return the files that may hold any of some rows, by shard, day and time."""
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
        """Return the identities of a file's rows, from memory if they were used lately."""
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
    """Rows that the table did not hold before this run, with their repetitions."""
    duplicates: int
    """Number of lines of the rows that the table held before this run."""


def _lines(rows: pa.Table) -> int:
    """Return the number of lines that rows stand for: equal unreadable texts share a row of the quarantine."""
    return int(pc.sum(rows["lines"]).as_py() or 0) if "lines" in rows.column_names else len(rows)


def _once(rows: pa.Table) -> pa.Table:
    """Return the first row of each identity."""
    distinct = pc.count_distinct(rows["identity"]).as_py()
    if distinct == len(rows):
        return rows
    numbered = pa.table({"identity": rows["identity"], "row": np.arange(len(rows))})
    first_rows = numbered.group_by("identity").aggregate([("row", "min")])["row_min"]
    return rows.take(np.sort(first_rows.to_numpy()))
