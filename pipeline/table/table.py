"""A table of Parquet files of which readers see only what was committed."""

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from types import MappingProxyType
from typing import Final, NamedTuple

import pyarrow as pa

from ..errors import LostCommit, TableError
from .compaction import compact, compactable
from .file import File
from .reader import Reader
from .run import Run, run_here
from .writing import CHUNK_BYTES, Writer, gathered

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


class Table(Reader):
    """
    A committed table to read and to write: a Delta table whose files are sorted, one bucket and one day each.

    What an append or a compaction writes is seen by nobody until its one commit, and then as a whole. It can be sent to the workers of
    Spark, which read and write its files themselves and leave the commit to the driver.

    Args:
        storage: where it lies.
        schema: the columns of its files.
        layout: how rows are spread over files, and their order.

    """

    def append(
        self,
        batch_id: str,
        rows: pa.Table | Iterable[pa.RecordBatch],
        epoch: int = 0,
        notes: Mapping[str, int] = NO_NOTES,
    ) -> int:
        """
        Add rows, unless their batch was added before; return how many were added.

        Args:
            batch_id: what makes them the same rows again: the files they come from, or a stream.
            rows: in any order; an iterable is read piece by piece.
            epoch: number within the batch id, for a stream that counts its batches up.
            notes: as in `commit`.

        Raises:
            NotWritten: no space, or no permission; nothing was added.

        """
        if self.holds(batch_id, epoch):
            return 0
        return self.commit(batch_id, self.stage(rows), epoch, notes=notes)

    def stage(self, rows: pa.Table | Iterable[pa.RecordBatch]) -> list[File]:
        """Write rows as files that nobody reads until `commit`; a worker of Spark does this."""
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
        """Write one file with the rows of files of one bucket and day, in order; nobody reads it until `replace`."""
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

        The files stay on disk for those who read them now, until `clean`. A batch that was dropped is not added again; `first_kept_day`
        tells which days went.

        Raises:
            LostCommit: another process compacted or dropped days meanwhile; nothing changed.

        """
        first = (day - _EPOCH).days
        old = tuple(file for file in self.files() if file.day < first)
        if old:
            self._log.drop(old, first)
        return sum(file.rows for file in old)

    def clean(self, older_than_hours: int = 24, *, dry_run: bool = False) -> list[str]:
        """
        Delete files that no commit lists: what compaction and retention took out, and what killed writers left.

        Args:
            older_than_hours: longer than any append, compaction or read takes.
            dry_run: only say which.

        """
        return self._current().clean(older_than_hours, dry_run=dry_run)

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
    def _writer(self) -> Writer:
        return Writer(storage=self.storage, schema=self.schema, layout=self.layout)


def _chunks(
    rows: pa.Table | Iterable[pa.RecordBatch], schema: pa.Schema
) -> Iterator[pa.Table]:
    if isinstance(rows, pa.Table):
        rows = rows.to_batches()
    for held in gathered(rows, CHUNK, CHUNK_BYTES):
        yield pa.Table.from_batches(held).select(schema.names).cast(schema)
