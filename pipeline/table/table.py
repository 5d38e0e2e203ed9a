"""A table of Parquet files of which readers see only what was committed."""

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from itertools import groupby
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol, Self, TypeVar

import pyarrow as pa

from ..errors import LostCommit, OtherSchema, TableError
from .layout import File, TableLayout
from .log import Log
from .merging import compact, compactable, merged_files
from .storage import Storage, names_of
from .writing import CHUNK_BYTES, Writer, gathered

Item = TypeVar("Item")
Answer = TypeVar("Answer")


class Run(Protocol):
    """Does the same with each of some items; `quotascope.pipeline.spark.run` gives one that asks Spark's workers."""

    def __call__(
        self, work: Callable[[Item], Answer], items: Sequence[Item]
    ) -> Iterable[Answer]:
        """Return the answers in the order of the items; both are sent between processes."""


def run_here(work: Callable[[Item], Answer], items: Sequence[Item]) -> Iterable[Answer]:
    """Do it in this process, one after the other."""
    return map(work, items)


ATTEMPTS: Final = 20
"""As many writers at once can each commit before the slowest of them gives up."""

Result = TypeVar("Result")


def retried(attempt: Callable[[], Result]) -> Result:
    """
    Make an attempt, again while another process commits first.

    Args:
        attempt: reads what the table holds each time: the commit that it lost to may have added the same rows.

    Raises:
        LostCommit: of the last of `ATTEMPTS` attempts.

    """
    for _ in range(ATTEMPTS - 1):
        with suppress(LostCommit):
            return attempt()
    return attempt()


CHUNK: Final = 1_000_000
"""Rows that an append holds in memory and sorts at once, if they have no more than `CHUNK_BYTES`."""

NO_NOTES: Final[Mapping[str, int]] = MappingProxyType({})
"""Where a commit keeps none."""

_EPOCH: Final = dt.date(1970, 1, 1)


class Turn(NamedTuple):
    """One of several processes that look at what a table holds, and then add what it does not; of two with the same turn one fails."""

    of: str
    """The batch id that all of them share."""
    epoch: int


class Table:
    """
    A committed table: a Delta table whose files are sorted, one bucket and one day each.

    What an append or a compaction writes becomes visible by its one commit, as a whole. A table can be sent to other processes, which then
    see what is committed when they look; the workers of Spark read and write its files themselves and leave the commit to the driver.

    Args:
        storage: where it lies.
        schema: the columns of its files.
        layout: how rows are spread over files, and their order.

    """

    def __init__(
        self, storage: Storage, schema: pa.Schema, layout: TableLayout
    ) -> None:
        self.storage: Storage = storage
        self.schema: pa.Schema = schema
        self.layout: TableLayout = layout

    def __reduce__(self) -> tuple[type[Self], tuple[Storage, pa.Schema, TableLayout]]:
        return type(self), (self.storage, self.schema, self.layout)

    @classmethod
    def create(
        cls,
        path: str,
        schema: pa.Schema,
        layout: TableLayout,
        options: Mapping[str, str] | None = None,
    ) -> Self:
        """
        Make a table, or open the one that is there, whose layout then counts, and which gets the columns that it lacks.

        Args:
            path: a folder, or a URI such as `s3://bucket/table` that deltalake knows.
            schema: the columns; none may be called `day` or `bucket`. One that may be null can be added later, or renamed (`FORMERLY`).
            layout: how rows are spread over files, and their order.
            options: credentials and endpoints, as deltalake's `storage_options`.

        Raises:
            OtherSchema: the one that is there has other columns.
            NotWritten: it cannot be made.

        """
        storage = Storage(path, options or {})
        log = Log.create(storage, schema, layout)
        if differences := _differences(log.schema, schema):
            raise OtherSchema(path, differences)
        log.add_columns(schema)
        return cls(storage, schema, log.layout)

    @classmethod
    def open(
        cls,
        path: str,
        options: Mapping[str, str] | None = None,
        schema: pa.Schema | None = None,
    ) -> Self:
        """
        Open a table.

        Args:
            path: as in `create`.
            options: as in `create`.
            schema: the columns to read, also where an earlier release made the table; those of the table by default.

        Raises:
            NoTable: there is none.
            UnreadableTable: its log is damaged, or of another program.

        """
        storage = Storage(path, options or {})
        log = Log.open(storage)
        return cls(storage, log.schema if schema is None else schema, log.layout)

    @property
    def identity(self) -> str:
        """The table's id, which another one made later at the same place does not have."""
        return self._log.identity

    @property
    def version(self) -> int:
        """Number of the last commit, from 0."""
        return self._current().version

    @property
    def first_kept_day(self) -> int | None:
        """Days before this one (since 1970, UTC) were dropped when they had rows; None when none ever were."""
        return self._current().first_kept_day

    def holds(self, batch_id: str, epoch: int = 0) -> bool:
        """Whether a batch was committed: all epochs of an id up to the last one were."""
        last = self.last_epoch(batch_id)
        return last is not None and epoch <= last

    def last_epoch(self, batch_id: str) -> int | None:
        """Return the last epoch of a batch id that was added; None if none was."""
        return self._current().epoch_of(batch_id)

    def added_since(self, version: int | None) -> tuple[int, tuple[File, ...]]:
        """
        Return the last commit's number, and the files with rows that came after an earlier one; None gives all files.

        What was compacted since is returned as it was before.

        Raises:
            UnreadableTable: that is so long ago that the log has forgotten it (30 days).

        """
        log = self._current()
        if version is None:
            return log.version, log.files()
        return log.version, log.added_since(version)

    def files(self, *, days: Iterable[int] | None = None) -> tuple[File, ...]:
        """Return what the last commit lists, by bucket, day (since 1970; all of them by default) and age."""
        wanted = None if days is None else set(days)
        files = self._current().files()
        return tuple(file for file in files if wanted is None or file.day in wanted)

    def buckets(self) -> dict[int, tuple[File, ...]]:
        """Return the files of each bucket; together they hold every row of each of its users."""
        groups = groupby(self.files(), key=lambda file: file.bucket)
        return {bucket: tuple(files) for bucket, files in groups}

    def batches(
        self, files: Sequence[File], columns: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """
        Yield the rows of files merged in the order of the table, late rows in their place.

        Of the files of one bucket this gives each client's rows together and in order. It holds one batch of each file and the rows of
        one client in memory.

        Raises:
            MissingFile, DamagedFile, UnreachableTable: a file is gone, is not as it was committed, or could not be read.

        """
        yield from merged_files(self.storage, files, self.layout, self.schema, columns)

    def read(
        self,
        columns: Sequence[str] | None = None,
        *,
        files: Sequence[File] | None = None,
    ) -> pa.Table:
        """Return all rows, or those of some files, bucket by bucket, each in order; in memory."""
        chosen = self.files() if files is None else files
        groups = groupby(chosen, key=lambda file: file.bucket)
        batches = [
            batch for _, group in groups for batch in self.batches(list(group), columns)
        ]
        schema = (
            self.schema
            if columns is None
            else pa.schema([self.schema.field(name) for name in columns])
        )
        return pa.Table.from_batches(batches, schema)

    def append(
        self,
        batch_id: str,
        rows: pa.Table | Iterable[pa.RecordBatch],
        epoch: int = 0,
        notes: Mapping[str, int] = NO_NOTES,
    ) -> int:
        """
        Stage and commit rows in any order, unless their batch was added before; return how many were added.

        Arguments and errors are those of `commit`.

        """
        if self.holds(batch_id, epoch):
            return 0
        return self.commit(batch_id, self.stage(rows), epoch, notes=notes)

    def stage(self, rows: pa.Table | Iterable[pa.RecordBatch]) -> list[File]:
        """Write rows as files that no reader sees until `commit`; a worker of Spark does this."""
        files: list[File] = []
        try:
            for chunk in _chunks(rows, self.schema):
                files += self._writer.write(chunk)
        except BaseException:
            self._writer.discard(files)
            raise
        return files

    def commit(
        self,
        batch_id: str,
        files: Sequence[File],
        epoch: int = 0,
        turn: Turn | None = None,
        notes: Mapping[str, int] = NO_NOTES,
    ) -> int:
        """
        Add the rows of staged files at once, unless their batch was added before; return how many were added.

        The files of a batch that was added before are removed.

        Args:
            batch_id: what makes them the same rows again.
            files: as `stage` has written them.
            epoch: number within the batch id.
            turn: is taken with the commit.
            notes: numbers that are kept with it by name, the largest of each, and read by `last_epoch`.

        Raises:
            LostCommit: another process took the turn; nothing was added.
            NotWritten: no space, or no permission; nothing was added.

        """
        last = self.last_epoch(batch_id)
        if last is None or last < epoch:
            try:
                return self.advance(
                    batch_id, files, after=last, epoch=epoch, turn=turn, notes=notes
                )
            except LostCommit:
                if not self.holds(batch_id, epoch):
                    raise
        self._writer.discard(files)
        return 0

    def advance(
        self,
        batch_id: str,
        files: Sequence[File],
        *,
        after: int | None,
        epoch: int,
        turn: Turn | None = None,
        notes: Mapping[str, int] = NO_NOTES,
    ) -> int:
        """
        Add the rows of staged files as what follows an epoch of a batch id, None for its begin; return how many were added.

        Raises:
            LostCommit: that is not the last epoch any more, or another process took the turn; nothing was added.
            NotWritten: no space, or no permission; nothing was added.

        """
        epochs = {} if turn is None else {turn.of: turn.epoch}
        with self._discarded_unless_committed(files):
            log = self._current()
            if log.epoch_of(batch_id) != after:
                raise LostCommit(self.storage.uri, f"{batch_id} went on")
            taken = None if turn is None else log.epoch_of(turn.of)
            if turn is not None and taken is not None and turn.epoch <= taken:
                raise LostCommit(self.storage.uri, f"{turn.of} went on")
            kept = {name: max(number, log.epoch_of(name) or number) for name, number in notes.items()}  # fmt: skip
            log.add(files, {**kept, **epochs, batch_id: epoch})
        return sum(file.rows for file in files)

    def compact(self, *, days: Iterable[int] | None = None, run: Run = run_here) -> int:
        """
        Merge the files of each bucket and day into one, in order; return how many files it took the place of.

        Args:
            days: days since 1970, UTC; all of them by default.
            run: where the work is done, a bucket and a day at a time.

        Raises:
            LostCommit: another process compacted or dropped days meanwhile; nothing changed.
            NotWritten: no space, or no permission; nothing changed.

        """
        groups = compactable(self.files(days=days))
        written: list[File] = []
        try:
            for file in run(self.merge, groups):
                written.append(file)  # noqa: PERF402 - what was written before an error is removed
        except BaseException:
            self._writer.discard(written)
            raise
        return self.replace([file for group in groups for file in group], written)

    def merge(self, files: Sequence[File]) -> File:
        """Write one file with the rows of files of one bucket and day, in order; no reader sees it until `replace`."""
        return compact(self._writer, files)

    def replace(self, old: Sequence[File], new: Sequence[File]) -> int:
        """
        Commit that new files, with the same rows, take the place of old ones; return how many were replaced.

        Raises:
            LostCommit: some of the old ones are not part of the table any more; nothing changed.
            NotWritten: no space, or no permission; nothing changed.

        """
        if old:
            with self._discarded_unless_committed(new):
                if not {file.path for file in old} <= {
                    file.path for file in self.files()
                }:
                    raise LostCommit(
                        self.storage.uri, "files were compacted or dropped"
                    )
                self._log.replace(old, new)
        return len(old)

    def drop_before(self, day: dt.date) -> int:
        """
        Take the days before this one (UTC) out of the table; return how many rows went.

        The files stay on disk for running readers, until `clean`. A batch that was dropped is not added again; `first_kept_day` bounds the
        days that were dropped.

        Raises:
            LostCommit: another process compacted or dropped days meanwhile; nothing changed.

        """
        first = (day - _EPOCH).days
        old = tuple(file for file in self.files() if file.day < first)
        if old:
            self._log.drop(old, first)
        return sum(file.rows for file in old)

    def clean(self, older_than_hours: int = 24) -> list[str]:
        """
        Delete files that no commit lists: what compaction and retention took out, and what killed writers left. Return their paths.

        Args:
            older_than_hours: longer than any append, compaction or read takes.

        """
        return self._current().clean(older_than_hours)

    @contextmanager
    def _discarded_unless_committed(self, files: Sequence[File]) -> Iterator[None]:
        """Remove files when their commit failed, but not when only what came after it did, such as a checkpoint of the log."""
        try:
            yield
        except TableError:
            paths = {file.path for file in files}
            if paths and paths <= {file.path for file in self.files()}:
                return
            self._writer.discard(files)
            raise

    @cached_property
    def _log(self) -> Log:
        return Log.open(self.storage)

    def _current(self) -> Log:
        if "_log" in self.__dict__:
            self._log.refresh()
        return self._log

    @cached_property
    def _writer(self) -> Writer:
        return Writer(storage=self.storage, schema=self.schema, layout=self.layout)


def _differences(found: pa.Schema, wanted: pa.Schema) -> str:
    kinds = {column.name: column.type for column in found}
    missing = [
        column.name
        for column in wanted
        if column.name not in kinds and not column.nullable
    ]
    other = [
        column.name
        for column in wanted
        if kinds.get(column.name, column.type) != column.type
    ]
    known = {name for column in wanted for name in names_of(column)}
    extra = [name for name in kinds if name not in known]
    words = (("without", missing), ("of another type", other), ("more", extra))
    return "; ".join(f"{word}: {', '.join(names)}" for word, names in words if names)


def _chunks(
    rows: pa.Table | Iterable[pa.RecordBatch], schema: pa.Schema
) -> Iterator[pa.Table]:
    if isinstance(rows, pa.Table):
        rows = rows.to_batches()
    for held in gathered(rows, CHUNK, CHUNK_BYTES):
        yield pa.Table.from_batches(held).select(schema.names).cast(schema)
