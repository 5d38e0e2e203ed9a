"""A table of Parquet files; readers only see committed files."""

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, groupby
from typing import Final, NamedTuple, Protocol, Self, TypeAlias, TypeVar

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from ..columns import by_number, gathered
from ..errors import (
    ChangedRows,
    DamagedFile,
    LostCommit,
    MissingFile,
    NotWritten,
    OtherSchema,
    OtherSource,
    TableError,
    UnreadableTable,
)
from . import kept, log
from .storage import DAYS, EPOCH, File, Storage, TableLayout, partitions_of, shard_of, unreachable
from .writers import SKEW_NS, Writer, living, writing

Item = TypeVar("Item")
Answer = TypeVar("Answer")
Result = TypeVar("Result")
Progress: TypeAlias = Callable[[int, int], None]
"""Callback with the number of things done, and of all (0 if unknown)."""


class Map(Protocol):
    """Function that works on many items: Python's own `map`, or `quotascope.pipeline.engine.Engine.map`."""

    def __call__(self, work: Callable[[Item], Answer], items: Sequence[Item], /) -> Iterable[Answer]:
        """Return the answers in the order of the items; work, items and answers may be sent between processes."""


ATTEMPTS: Final = 20
"""Number of attempts to commit; as many writers at once can each commit before the slowest of them gives up."""


def retried(attempt: Callable[[], Result]) -> Result:
    """
    Call a function that commits, and repeat it while another process commits first.

    Args:
        attempt: function that reads the table and commits; the other commit may have added the same rows.

    Raises:
        LostCommit: another process committed first in all `ATTEMPTS`.

    """
    for _ in range(ATTEMPTS - 1):
        with suppress(LostCommit):
            return attempt()
    return attempt()


CHUNK: Final = 1_000_000
"""Largest number of rows that are written, or converted, at once."""
CHUNK_BYTES: Final = 64 << 20
"""Largest size of rows that are written, or converted, at once; work on them takes several times as much memory."""
TASK_ROWS: Final = 4_000_000
"""Approximate number of rows of a shard in one task of a follower."""
_DROPPED: Final = "quotascope.dropped"
"""Name under which the log counts the first day that was kept when days were last dropped."""


class Lost(NamedTuple):
    """A file that cannot be read any more."""

    file: File
    why: str


class Cleaned(NamedTuple):
    """Result of a cleanup of files that no commit lists."""

    deleted: list[str]
    """Paths of deleted files."""
    of_writers: list[str]
    """Paths of files that stay because a running writer may have written them."""
    writers: list[Writer]
    """Processes that write to the table now."""


@dataclass(eq=False)
class Table:
    """
    A Delta table, in which a file has rows of one shard and one day.

    An append or a compaction is one commit, and becomes visible completely or not at all. A table can be sent to other
    processes, which see the commits up to that time. Spark's workers read and write files, and the driver commits them.

    Methods that read rows raise `MissingFile`, `DamagedFile` or `UnreachableTable`: a file is gone, differs from what
    was committed, or could not be read. Methods that write raise `NotWritten` without space or permission, and
    `LostCommit` if another process first committed a change that excludes this one. Then nothing is changed, and the
    files that were written are removed.
    """

    storage: Storage
    """Folder of the table."""
    schema: pa.Schema
    """Columns of the files."""
    layout: TableLayout
    """Division of rows among files."""

    def __reduce__(self) -> tuple[type[Self], tuple[Storage, pa.Schema, TableLayout]]:
        return type(self), (self.storage, self.schema, self.layout)

    @classmethod
    def create(cls, path: str, schema: pa.Schema, layout: TableLayout) -> Self:
        """
        Create a table, or open the existing one, which keeps its layout.

        Args:
            path: a folder, or a URI such as `s3://bucket/table` that deltalake knows.
            schema: the columns; none may be called `day` or `shard`.
            layout: its partitions.

        Raises:
            OtherSchema: the existing one has other columns.
            NotWritten: it cannot be created.

        """
        storage = Storage(path)
        table_log = log.made(storage, schema, layout)
        if differences := _differences(log.schema_of(table_log), schema):
            raise OtherSchema(path, differences)
        return cls(storage, schema, log.layout_of(table_log))

    @classmethod
    def open(cls, path: str, schema: pa.Schema | None = None) -> Self:
        """
        Open a table.

        Args:
            path: a folder or URI, as in `create`.
            schema: the columns to read; those of the table by default.

        Raises:
            NoTable: the folder has no table.
            UnreadableTable: its log is damaged, or of another program.
            UnreachableTable: its log could not be read.

        """
        storage = Storage(path)
        opened = log.opened(storage)
        return cls(storage, schema or log.schema_of(opened), log.layout_of(opened))

    @property
    def identity(self) -> str:
        """Id of the table; a table that is created later at the same place has another."""
        return str(self._log.metadata().id)

    @property
    def version(self) -> int:
        """Number of the last commit, from 0."""
        return self._current().version()

    @property
    def first_kept_day(self) -> int | None:
        """First day (since 1970, UTC) that was kept when days were last dropped; None if none were."""
        return self.last_epoch(_DROPPED)

    def last_epoch(self, batch_id: str) -> int | None:
        """Return the last epoch of a batch id that was committed; None without one."""
        return self._current().transaction_version(batch_id)

    def holds(self, batch_id: str, epoch: int = 0) -> bool:
        """Return whether an epoch of a batch id was committed, as all epochs up to the last one were."""
        last_epoch = self.last_epoch(batch_id)
        return last_epoch is not None and epoch <= last_epoch

    def files(self) -> tuple[File, ...]:
        """
        Return the files of the last commit, by shard, day and age.

        Raises:
            UnreadableTable: some rows are only marked as deleted.
            MissingFile, DamagedFile, UnreachableTable: a file that another program committed without its number of rows
                cannot be read.

        """
        return log.files_of(self.storage, self._current(), self.layout)

    def shards(self) -> dict[int, tuple[File, ...]]:
        """Return the files of each shard, which together hold all rows of the shard's users."""
        groups = groupby(self.files(), key=lambda file: file.shard)
        return {shard: tuple(files) for shard, files in groups}

    def files_of(self, name: str) -> tuple[File, ...]:
        """Return the files of a name's shard, which have all rows of the name."""
        shard = shard_of(name, self.layout.shards)
        return tuple(file for file in self.files() if file.shard == shard)

    def added_since(self, version: int | None) -> tuple[int, tuple[File, ...]]:
        """
        Return the number of the last commit, and the files that commits after `version` added; all files for None.

        Files that were compacted later are returned as they were added.

        Raises:
            UnreadableTable: the log no longer has these commits, which may be after 30 days.
            ChangedRows: another program changed rows since then.

        """
        last_version = self.version
        if version is None:
            return last_version, log.files_of(self.storage, self._log, self.layout)
        versions = range(version + 1, last_version + 1)
        added = (log.brought_by(self.storage, self.layout, commit) for commit in versions)
        return last_version, tuple(chain.from_iterable(added))

    def new_since(self, version: int | None) -> tuple[int, tuple[File, ...]]:
        """
        Return the number of the last commit, and existing files that have all rows added after `version`.

        They are the added files. If the log does not show them, or they were compacted meanwhile, all files of the
        table are returned, which also have older rows.
        """
        try:
            last_version, files = self.added_since(version)
        except (UnreadableTable, ChangedRows):
            last_version, files = self.added_since(None)
        current = self.files()
        return last_version, files if _paths(files) <= _paths(current) else current

    def batches(self, files: Iterable[File], columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of files, one file after the other; one row group is in memory."""
        schema = self._of(columns)
        for file in files:
            yield from self.storage.batches(file, schema)

    def read(self, columns: Sequence[str] | None = None, *, files: Iterable[File] | None = None) -> pa.Table:
        """Return all rows, or those of some files, in memory and in no particular order."""
        files_to_read = self.files() if files is None else files
        return pa.Table.from_batches(self.batches(files_to_read, columns), self._of(columns))

    def stage(
        self, rows: pa.Table | Iterable[pa.RecordBatch], chunk: int | None = None, chunk_bytes: int | None = None
    ) -> list[File]:
        """
        Write rows to files that no reader sees before `advance`; Spark's workers call this.

        A chunk of at most about `chunk` rows and `chunk_bytes` bytes, by default `CHUNK` and `CHUNK_BYTES`, becomes a
        file for each of its shards and days.
        Raises `NotWritten` also for a time outside the calendar.
        """
        batches = rows.to_batches() if isinstance(rows, pa.Table) else rows
        files: list[File] = []
        with self.discarded_unless_committed(files):
            for batches_of_chunk in gathered(batches, chunk or CHUNK, chunk_bytes or CHUNK_BYTES):
                held = pa.Table.from_batches(batches_of_chunk).select(self.schema.names).cast(self.schema)
                for number, partition in by_number(held, partitions_of(held, self.layout)):
                    day, shard = divmod(number, self.layout.shards)
                    if day not in DAYS:  # no reader could convert it to a date
                        raise NotWritten(self.storage.uri, f"day {day} since 1970 is in no calendar")
                    files.append(self.storage.write(self.layout, (day, shard), self.schema, partition.to_batches()))
        return files

    def merged(self, files: Sequence[File], map_items: Map = map) -> list[File]:
        """
        Merge staged files of each shard and day into one, before they are committed; return the files to commit.

        Each shard and day with several files is one item. The merged files are removed.
        """
        groups = _by_partition(files)
        some = [group for group in groups if len(group) > 1]
        merged = [file for group in groups if len(group) == 1 for file in group]
        with self.discarded_unless_committed(merged):
            for file in map_items(self._merge, some):
                merged.append(file)  # noqa: PERF402 - what was written before an error is removed
        for group in some:
            for file in group:
                self.storage.remove(file.path)
        return merged

    def advance(
        self,
        batch_id: str,
        files: Sequence[File],
        *,
        after_epoch: int | None,
        epoch: int,
        notes: Mapping[str, int] | None = None,
    ) -> int:
        """
        Commit staged files as the next epoch of a batch id, and return the number of added rows.

        Args:
            batch_id: id of the rows; an epoch of an id is added once.
            files: files of `stage`.
            after_epoch: last epoch that the caller knows of, None without one. If there is a later one, the commit is
                lost.
            epoch: number of the epoch.
            notes: numbers by name, of which the table keeps the largest; `last_epoch` returns them.

        """
        with self.discarded_unless_committed(files):
            if self.last_epoch(batch_id) != after_epoch:
                raise LostCommit(self.storage.uri, f"{batch_id} went on")
            self._check_staged(files)
            log.commit(self.storage, self._log, files, [], {**(notes or {}), batch_id: epoch})
        return sum(file.rows for file in files)

    def compact(self, *, map_items: Map = map) -> int:
        """
        Merge the files of each shard and day into one; return the number of replaced files.

        Each shard and day is one item. Compactions and drops of days exclude each other.
        """
        groups = [files for files in _by_partition(self.files()) if len(files) > 1]
        old = [file for files in groups for file in files]
        if not old:
            return 0
        merged: list[File] = []
        with writing([self.storage]), self.discarded_unless_committed(merged):
            for file in map_items(self._merge, groups):
                merged.append(file)  # noqa: PERF402 - what was written before an error is removed
            if not _paths(old) <= _paths(self.files()):
                raise LostCommit(self.storage.uri, "files were compacted or dropped")
            self._check_staged(merged)
            log.commit(self.storage, self._log, merged, old, {})
        return len(old)

    def _check_staged(self, files: Sequence[File]) -> None:
        """Raise `LostCommit` if a file that is to be committed is gone, because another program cleaned up."""
        if missing := self.storage.missing(files):
            raise LostCommit(
                self.storage.uri, f"{len(missing)} files that were written for it are gone, such as {missing[0].path}"
            )

    def _merge(self, files: Sequence[File]) -> File:
        """Write the rows of files of one shard and day to one file, with the permissions that all of them have."""
        partition = files[0].day, files[0].shard
        file = self.storage.write(self.layout, partition, self.schema, self.batches(files))
        self.storage.restrict(file, files)
        return file

    def drop_before(self, day: dt.date) -> int:
        """
        Drop the days before `day` (UTC) from the table, and return the number of dropped rows.

        The files stay on disk for running readers, until `clean`. Dropped rows are not added again, as
        `first_kept_day` is kept.
        """
        first_kept = (day - EPOCH).days
        old = [file for file in self.files() if file.day < first_kept]
        if old:
            log.commit(self.storage, self._log, [], old, {_DROPPED: first_kept})
        return sum(file.rows for file in old)

    def lost(self, map_items: Map = map) -> list[Lost]:
        """
        Return the files of the table that are gone or damaged, with the reason; all of their bytes are read.

        Raises:
            UnreachableTable: one could not be read, and nothing says that it is damaged.

        """
        files = self.files()
        return [Lost(file, reason) for file, reason in zip(files, map_items(self._lost, files), strict=True) if reason]

    def _lost(self, file: File) -> str:
        """Return the reason why a file cannot be read; empty if it can."""
        try:
            self.storage.check(file, self.schema)
        except (MissingFile, DamagedFile) as error:
            return error.why
        return ""

    def take_out(self, files: Sequence[File]) -> None:
        """Remove lost files from the table. Followers keep the rows made from them. Raises what `advance` raises."""
        log.commit(self.storage, self._current(), [], files, {})

    def clean(self, older_than_hours: int = 24, needed: Callable[[], Iterable[str]] = tuple) -> Cleaned:
        """
        Delete files that no commit lists: compacted and dropped files, and files of killed writers.

        Files that are younger than the first running writer stay, because a running writer may have written them.

        Args:
            older_than_hours: least age of files that are deleted; it must be longer than any read.
            needed: function that returns the paths of further files that stay; called after the files on disk were
                listed.

        Raises:
            UnreachableTable: the folder could not be read, or a file could not be deleted.

        """
        try:
            # in this order, a staged file whose writer has ended in between is in the commit that is read last
            unlisted = self._current().vacuum(
                retention_hours=older_than_hours, dry_run=True, enforce_retention_duration=False, full=True
            )
            running = living(self.storage)
            stay = {*needed(), *_paths(self.files())}
            begun_ns = min((writer.began_ns for writer in running), default=None)
            infos = self.storage.filesystem.get_file_info(sorted(set(unlisted) - stay))
            of_writers = [info.path for info in infos if begun_ns and (info.mtime_ns or 0) >= begun_ns - SKEW_NS]
            deleted = [info.path for info in infos if info.path not in set(of_writers)]
            for path in deleted:
                self.storage.remove(path)
        except (OSError, DeltaError) as error:
            raise unreachable(self.storage, "its folder", error) from error
        return Cleaned(deleted, of_writers, running)

    def forget(self) -> None:
        """
        Remove commits older than 30 days from the log; all followers of the table must have caught up.

        Raises:
            NotWritten: the log cannot be written to.

        """
        try:
            current = self._current()
            current.create_checkpoint()
            kept.keep(self.storage, current.version())
            current.cleanup_metadata()
            kept.forget(self.storage)
        except (OSError, DeltaError) as error:
            raise NotWritten(self.storage.uri, error) from error

    @contextmanager
    def discarded_unless_committed(self, files: Sequence[File]) -> Iterator[None]:
        """
        Remove staged files when their commit, or a step before it, failed.

        They stay when only a later step failed, such as a checkpoint of the log. Files that were committed without the
        others stay, too.
        """
        try:
            yield
        except BaseException as error:
            # the error is ignored only if all files are committed, and it is about the table
            committed = _paths(self.files()) if files else set()
            uncommitted = [file for file in files if file.path not in committed]
            for file in uncommitted:
                self.storage.remove(file.path)
            if uncommitted or not files:
                raise
            if not isinstance(error, TableError):
                raise

    @cached_property
    def _log(self) -> DeltaTable:
        """The log, as it was read first or in the last call of `_current`."""
        return log.opened(self.storage)

    def _current(self) -> DeltaTable:
        """Return the log with all commits until now."""
        if "_log" in self.__dict__:
            log.refresh(self.storage, self._log)
        return self._log

    def _of(self, columns: Sequence[str] | None) -> pa.Schema:
        """Return the schema of some columns, or of all for None."""
        if columns is None:
            return self.schema
        return pa.schema([self.schema.field(name) for name in columns])


@dataclass(frozen=True)
class Follower:
    """A table that is made of another one's rows."""

    table: Table
    make: Callable[[pa.Table], pa.Table]
    """
    Function that makes rows of this table from rows of the other, each from one, so that any chunks will do.

    It is sent to Spark's
    workers, so it must be a function of a module.
    """
    columns: Sequence[str]
    """Columns of the other table that `make` needs."""
    followers: Sequence["Follower"] = ()
    """Tables that are made of this one's rows."""


def follow(source: Table, followers: Sequence[Follower], map_items: Map = map) -> list[int]:
    """
    Append rows made of the source's new rows to each follower, then update its own followers.

    Returns the number of rows by follower.

    A commit that was lost is tried again (`retried`). An error of one follower does not stop the others.

    Args:
        source: the table whose commits are counted, so that each row is taken over exactly once.
        followers: tables that follow it. Rows that are new to several of them are read once. Their own followers are
            not counted.
        map_items: maps the work over the files, a few at a time.

    Raises:
        OtherSource: followers have rows of another table, such as one that was removed and created again at the same
            place. The error names all.

    """
    batch_id = following(source)
    counts = dict.fromkeys(range(len(followers)), 0)
    storages = [follower.table.storage for follower in followers]

    def attempt() -> None:
        """Append to each follower the rows that are new to it; those that are new to several are read once."""
        if strangers := list(_of_others(source, followers)):
            raise OtherSource([table.storage.uri for table, _ in strangers], strangers[0][1].storage.uri)
        by_epoch: dict[int | None, list[int]] = {}
        for index, follower in enumerate(followers):
            by_epoch.setdefault(follower.table.last_epoch(batch_id), []).append(index)
        errors: list[TableError] = []
        for epoch, indices in by_epoch.items():
            version, files = source.added_since(epoch)
            if not files:
                continue
            staged = _stage(source, [followers[place] for place in indices], files, map_items)
            for index, files_of_follower in zip(indices, staged, strict=True):
                try:
                    counts[index] += followers[index].table.advance(
                        batch_id, files_of_follower, after_epoch=epoch, epoch=version
                    )
                except TableError as error:
                    errors.append(error)
        if errors:
            raise errors[0]

    with writing(storages):
        retried(attempt)
    for follower in followers:
        follow(follower.table, follower.followers, map_items)
    return list(counts.values())


def can_follow(source: Table, follower: Table) -> bool:
    """Return whether a table can follow its source from the last time on: no commit and no file since then is lost."""
    last_epoch = follower.last_epoch(following(source))
    if last_epoch is not None and last_epoch > source.version:
        return False
    try:
        _, files = source.added_since(last_epoch)
        for file in files:
            source.storage.check(file, source.schema)
    except (ChangedRows, DamagedFile, MissingFile, UnreadableTable):
        return False
    return True


def remade(source: Table, follower: Follower, lost: Iterable[File] = (), map_items: Map = map) -> int:
    """
    Make the rows of a table again from all rows of its source; return the number of its rows.

    Rows of days that the source has dropped stay, but for those in lost files; days that were dropped in this table do
    not come back.
    """
    lost_paths = _paths(lost)

    def attempt() -> int:
        """Replace the files that can be made again, in one commit."""
        table = follower.table
        with writing([table.storage]):
            listed = table.files()
            version, files = source.added_since(None)
            kept_since, dropped_before = source.first_kept_day, table.first_kept_day
            old = [file for file in listed if kept_since is None or file.day >= kept_since or file.path in lost_paths]
            (staged,) = _stage(source, [follower], files, map_items)
            new = [file for file in staged if dropped_before is None or file.day >= dropped_before]
            for file in set(staged) - set(new):
                table.storage.remove(file.path)
            with table.discarded_unless_committed(new):
                versions = {following(source): version}
                log.commit(table.storage, table._current(), new, old, versions, other_rows=True)  # noqa: SLF001
            return sum(file.rows for file in table.files())

    return retried(attempt)


def following(source: Table) -> str:
    """Return the batch id under which followers count the commits of a table, for `Table.last_epoch`."""
    return f"follows {source.identity}"


def _of_others(source: Table, followers: Sequence[Follower]) -> Iterator[tuple[Table, Table]]:
    """
    Yield the direct and indirect followers that have rows of another table than their source, each with that source.

    If a table has never followed its source, the rows of its own followers are of another table, too.
    """
    pairs = list(_pairs(source, followers))
    # files first: if two runs begin at once, the slower one sees the other's files, and afterwards its epochs
    filled = [bool(table.files()) for table, _ in pairs]
    strangers = set[str]()
    for (table, followed), has_rows in zip(pairs, filled, strict=True):
        if followed.storage.uri in strangers or table.last_epoch(following(followed)) is None:
            strangers.add(table.storage.uri)
            if has_rows:
                yield table, followed


def _pairs(source: Table, followers: Sequence[Follower]) -> Iterator[tuple[Table, Table]]:
    """Yield all direct and indirect followers, each with its source, a source before its followers."""
    for follower in followers:
        yield follower.table, source
        yield from _pairs(follower.table, follower.followers)


def _stage(source: Table, followers: Sequence[Follower], files: Sequence[File], map_items: Map) -> list[list[File]]:
    """Stage the files of each follower; return them by follower."""
    with staging(follower.table for follower in followers) as staged:
        for files_of_task in map_items(partial(_make, source, followers), _tasks(files)):
            for files_of_follower, more_files in zip(staged, files_of_task, strict=True):
                files_of_follower.extend(more_files)
    return staged


def _make(source: Table, followers: Sequence[Follower], files: Sequence[File]) -> list[list[File]]:
    """
    Stage the rows that followers make of files of the source.

    Only users who may read these files may read the staged ones. Another run may have left the files of the source.
    """
    columns = list(dict.fromkeys(chain.from_iterable(follower.columns for follower in followers)))
    with staging(follower.table for follower in followers) as staged:
        for batches in gathered(source.batches(files, columns), CHUNK, CHUNK_BYTES):
            rows = pa.Table.from_batches(batches)
            for follower, files_of_follower in zip(followers, staged, strict=True):
                files_of_follower.extend(follower.table.stage(follower.make(rows)))
        for follower, files_of_follower in zip(followers, staged, strict=True):
            for file in files_of_follower:
                follower.table.storage.restrict(file, files, made_of=source.storage)
    return staged


@contextmanager
def staging(tables: Iterable[Table]) -> Iterator[list[list[File]]]:
    """Yield a list of files for each table; its files are removed if not all can be staged."""
    with ExitStack() as unless_staged:
        staged: list[list[File]] = []
        for table in tables:
            staged.append([])
            unless_staged.enter_context(table.discarded_unless_committed(staged[-1]))
        yield staged


def _paths(files: Iterable[File]) -> set[str]:
    """Return the paths of files."""
    return {file.path for file in files}


def _by_partition(files: Iterable[File]) -> list[tuple[File, ...]]:
    """Return the files of each shard and day."""
    in_order = sorted(files, key=lambda file: (file.shard, file.day, file.path))
    return [tuple(group) for _, group in groupby(in_order, key=lambda file: (file.shard, file.day))]


def _differences(schema: pa.Schema, expected: pa.Schema) -> str:
    """Return in words the columns that a schema lacks, has with other types, or has beyond the expected ones."""
    kinds = {column.name: column.type for column in schema}
    missing = [column.name for column in expected if column.name not in kinds]
    other_types = [column.name for column in expected if kinds.get(column.name, column.type) != column.type]
    extra = [name for name in kinds if name not in expected.names]
    words = (("without", missing), ("of another type", other_types), ("more", extra))
    return "; ".join(f"{word}: {', '.join(names)}" for word, names in words if names)


def _tasks(files: Sequence[File]) -> list[list[File]]:
    """Return the files in tasks: each of one shard, and of not more files than give a worker enough to do."""
    tasks: list[list[File]] = []
    rows = TASK_ROWS  # so that the first file begins a task
    for file in sorted(files, key=lambda file: (file.shard, file.day, file.path)):
        if rows >= TASK_ROWS or file.shard != tasks[-1][0].shard:
            tasks.append([])
            rows = 0
        tasks[-1].append(file)
        rows += file.rows
    return tasks
