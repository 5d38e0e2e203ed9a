"""
One way in: lines become rows of the tables, each once, in one process and on Spark.

`Ingest.stage` writes the new ones of rows that came together, in this process or on a worker of Spark; `Ingest.add` commits what was staged.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quotascope.metrics import KafkaRelease

from ..releases import keep, last_named, notes
from ..request_log.mutations import LEDGER_COLUMNS, MutationLedger
from ..request_log.parsing import Parsed
from ..request_log.schema import REQUESTS
from ..table import File, Table, retried, staging
from ..table.storage import DAY_MS, partitions_of
from .options import IngestReport, IngestTables

RUNS: Final = "quotascope.ingest"
"""The id under which all commits are counted, so that of two runs at once one fails and looks again what is there."""
REMEMBERED: Final = 4_000_000
"""Identities that are held in memory between lookups; another row takes some 24 bytes."""


@dataclass(slots=True, kw_only=True)
class Staged:
    """What became of some lines, before it is part of the tables."""

    report: IngestReport = field(default_factory=IngestReport)
    """Of these lines, without what is added."""
    requests: list[File] = field(default_factory=list)
    """Files of new requests."""
    quarantine: list[File] = field(default_factory=list)
    """Files of new unreadable lines."""
    unresolved: pa.Table = field(default_factory=REQUESTS.empty_table)
    """New requests that name topics, if what they mutate may depend on lines that others stage."""
    named: dict[KafkaRelease, int] = field(default_factory=dict)
    """When each release was named last."""

    def add(self, other: "Staged") -> None:
        """Add what became of other lines."""
        self.report.add(other.report)
        self.requests += other.requests
        self.quarantine += other.quarantine
        self.unresolved = pa.concat_tables([self.unresolved, other.unresolved])
        keep(self.named, other.named)


class Batch(NamedTuple):
    """Lines that a stream brings again when it was interrupted."""

    stream: str
    number: int


class Ingest:
    """
    Adds lines to tables, and remembers what they hold and show of topics from one batch to the next.

    Args:
        tables: where lines go.
        snapshot: partitions by topic before the first line; more is learned from the table.

    """

    def __init__(self, tables: IngestTables, snapshot: Mapping[str, int] | None = None) -> None:
        self.tables = tables
        self._ledger = MutationLedger(snapshot)
        self._learned: int | None = None
        """The last commit of requests of which the ledger has the topics."""
        self._requests = Seen(tables.requests)
        self._quarantine = Seen(tables.quarantine)

    def add(self, stage: Callable[[], Staged], batch: Batch | None = None) -> IngestReport:
        """
        Stage and commit, the requests before the quarantine; again while another run adds rows first, which may be the same.

        Args:
            stage: calls `stage` with the lines, here or on workers, each time it is tried.
            batch: which one of a stream this is. What was committed of it is found in the tables; all of it, and it is not staged.

        Raises:
            LostCommit: other runs committed first each time (`retried`); what was added stays, and is not added twice.
            TableError: a table could not be read or written; nothing was added to it.

        """
        kept = 0

        def attempt() -> IngestReport:
            nonlocal kept
            if batch and all(table.holds(*batch) for table in self.tables):
                return IngestReport()
            runs = [table.last_epoch(RUNS) for table in self.tables]
            staged = stage()
            report, unresolved = staged.report, _once(staged.unresolved)
            # what an attempt added before it lost the commit of its quarantine is found as duplicates now
            report.duplicates += len(staged.unresolved) - len(unresolved) - kept
            marks = {batch.stream: batch.number} if batch else {}
            kept_with = notes(staged.named) | marks
            with self.tables.quarantine.discarded_unless_committed(staged.quarantine):
                with self.tables.requests.discarded_unless_committed(staged.requests):
                    self._stage_resolved(unresolved, staged)
                kept += _commit(self.tables.requests, staged.requests, runs[0], kept_with)
            report.quarantined = _commit(self.tables.quarantine, staged.quarantine, runs[1], marks)
            report.kept = kept
            return report

        return retried(attempt)

    def stage(self, pieces: Iterable[Parsed], *, of_many: bool = False) -> Staged:
        """
        Write the rows that are new, a piece after the other; no reader sees them before `add` commits them.

        Args:
            pieces: what is held in memory at once; lines of another call must not be the same unless these are committed.
            of_many: whether others stage at the same time, so that requests that name topics are left to `add`.

        """
        staged = Staged()
        report = staged.report
        with staging(self.tables) as (staged.requests, staged.quarantine):
            for piece in pieces:
                keep(staged.named, last_named(piece.requests["timestamp"], piece.requests["level"]))
                unreadable: int = pc.sum(piece.quarantine["lines"]).as_py() or 0
                report.read += len(piece.requests) + unreadable
                fresh = self._requests.fresh(piece.requests.select(REQUESTS.names), staged.requests)
                report.duplicates += len(piece.requests) - len(fresh)
                if of_many:
                    names_topics = pc.is_valid(fresh["topics"])
                    staged.unresolved = pa.concat_tables([staged.unresolved, fresh.filter(names_topics)])
                    fresh = fresh.filter(pc.invert(names_topics))
                self._stage_resolved(fresh, staged)
                refused = self._quarantine.fresh(piece.quarantine, staged.quarantine)
                report.quarantined_before += unreadable - len(refused)
                reasons: list[Any] = refused["reason"].to_pylist()
                report.reasons.update(reasons)
                staged.quarantine.extend(self.tables.quarantine.stage(refused))
        return staged

    def _stage_resolved(self, fresh: pa.Table, staged: Staged) -> None:
        if fresh["topics"].null_count < len(fresh):
            self._learn()
        resolved = self._ledger.resolve(fresh)
        staged.report.forwarded += resolved.forwarded
        staged.requests += self.tables.requests.stage(resolved.requests)

    def _learn(self) -> None:
        """Let the ledger learn what came to the table since the last time, by this run or by others; files that were only compacted are not read again."""
        table = self.tables.requests
        self._learned, files = table.new_since(self._learned)
        for batch in table.batches(files, LEDGER_COLUMNS):  # learning a row twice changes nothing
            named = batch.filter(pc.is_valid(batch["topics"]))
            if len(named):
                self._ledger.remember(pa.Table.from_batches([named]))


def _commit(table: Table, files: Sequence[File], last: int | None, kept: Mapping[str, int]) -> int:
    """Add the rows of staged files as the run after the last one; return how many."""
    if not files:
        return 0
    return table.advance(RUNS, files, after=last, epoch=0 if last is None else last + 1, notes=kept)


class Seen:
    """
    Which rows a table holds already, or held before their days were dropped.

    Rows are looked up by their identity, and only in files of the same bucket with overlapping times: the cost of a lookup does not grow with
    the table.

    """

    def __init__(self, table: Table) -> None:
        self._table = table
        self._loaded: dict[str, pa.Array[Any]] = {}

    def fresh(self, rows: pa.Table, staged: Sequence[File] = ()) -> pa.Table:
        """Rows that neither the table nor staged files hold, each once, in their order; none of days that were dropped."""
        rows = _once(rows)
        if not len(rows):
            return rows
        files = self._overlapping(rows, [*self._table.files(), *staged])
        # after the files: days that are dropped in between are still seen
        first, time = self._table.first_kept_day, self._table.layout.day_of
        if time and first is not None:
            old = pc.less(rows[time], pa.scalar(first * DAY_MS, pa.int64()))
            rows = rows.filter(pc.invert(old))
        known = [self._identities(file) for file in files]
        if not known:
            return rows
        there = pc.is_in(rows["identity"], pa.chunked_array(known, pa.binary()))
        return rows.filter(pc.invert(there))

    def _overlapping(self, rows: pa.Table, files: list[File]) -> list[File]:
        layout = self._table.layout
        if layout.day_of is None:
            return files
        partitions = set(np.unique(partitions_of(rows, layout)).tolist())
        span: Any = pc.min_max(rows[layout.day_of]).as_py()
        return [
            file
            for file in files
            if file.day * layout.buckets + file.bucket in partitions and file.overlaps(span["min"], span["max"] + 1)
        ]

    def _identities(self, file: File) -> "pa.Array[Any]":
        loaded = self._loaded.pop(file.path, None)
        if loaded is None:
            loaded = self._table.read(["identity"], files=[file])["identity"].combine_chunks()
        self._loaded[file.path] = loaded
        while len(self._loaded) > 1 and sum(map(len, self._loaded.values())) > REMEMBERED:
            del self._loaded[next(iter(self._loaded))]  # the least recently used
        return loaded


def _once(rows: pa.Table) -> pa.Table:
    """The first of rows of one identity."""
    distinct = pc.count_distinct(rows["identity"]).as_py()
    if distinct == len(rows):
        return rows
    numbered = pa.table({"identity": rows["identity"], "row": np.arange(len(rows))})
    first = numbered.group_by("identity").aggregate([("row", "min")])["row_min"]
    return rows.take(np.sort(first.to_numpy()))
