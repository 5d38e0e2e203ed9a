"""A table of Parquet files of which readers see only what was committed."""

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, groupby
from typing import Final, Protocol, Self, TypeAlias, TypeVar

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from ..columns import by_number, gathered, names_of
from ..errors import ChangedRows, LostCommit, NotWritten, OtherSchema, OtherSource, TableError, UnreadableTable
from . import log
from .storage import DAYS, EPOCH, File, Storage, TableLayout, bucket_of, partitions_of, unreachable

Item = TypeVar("Item")
Answer = TypeVar("Answer")
Result = TypeVar("Result")
Progress: TypeAlias = Callable[[int, int], None]
"""Called with how much is done, and of how much (0 if that is unknown)."""


class Run(Protocol):
    """Does the same with each of some items; `quotascope.pipeline.spark.run` gives one that asks Spark's workers."""

    def __call__(
        self, work: Callable[[Item], Answer], items: Sequence[Item], progress: Progress | None = None
    ) -> Iterable[Answer]:
        """Return the answers in the order of the items; both are sent between processes. Progress is in items."""


def run_here(
    work: Callable[[Item], Answer], items: Sequence[Item], progress: Progress | None = None
) -> Iterable[Answer]:
    """Do it in this process, one after the other."""
    for done, item in enumerate(items, start=1):
        yield work(item)
        if progress is not None:
            progress(done, len(items))


ATTEMPTS: Final = 20
"""As many writers at once can each commit before the slowest of them gives up."""


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
"""Rows that are written, or made into others, at once, if they have no more than `CHUNK_BYTES`."""
CHUNK_BYTES: Final = 64 << 20
"""Of these rows; what is done with them takes several times as much."""
PORTION: Final = 4_000_000
"""About as many rows of a bucket are one piece of work for what follows."""
_DROPPED: Final = "quotascope.dropped"
"""What the log counts as this is the first day that was kept when days were last dropped."""


@dataclass(eq=False)
class Table:
    """
    A committed table: a Delta table of which each file is of one bucket and one day.

    What is appended or compacted becomes visible by one commit, as a whole. A table can be sent to other processes, which then see what is
    committed when they look; the workers of Spark read and write its files themselves and leave the commit to the driver.

    What reads rows raises `MissingFile`, `DamagedFile` or `UnreachableTable`: a file is gone, is not as it was committed, or could not be
    read. What writes raises `NotWritten`, for want of space or permission, or `LostCommit`, when another process first committed what
    excludes the change; then nothing changed, and the files that were written for it are removed.
    """

    storage: Storage
    """Where it lies."""
    schema: pa.Schema
    """The columns of its files."""
    layout: TableLayout
    """How rows are spread over files."""

    def __reduce__(self) -> tuple[type[Self], tuple[Storage, pa.Schema, TableLayout]]:
        return type(self), (self.storage, self.schema, self.layout)

    @classmethod
    def create(cls, path: str, schema: pa.Schema, layout: TableLayout) -> Self:
        """
        Make a table, or open the one that is there: it keeps its layout, and gets the columns that it lacks.

        Args:
            path: a folder, or a URI such as `s3://bucket/table` that deltalake knows.
            schema: the columns; none may be called `day` or `bucket`. One that may be null can be added later, or renamed (`FORMERLY`).
            layout: how rows are spread over files.

        Raises:
            OtherSchema: the one that is there has other columns.
            LostCommit: it lacks columns, and other processes committed first each time (`retried`).
            NotWritten: it cannot be made.

        """
        storage = Storage(path)
        made = log.made(storage, schema, layout)
        if differences := _differences(log.schema_of(made), schema):
            raise OtherSchema(path, differences)
        retried(partial(log.upgrade, storage, made, schema))
        return cls(storage, schema, log.layout_of(made))

    @classmethod
    def open(cls, path: str, schema: pa.Schema | None = None) -> Self:
        """
        Open a table.

        Args:
            path: as in `create`.
            schema: the columns to read, also where an earlier release made the table; those of the table by default.

        Raises:
            NoTable: there is none.
            UnreadableTable: its log is damaged, or of another program.
            UnreachableTable: its log could not be read.

        """
        storage = Storage(path)
        opened = log.opened(storage)
        return cls(storage, schema or log.schema_of(opened), log.layout_of(opened))

    @property
    def identity(self) -> str:
        """The table's id, which another one made later at the same place does not have."""
        return str(self._log.metadata().id)

    @property
    def version(self) -> int:
        """Number of the last commit, from 0."""
        return self._current().version()

    @property
    def first_kept_day(self) -> int | None:
        """Days before this one (since 1970, UTC) were dropped when they had rows; None when none ever were."""
        return self.last_epoch(_DROPPED)

    def last_epoch(self, batch_id: str) -> int | None:
        """Return the last epoch of a batch id that was added; None if none was."""
        return self._current().transaction_version(batch_id)

    def holds(self, batch_id: str, epoch: int = 0) -> bool:
        """Whether a batch was committed: all epochs of an id up to the last one were."""
        last = self.last_epoch(batch_id)
        return last is not None and epoch <= last

    def files(self) -> tuple[File, ...]:
        """
        Return what the last commit lists, by bucket, day and age.

        Raises:
            UnreadableTable: some rows are only marked as deleted.
            MissingFile, DamagedFile, UnreachableTable: a file that another program committed without its number of rows cannot be read.

        """
        return log.files_of(self.storage, self._current(), self.layout)

    def buckets(self) -> dict[int, tuple[File, ...]]:
        """Return the files of each bucket; together they hold every row of each of its users."""
        groups = groupby(self.files(), key=lambda file: file.bucket)
        return {bucket: tuple(files) for bucket, files in groups}

    def files_of(self, name: str) -> tuple[File, ...]:
        """Return the files of the bucket of a name: every row of it is in them."""
        bucket = bucket_of(name, self.layout.buckets)
        return tuple(file for file in self.files() if file.bucket == bucket)

    def added_since(self, version: int | None) -> tuple[int, tuple[File, ...]]:
        """
        Return the last commit's number, and the files with rows that came after an earlier one; None gives all files.

        What was compacted since is returned as it was before.

        Raises:
            UnreadableTable: that is so long ago that the log has forgotten it (30 days).
            ChangedRows: another program changed rows since.

        """
        last = self.version
        if version is None:
            return last, log.files_of(self.storage, self._log, self.layout)
        later = range(version + 1, last + 1)
        brought = (log.brought_by(self.storage, self.layout, each) for each in later)
        return last, tuple(chain.from_iterable(brought))

    def new_since(self, version: int | None) -> tuple[int, tuple[File, ...]]:
        """
        Return what `added_since` does, but of files that are still there.

        Where the log does not say what is new, or where that was compacted meanwhile, these are all files: some of their rows are older.
        """
        try:
            last, files = self.added_since(version)
        except (UnreadableTable, ChangedRows):
            last, files = self.added_since(None)
        now = self.files()
        return last, files if _paths(files) <= _paths(now) else now

    def batches(self, files: Iterable[File], columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of files, one file after the other, in the memory of a row group."""
        wanted = self._of(columns)
        for file in files:
            yield from self.storage.batches(file, wanted)

    def read(self, columns: Sequence[str] | None = None, *, files: Iterable[File] | None = None) -> pa.Table:
        """Return all rows, or those of some files, in memory and in no particular order."""
        chosen = self.files() if files is None else files
        return pa.Table.from_batches(self.batches(chosen, columns), self._of(columns))

    def stage(self, rows: pa.Table | Iterable[pa.RecordBatch]) -> list[File]:
        """
        Write rows as files that no reader sees until `advance`; a worker of Spark does this.

        Raises `NotWritten` for a time that is of no day of a calendar as well.
        """
        batches = rows.to_batches() if isinstance(rows, pa.Table) else rows
        files: list[File] = []
        with self.discarded_unless_committed(files):
            for held in gathered(batches, CHUNK, CHUNK_BYTES):
                chunk = pa.Table.from_batches(held).select(self.schema.names).cast(self.schema)
                for number, part in by_number(chunk, partitions_of(chunk, self.layout)):
                    day, bucket = divmod(number, self.layout.buckets)
                    if day not in DAYS:  # no reader could make a date of it
                        raise NotWritten(self.storage.uri, f"day {day} since 1970 is in no calendar")
                    files.append(self.storage.write(self.layout, (day, bucket), self.schema, part.to_batches()))
        return files

    def advance(
        self,
        batch_id: str,
        files: Sequence[File],
        *,
        after: int | None,
        epoch: int,
        notes: Mapping[str, int] | None = None,
    ) -> int:
        """
        Add the rows of staged files as what follows an epoch of a batch id; return how many were added.

        Args:
            batch_id: what makes them the same rows again.
            files: as `stage` has written them.
            after: the last epoch that is known, None for the begin; when it is not the last one any more, the commit is lost.
            epoch: number within the batch id.
            notes: numbers that are kept with it by name, the largest of each, and read by `last_epoch`.

        """
        with self.discarded_unless_committed(files):
            if self.last_epoch(batch_id) != after:
                raise LostCommit(self.storage.uri, f"{batch_id} went on")
            log.commit(self.storage, self._log, files, [], {**(notes or {}), batch_id: epoch})
        return sum(file.rows for file in files)

    def compact(self, *, run: Run = run_here) -> int:
        """
        Merge the files of each bucket and day into one; return how many files it took the place of.

        Each bucket and day is a piece of work of the run. Compactions and drops of days exclude each other.
        """
        parts = groupby(self.files(), key=lambda file: (file.bucket, file.day))
        groups = [files for _, part in parts if len(files := tuple(part)) > 1]
        old = [file for files in groups for file in files]
        if not old:
            return 0
        merged: list[File] = []
        with self.discarded_unless_committed(merged):
            for file in run(self._merge, groups):
                merged.append(file)  # noqa: PERF402 - what was written before an error is removed
            if not _paths(old) <= _paths(self.files()):
                raise LostCommit(self.storage.uri, "files were compacted or dropped")
            log.commit(self.storage, self._log, merged, old, {})
        return len(old)

    def _merge(self, files: Sequence[File]) -> File:
        """Write one file with the rows of files of one bucket and day, readable by users who may read all of them."""
        partition = files[0].day, files[0].bucket
        file = self.storage.write(self.layout, partition, self.schema, self.batches(files))
        self.storage.restrict(file, files)
        return file

    def drop_before(self, day: dt.date) -> int:
        """
        Take the days before this one (UTC) out of the table; return how many rows went.

        The files stay on disk for running readers, until `clean`. A batch that was dropped is not added again; `first_kept_day` bounds the
        days that were dropped.
        """
        first = (day - EPOCH).days
        old = [file for file in self.files() if file.day < first]
        if old:
            log.commit(self.storage, self._log, [], old, {_DROPPED: first})
        return sum(file.rows for file in old)

    def clean(self, older_than_hours: int = 24) -> list[str]:
        """
        Delete files that no commit lists: what compaction and retention took out, and what killed writers left. Return their paths.

        Args:
            older_than_hours: longer than any append, compaction or read takes.

        Raises:
            UnreachableTable: the folder could not be read.

        """
        try:
            paths = self._current().vacuum(
                retention_hours=older_than_hours, dry_run=False, enforce_retention_duration=False, full=True
            )
        except (OSError, DeltaError) as error:
            raise unreachable(self.storage, "its folder", error) from error
        return sorted(set(paths))

    @contextmanager
    def discarded_unless_committed(self, files: Sequence[File]) -> Iterator[None]:
        """Remove staged files when their commit, or what it waits for, failed, but not when only what came after it did, such as a checkpoint of the log."""
        try:
            yield
        except BaseException as error:
            if not files or not _paths(files) <= _paths(self.files()):
                for file in files:
                    self.storage.remove(file.path)
                raise
            if not isinstance(error, TableError):
                raise

    @cached_property
    def _log(self) -> DeltaTable:
        return log.opened(self.storage)

    def _current(self) -> DeltaTable:
        """The log with what was committed until now."""
        if "_log" in self.__dict__:
            log.refresh(self.storage, self._log)
        return self._log

    def _of(self, columns: Sequence[str] | None) -> pa.Schema:
        if columns is None:
            return self.schema
        return pa.schema([self.schema.field(name) for name in columns])


@dataclass(frozen=True)
class Follower:
    """A table that is made of another one's rows."""

    table: Table
    make: Callable[[pa.Table], pa.Table]
    """
    Makes rows of this table from rows of the other one, each from one, so that it does not matter how they are cut. It is sent to Spark's
    workers, so it must be a function of a module.
    """
    columns: Sequence[str]
    """What `make` needs of the other table."""
    followers: Sequence["Follower"] = ()
    """What is made of this table's rows."""


def follow(source: Table, followers: Sequence[Follower], run: Run = run_here) -> list[int]:
    """
    Append to each follower what is made of the source's new rows, then update its own followers; return how many rows each follower got.

    A commit that was lost is tried again (`retried`). What one follower cannot add keeps nothing from the others.

    Args:
        source: the table; its commits are counted, so that each row is taken over exactly once.
        followers: what follows it. Rows that are new to several of them are read once. Their own followers are not counted.
        run: where the work is done, a few files at a time.

    Raises:
        OtherSource: followers have rows of another table, such as of one that was removed and made again at the same place. It names all.

    """
    batch_id = following(source)
    counts = dict.fromkeys(range(len(followers)), 0)

    def attempt() -> None:
        if others := list(_of_others(source, followers)):
            raise OtherSource([each.storage.uri for each, _ in others], others[0][1].storage.uri)
        alike: dict[int | None, list[int]] = {}
        for place, follower in enumerate(followers):
            alike.setdefault(follower.table.last_epoch(batch_id), []).append(place)
        failed: list[TableError] = []
        for after, places in alike.items():
            version, files = source.added_since(after)
            if not files:
                continue
            staged = _staged(source, [followers[place] for place in places], files, run)
            for place, made in zip(places, staged, strict=True):
                try:
                    counts[place] += followers[place].table.advance(batch_id, made, after=after, epoch=version)
                except TableError as error:
                    failed.append(error)
        if failed:
            raise failed[0]

    retried(attempt)
    for follower in followers:
        follow(follower.table, follower.followers, run)
    return list(counts.values())


def following(source: Table) -> str:
    """Return the id under which followers count the commits of a table, for `Table.last_epoch`."""
    return f"follows {source.identity}"


def _of_others(source: Table, followers: Sequence[Follower]) -> Iterator[tuple[Table, Table]]:
    """
    Yield each follower, direct or not, with rows of another table than the one that it is to follow, and that one.

    Where a table has never followed its source, what its followers have is of other rows, too.
    """
    pairs = list(_pairs(source, followers))
    # files first: of two runs that begin at once, the slower one sees the files of the other, and then its epochs
    filled = [bool(table.files()) for table, _ in pairs]
    others = set[str]()
    for (table, followed), has_rows in zip(pairs, filled, strict=True):
        if followed.storage.uri in others or table.last_epoch(following(followed)) is None:
            others.add(table.storage.uri)
            if has_rows:
                yield table, followed


def _pairs(source: Table, followers: Sequence[Follower]) -> Iterator[tuple[Table, Table]]:
    for follower in followers:
        yield follower.table, source
        yield from _pairs(follower.table, follower.followers)


def _staged(source: Table, followers: Sequence[Follower], files: Sequence[File], run: Run) -> list[list[File]]:
    """The files of each follower, staged by the run."""
    with staging(each.table for each in followers) as staged:
        for portion in run(partial(_made, source, followers), _portions(files)):
            for made, more in zip(staged, portion, strict=True):
                made.extend(more)
    return staged


def _made(source: Table, followers: Sequence[Follower], files: Sequence[File]) -> list[list[File]]:
    """Write what is made of files of the source, for those only who may read these: another run may have left them."""
    columns = list(dict.fromkeys(chain.from_iterable(follower.columns for follower in followers)))
    with staging(each.table for each in followers) as staged:
        for held in gathered(source.batches(files, columns), CHUNK, CHUNK_BYTES):
            rows = pa.Table.from_batches(held)
            for follower, made in zip(followers, staged, strict=True):
                made.extend(follower.table.stage(follower.make(rows)))
        for follower, made in zip(followers, staged, strict=True):
            for file in made:
                follower.table.storage.restrict(file, files, of=source.storage)
    return staged


@contextmanager
def staging(tables: Iterable[Table]) -> Iterator[list[list[File]]]:
    """Yield a list of files for each table, which are removed when not all can be staged."""
    with ExitStack() as unless_staged:
        staged: list[list[File]] = []
        for table in tables:
            staged.append([])
            unless_staged.enter_context(table.discarded_unless_committed(staged[-1]))
        yield staged


def _paths(files: Iterable[File]) -> set[str]:
    return {file.path for file in files}


def _differences(found: pa.Schema, wanted: pa.Schema) -> str:
    kinds = {column.name: column.type for column in found}
    missing = [column.name for column in wanted if column.name not in kinds and not column.nullable]
    other = [column.name for column in wanted if kinds.get(column.name, column.type) != column.type]
    known = {name for column in wanted for name in names_of(column)}
    extra = [name for name in kinds if name not in known]
    words = (("without", missing), ("of another type", other), ("more", extra))
    return "; ".join(f"{word}: {', '.join(names)}" for word, names in words if names)


def _portions(files: Sequence[File]) -> list[list[File]]:
    """Return files of one bucket together, but not more of them than give one worker enough to do."""
    portions: list[list[File]] = []
    rows = PORTION
    for file in sorted(files, key=lambda file: (file.bucket, file.day, file.path)):
        if rows >= PORTION or file.bucket != portions[-1][0].bucket:
            portions.append([])
            rows = 0
        portions[-1].append(file)
        rows += file.rows
    return portions
