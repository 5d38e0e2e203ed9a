"""
Where the rows and files of a table lie, and how these are written and read.

A local path needs nothing else. A URI such as `s3://bucket/table` is reached through deltalake's own object stores, in Spark's Python
workers too; credentials come from the environment.
"""

import os
import re
import secrets
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from errno import ELOOP, ENAMETOOLONG, ENOENT, ENOTDIR
from functools import cached_property, reduce
from itertools import chain
from operator import and_
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from ..columns import Column, Numbers, gathered, names_of, numbers_of
from ..errors import DamagedFile, MissingFile, NotWritten, TableError, UnreachableTable, plain

BUCKETS: Final = 16
"""Into how many buckets users are spread by default: as many workers can replay a history at once."""
DAY_MS: Final = 86_400_000
EPOCH: Final = date(1970, 1, 1)
DAYS: Final = range((date.min - EPOCH).days, (date.max - EPOCH).days + 1)
"""Days since 1970 that are dates; a partition could hold others, an int32."""
BATCH: Final = 65_536
"""Rows that are read at once, and of a row group that is written."""
GROUP_BYTES: Final = 32 << 20
"""Of a row group in memory, which a reader holds: a client id may have 32,767 bytes."""
RISING: Final = ("timestamp", "completed", "line", "position")
"""Columns that grow from row to row, as lines of a log do: their differences take a fifth of the room, and less time."""
VARIED: Final = ("identity", "correlation_id", "produce_bytes", "fetch_bytes")
"""Columns of which few rows have the same value: with a dictionary they take more room, and more time."""
_ADVICE: Final = {
    r"(?i)expired|credential|unauthenti|unauthori[sz]ed|\b401\b|invalid ?(access ?key|token)|signature ?does ?not ?match|security ?token": "renew the credentials in the environment, and run this again",
    r"(?i)permission denied|access ?denied|forbidden|\b403\b|privilege|not permitted": "let this user, or these credentials, read it, and run this again",
    r"(?i)timed? ?-?out|timeout|connect|error sending request|dns|unreachable|slow ?down|\b(429|5\d\d) |stale file handle": "run this again when the storage answers",
}
"""What helps, by what storages say."""
_OTHERWISE: Final = "run this again; if it fails again, check the storage"
ABSENT: Final = {ENOENT, ENOTDIR, ELOOP, ENAMETOOLONG}
"""Errors of the operating system about a path that leads nowhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLayout:
    """
    The partitions of a table.

    A file holds rows of one bucket and one day only. Both are small integers: an untrusted name is never part of a path.
    """

    bucket_of: str | None = None
    """Column of strings that are hashed to the bucket; None for a table of one bucket."""
    buckets: int = 1
    """How many buckets there are; fixed when the table is made."""
    day_of: str | None = None
    """Column with ms since 1970: a file belongs to a UTC day; None for a table of one day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """One file: complete, of one day and one bucket, never changed once it is committed."""

    path: str
    """Relative to the table; of files of one day and bucket, those of later appends sort after those of earlier ones."""
    day: int
    """Days since 1970, UTC; 0 in a table without days."""
    bucket: int
    """Number of the bucket; 0 in a table without."""
    rows: int
    """How many rows it holds."""
    size: int
    """Bytes; a file of another size is damaged."""
    first: int | None = None
    """Least value of the column that days are taken from, ms since 1970."""
    last: int | None = None
    """Greatest value of that column."""

    def overlaps(self, begin: int, end: int) -> bool:
        """Whether it may have a row from one time to before another, ms since 1970: one without statistics may."""
        return (self.first is None or self.first < end) and (self.last is None or self.last >= begin)


def bucket_of(name: str, buckets: int) -> int:
    """Return the bucket of a name, the same in every process and release."""
    return crc32(name.encode("utf-8", "surrogatepass")) % buckets


def buckets_of(names: Column, buckets: int) -> Numbers:
    """Return the bucket of each name; null is taken for the empty name."""
    return numbers_of(names, lambda name: bucket_of(name, buckets))


def partitions_of(rows: pa.Table, layout: TableLayout) -> Numbers:
    """Return one number per row that is equal for rows of one file: `day * buckets + bucket`."""
    number = np.zeros(rows.num_rows, np.int64)
    if layout.day_of is not None:
        times = np.asarray(rows.column(layout.day_of).to_numpy(), np.int64)
        number = times // DAY_MS * layout.buckets
    if layout.bucket_of is not None:
        number = number + buckets_of(rows.column(layout.bucket_of), layout.buckets)
    return number


@dataclass(frozen=True)
class Storage:
    """The folder of a table; it can be sent to other processes."""

    uri: str
    """A local path, or a URI that deltalake knows."""

    def __reduce__(self) -> tuple[type["Storage"], tuple[str]]:
        return Storage, (self.uri,)

    @property
    def is_local(self) -> bool:
        """Whether it is a folder of this machine, or one that every machine mounts."""
        return "://" not in self.uri

    @cached_property
    def filesystem(self) -> fs.FileSystem:
        """The folder as a file system of its own."""
        if self.is_local:
            return fs.SubTreeFileSystem(str(Path(self.uri).absolute()), fs.LocalFileSystem())
        from deltalake.fs import DeltaStorageHandler  # noqa: PLC0415 - local tables are read without it

        return fs.PyFileSystem(DeltaStorageHandler(self.uri))

    def write(
        self, layout: TableLayout, partition: tuple[int, int], schema: pa.Schema, batches: Iterable[pa.RecordBatch]
    ) -> File:
        """
        Write rows of a day and a bucket into a new file that no commit lists yet, in the memory of a row group.

        Raises:
            NotWritten: the disk is full, or the folder cannot be written to. Nothing of it stays.

        """
        day, bucket = partition
        folder = f"day={day}/bucket={bucket}"
        path = f"{folder}/{time.time_ns():020d}-{secrets.token_hex(6)}.parquet"
        rising = [name for name in RISING if name in schema.names]
        others: Any = [name for name in schema.names if name not in (*RISING, *VARIED)]
        rows, spans = 0, list[int]()
        try:
            self.filesystem.create_dir(folder, recursive=True)
            with pq.ParquetWriter(
                path,
                schema,
                filesystem=self.filesystem,
                compression="zstd",
                use_dictionary=others,
                column_encoding=dict.fromkeys(rising, "DELTA_BINARY_PACKED"),
            ) as writer:
                # a group may become twice what it ends with
                for held in gathered(batches, BATCH, GROUP_BYTES // 2):
                    group = pa.Table.from_batches(held)
                    writer.write_table(group, row_group_size=len(group))
                    rows += len(group)
                    if layout.day_of:
                        times: Column = group.column(layout.day_of)
                        spans += [pc.min(times).as_py(), pc.max(times).as_py()]
            size = self.filesystem.get_file_info(path).size
        except BaseException as error:
            self.remove(path)
            if isinstance(error, OSError):
                raise NotWritten(self.uri, error) from error
            raise
        first, last = min(spans, default=None), max(spans, default=None)
        return File(path=path, day=day, bucket=bucket, rows=rows, size=size, first=first, last=last)

    def remove(self, path: str) -> None:
        """Remove a file, if it is there."""
        if self.filesystem.get_file_info(path).type is fs.FileType.File:
            self.filesystem.delete_file(path)

    def restrict(self, file: File, sources: Sequence[File], of: "Storage | None" = None) -> None:
        """
        Let only those read a file who may read all of those that it was made of, `of` this table or another; of folders of this machine.

        A file of another group than one of those keeps no permission for its group, unless all users have it.

        Raises:
            NotWritten: a source is gone, or its permissions cannot be read or set; the file is removed.

        """
        source = of or self
        if self.is_local and source.is_local:
            made = Path(self.uri, file.path)
            found = (source._place(each.path) for each in sources)  # noqa: SLF001 - of the same class
            places = (made, *(Path(place.uri, path) for place, path in found))
            try:
                about = [place.stat() for place in places]
                modes = [stat.S_IMODE(each.st_mode) for each in about]
                mode = reduce(and_, modes)
                if any(each.st_gid != about[0].st_gid for each in about):
                    mode &= ~stat.S_IRWXG | (mode & stat.S_IRWXO) << 3
                if mode != modes[0]:  # some mounted storages refuse any
                    made.chmod(mode)
            except OSError as error:
                self.remove(file.path)
                raise NotWritten(self.uri, error) from error

    def batches(self, file: File, columns: pa.Schema) -> Iterator[pa.RecordBatch]:
        """
        Yield the rows of a committed file with the columns of a schema, of its types and in its order.

        A column has the values of the one of the same name, else of the one that it had formerly (`FORMERLY`), else null.

        Raises:
            MissingFile: it is gone.
            DamagedFile: it has another size than was committed, is no Parquet, or lacks values that no row of the table lacks.
            UnreachableTable: it could not be read, and nothing says that it is damaged.

        """
        place, path = self._place(file.path)
        try:
            info = place.filesystem.get_file_info(path)
            if info.type is fs.FileType.NotFound:
                raise MissingFile(self.uri, file.path)
            if info.size != file.size:
                about = f"it has {info.size} bytes, {file.size} were committed"
                raise DamagedFile(self.uri, file.path, about)
            with place.filesystem.open_input_file(path) as source:
                yield from _rows(source, columns, ahead=not self.is_local)
        except (OSError, pa.ArrowException) as error:
            raise self._trouble(file.path, columns, error) from error

    def rows_of(self, path: str) -> int:
        """Return how many rows a committed file holds, as its footer says. Raises what `batches` raises."""
        place, name = self._place(path)
        try:
            return int(pq.read_metadata(name, filesystem=place.filesystem).num_rows)
        except (OSError, pa.ArrowException) as error:
            raise self._trouble(path, pa.schema([]), error) from error

    def _place(self, path: str) -> tuple["Storage", str]:
        """Where a file of the table lies: here, or in the folder of its URI, as in a shallow clone."""
        if not is_elsewhere(path):
            return self, path
        local = unquote(urlsplit(path).path) if path.startswith("file:") else path
        folder, _, name = local.rpartition("/")
        return Storage(folder), name

    def _trouble(self, path: str, columns: pa.Schema, error: Exception) -> TableError:
        """
        What an error while reading a file means.

        Arrow raises OSError for broken Parquet as well, and object stores raise it without a code. So the bytes are read once more: only
        what can be read, and not be decoded, is damaged.
        """
        place, name = self._place(path)
        try:
            with place.filesystem.open_input_file(name) as source:
                content = source.read_buffer()
        except FileNotFoundError:
            return MissingFile(self.uri, path)
        except (OSError, pa.ArrowException) as again:
            return unreachable(self, f"its file {path}", error if is_unreachable(self, error) else again)
        try:
            for _ in _rows(pa.BufferReader(content), columns, ahead=False):
                pass
        except (OSError, pa.ArrowException) as damage:
            return DamagedFile(self.uri, path, damage)
        return unreachable(self, f"its file {path}", error)


def is_elsewhere(path: str) -> bool:
    """Whether a path of a log is the URI of a file of another table, as in a shallow clone."""
    return re.match(r"/|[A-Za-z][A-Za-z0-9+.-]*:/", path) is not None


def unreachable(storage: Storage, what: str, error: Exception) -> UnreachableTable:
    """Return an error for what could not be read though nothing says that it is damaged; `what` is a part of the table."""
    return UnreachableTable(storage.uri, what, error, _advice(storage, error) or _OTHERWISE)


def is_unreachable(storage: Storage, error: Exception) -> bool:
    """Whether an error says that permission, credentials or the storage are in the way."""
    if storage.is_local:
        return _code(error) not in {None, *ABSENT}
    return _advice(storage, error) is not None


def _advice(storage: Storage, error: Exception) -> str | None:
    """What to do about an error; a folder may be called anything, so that names are not looked at."""
    said = plain(error).replace(storage.uri, "")
    if storage.is_local:
        code = _code(error)
        said = "" if code is None else os.strerror(code)
    return next((advice for cause, advice in _ADVICE.items() if re.search(cause, said)), None)


def _code(error: Exception) -> int | None:
    """The operating system's number of an error; deltalake has it in its text only."""
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno
    found = re.search(r"\(os error (\d+)\)", str(error))
    return int(found.group(1)) if found else None


def _rows(source: Any, schema: pa.Schema, *, ahead: bool) -> Iterator[pa.RecordBatch]:  # noqa: ANN401 - a file of Arrow
    """
    A row group at a time, which writers bound by bytes as well; a batch of rows of several of them is not.

    To read ahead spares an object store requests. Of a disk it takes a third more CPU time, as threads do for row groups of this size.
    """
    footer = pq.read_metadata(source)
    there = footer.schema.to_arrow_schema().names
    names = [[name for name in names_of(column) if name in there] for column in schema]
    encoded = [each.name for each in schema if each.name in there and pa.types.is_dictionary(each.type)]
    with pq.ParquetFile(source, metadata=footer, read_dictionary=encoded, pre_buffer=ahead) as opened:
        for group in range(opened.num_row_groups):
            for batch in opened.iter_batches(BATCH, row_groups=[group], columns=[*chain(*names)], use_threads=False):
                columns = [_values(batch, held, column) for held, column in zip(names, schema, strict=True)]
                yield pa.record_batch(columns, schema=schema)


def _values(batch: pa.RecordBatch, names: Sequence[str], column: "pa.Field[Any]") -> Column:
    """A column's values; other programs leave it open whether one may be null. Raises `ArrowInvalid` where it may not."""
    found: list[Column] = [batch.column(name).cast(column.type) for name in names]
    # files that were merged may have a column under both names
    values: Column = found[0] if len(found) == 1 else pc.coalesce(*found, pa.nulls(len(batch), column.type))
    if values.null_count and not column.nullable:
        raise pa.ArrowInvalid(f"column {column.name} has no value in {values.null_count} rows")
    return values
