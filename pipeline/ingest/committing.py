"""Makes rows part of the tables: looks up which are new, fills in what other lines show of their topics, and commits them."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quotascope.metrics import KafkaRelease

from ..errors import ChangedRows, LostCommit, UnreadableTable
from ..request_log.mutations import LEDGER_COLUMNS, MutationLedger, ResolvedRequests
from ..request_log.releases import keep, notes
from ..request_log.schema import QUARANTINE, REQUESTS
from ..table import NO_NOTES, File, Table, Turn, retried
from ..table.layout import DAY_MS, partitions_of
from .options import IngestReport, IngestTables

RUNS: Final = "quotascope.ingest"
"""The id under which the commits of all runs are counted, so that of two at once one fails and looks again what is there."""
REMEMBERED: Final = 4_000_000
"""Identities that are held in memory between lookups; another row takes some 24 bytes."""


@dataclass(slots=True, kw_only=True)
class Staged:
    """What became of some lines, before it is part of the tables."""

    lines: int = 0
    requests: list[File] = field(default_factory=list)
    """Files of new requests."""
    quarantine: list[File] = field(default_factory=list)
    """Files of new unreadable lines."""
    unresolved: pa.Table = field(default_factory=REQUESTS.empty_table)
    """Requests that may be there already, and that may name topics."""
    unreadable: pa.Table = field(default_factory=QUARANTINE.empty_table)
    """Lines that may be in the quarantine already."""
    duplicates: int = 0
    quarantined_before: int = 0
    forwarded: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    named: dict[KafkaRelease, int] = field(default_factory=dict)
    """When each release was named last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitId:
    """What a commit is known by."""

    name: str
    epoch: int
    repeated: bool = False
    """Whether the same batch may come again, as after a stream's restart; else an epoch that is taken is another run's."""
    turn: Turn | None = None
    """Of all runs, which a batch with a name of its own takes as well."""


def next_run(table: Table) -> CommitId:
    """The next commit of runs; to be called before looking up what the table holds."""
    turn = _next_turn(table)
    return CommitId(name=turn.of, epoch=turn.epoch)


def repeated(table: Table, name: str, epoch: int) -> CommitId:
    """A commit that may come again under its own name, and takes its turn among the runs; to be called as `next_run` is."""
    return CommitId(name=name, epoch=epoch, repeated=True, turn=_next_turn(table))


def _next_turn(table: Table) -> Turn:
    last = table.last_epoch(RUNS)
    return Turn(RUNS, 0 if last is None else last + 1)


class Committer:
    """
    Commits batches one after the other, and remembers what they show of topics.

    Args:
        tables: where they go.
        ledger: with the topics' partitions before the first line; it learns the rest from the table.

    """

    def __init__(self, tables: IngestTables, ledger: MutationLedger) -> None:
        self._tables = tables
        self._topics = KnownTopics(tables.requests, ledger)
        self._requests = Seen(tables.requests, "timestamp")
        self._quarantine = Seen(tables.quarantine, None)
        self._kept = 0
        """Requests that an attempt added before it lost the commit of its quarantine."""

    def add(
        self,
        stage: Callable[[], Sequence[Staged]],
        commit_of: Callable[[Table], CommitId] = next_run,
    ) -> IngestReport:
        """
        Stage and commit, the requests before the quarantine; again while another run adds rows first, which may be the same.

        Args:
            stage: returns what became of all lines; what it writes itself are rows that the tables do not hold now.
            commit_of: what the commit to a table is known by.

        Raises:
            LostCommit: other runs committed first each time (`retried`); what was added stays, and is not added twice.
            TableError: a table could not be written; nothing was added to it.

        """

        def attempt() -> IngestReport:
            requests, quarantine = map(commit_of, self._tables)
            return self.commit(stage(), requests, quarantine)

        self._kept = 0
        return retried(attempt)

    def commit(
        self, parts: Sequence[Staged], requests: CommitId, quarantine: CommitId
    ) -> IngestReport:
        """Look up, resolve and commit; raises `LostCommit` when another run was quicker."""
        report = IngestReport(
            read=sum(part.lines for part in parts),
            duplicates=sum(part.duplicates for part in parts),
            quarantined_before=sum(part.quarantined_before for part in parts),
            forwarded=sum(part.forwarded for part in parts),
        )
        found = pa.concat_tables([part.unresolved for part in parts] or [REQUESTS.empty_table()])  # fmt: skip
        new = self._requests.fresh(found)
        resolved = self._topics.resolve(new)
        report.forwarded += resolved.forwarded
        # requests of an attempt that then lost the commit of its quarantine are found as duplicates now
        report.duplicates += len(found) - len(new) - self._kept
        files = [file for part in parts for file in part.requests]
        files += self._tables.requests.stage(resolved.requests)
        named: dict[KafkaRelease, int] = {}
        for part in parts:
            keep(named, part.named)
        self._kept += _added(self._tables.requests, files, requests, notes(named))

        unreadable = pa.concat_tables([part.unreadable for part in parts] or [QUARANTINE.empty_table()])  # fmt: skip
        refused = self._quarantine.fresh(unreadable)
        report.quarantined_before += len(unreadable) - len(refused)
        reasons: list[Any] = refused["reason"].to_pylist()
        report.reasons.update(reasons)
        for part in parts:
            report.reasons.update(part.reasons)
        files = [file for part in parts for file in part.quarantine]
        files += self._tables.quarantine.stage(refused)
        report.quarantined = _added(self._tables.quarantine, files, quarantine)
        report.kept, self._kept = self._kept, 0
        return report


def _added(
    table: Table,
    files: Sequence[File],
    commit: CommitId,
    notes: Mapping[str, int] = NO_NOTES,
) -> int:
    """Commit staged files; return how many rows were added."""
    if not files:
        return 0
    added = table.commit(commit.name, files, commit.epoch, commit.turn, notes)
    if added < sum(file.rows for file in files) and not commit.repeated:
        raise LostCommit(table.storage.uri, "another run added rows")
    return added


class Seen:
    """
    Which rows a table holds already, or held before their days were dropped.

    Rows are looked up by their identity, and only in files of the same bucket with overlapping times: the cost of a lookup does not grow with
    the table.

    Args:
        table: of the rows.
        time: the column that days are taken from, None for a table without days.

    """

    def __init__(self, table: Table, time: str | None) -> None:
        self._table = table
        self._time = time
        self._loaded: dict[str, pa.Table] = {}

    def fresh(self, rows: pa.Table) -> pa.Table:
        """Rows that the table does not hold, each once, in their order; none of days that were dropped."""
        rows = _once(rows)
        if not len(rows):
            return rows
        files = self._overlapping(rows)
        first = None if self._time is None else self._table.first_kept_day
        if (
            self._time and first is not None
        ):  # after the files: days that are dropped in between are still seen
            old = pc.less(rows[self._time], pa.scalar(first * DAY_MS, pa.int64()))
            rows = rows.filter(pc.invert(old))
        known = [self._identities(file) for file in files]
        if not known:
            return rows
        there = pc.is_in(rows["identity"], pa.chunked_array(known, pa.binary()))
        return rows.filter(pc.invert(there))

    def _overlapping(self, rows: pa.Table) -> list[File]:
        files = self._table.files()
        if self._time is None:
            return list(files)
        layout = self._table.layout
        partitions = set(np.unique(partitions_of(rows, layout)).tolist())
        span: Any = pc.min_max(rows[self._time]).as_py()
        return [
            file
            for file in files
            if file.day * layout.buckets + file.bucket in partitions
            and (file.first is None or file.first <= span["max"])
            and (file.last is None or file.last >= span["min"])
        ]

    def _identities(self, file: File) -> "pa.Array[Any]":
        loaded = self._loaded.pop(file.path, None)
        if loaded is None:
            batches = self._table.batches([file], ["identity"])
            loaded = pa.Table.from_batches(batches, pa.schema([("identity", pa.binary())]))  # fmt: skip
        self._loaded[file.path] = loaded
        held = sum(len(table) for table in self._loaded.values())
        for path in list(self._loaded)[:-1]:  # the least recently used first
            if held <= REMEMBERED:
                break
            held -= len(self._loaded.pop(path))
        return loaded["identity"].combine_chunks()


def _once(rows: pa.Table) -> pa.Table:
    """The first of rows of one identity."""
    distinct = pc.count_distinct(rows["identity"]).as_py()
    if distinct == len(rows):
        return rows
    numbered = pa.table({"identity": rows["identity"], "row": np.arange(len(rows))})
    first = numbered.group_by("identity").aggregate([("row", "min")])["row_min"]
    return rows.take(np.sort(first.to_numpy()))


class KnownTopics:
    """
    A ledger that learns what came to a table since the last request that names topics, by this run or by others.

    Each file is read once, and not again when files are compacted.

    Args:
        table: of requests.
        ledger: with what is known from elsewhere.

    """

    def __init__(self, table: Table, ledger: MutationLedger) -> None:
        self._table = table
        self._ledger = ledger
        self._version: int | None = None

    def resolve(self, requests: pa.Table) -> ResolvedRequests:
        """Return `MutationLedger.resolve` of requests that the table does not hold."""
        if requests["topics"].null_count < len(requests):
            for file in self._new_files():
                for batch in self._table.batches([file], LEDGER_COLUMNS):
                    rows = pa.Table.from_batches([batch])
                    if rows["topics"].null_count < len(rows):
                        self._ledger.remember(rows.filter(pc.is_valid(rows["topics"])))
        return self._ledger.resolve(requests)

    def _new_files(self) -> Iterable[File]:
        try:
            self._version, files = self._table.added_since(self._version)
        except (UnreadableTable, ChangedRows):  # the log does not say what is new
            self._version, files = self._table.added_since(None)
        now = self._table.files()
        there = {file.path for file in now}
        # what was compacted may be deleted by now: then all is read once more, and learning it twice changes nothing
        return files if all(file.path in there for file in files) else now
