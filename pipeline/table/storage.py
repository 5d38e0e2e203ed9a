"""
Writing and reading of the files of a table, in a local folder or an object store.

A URI such as `s3://bucket/table` is reached through the object stores of deltalake, in Spark's Python workers, too.
Credentials come from the environment.
"""

import hashlib
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
from io import RawIOBase
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

from ..columns import Column, Numbers, gathered, numbers_of
from ..errors import DamagedFile, MissingFile, NotWritten, TableError, UnreachableTable, plain

SHARDS: Final = 16
"""Default number of shards that users are spread over: as many workers can replay a history at once."""
DAY_MS: Final = 86_400_000
EPOCH: Final = date(1970, 1, 1)
DAYS: Final = range((date.min - EPOCH).days, (date.max - EPOCH).days + 1)
"""Days since 1970 that are dates; a partition could hold others, an int32."""
BATCH: Final = 65_536
"""Number of rows that are read at once, and rows of a row group that is written."""
GROUP_BYTES: Final = 32 << 20
"""Size of a row group in memory, which a reader holds: a client id may have 32,767 bytes."""
RISING: Final = ("timestamp", "completed", "line", "position")
"""
Columns whose values grow from row to row, as in the lines of a log.

They are stored as differences, which take a fifth of the space and less time.
"""
VARIED: Final = ("identity", "correlation_id", "produce_bytes", "fetch_bytes")
"""Columns in which few rows have the same value. A dictionary would take more space and more time."""
_ADVICE: Final = {
    (
        r"(?i)expired|credential|unauthenti|unauthori[sz]ed|\b401\b|invalid ?(access ?key|token)|signature ?does ?not "
        r"?match|security ?token"
    ): "renew the credentials in the environment, and run this again",
    r"(?i)permission denied|access ?denied|forbidden|\b403\b|privilege|not permitted": (
        "let this user, or these credentials, read it, and run this again"
    ),
    (
        r"(?i)timed? ?-?out|timeout|connect|error sending request|dns|unreachable|slow "
        r"?down|\b(429|5\d\d) |stale file handle"
    ): "run this again when the storage answers",
}
"""Advice by patterns of the error messages of storages."""
_OTHERWISE: Final = "run this again; if it fails again, check the storage"
_DIGEST: Final = re.compile(r"-([0-9a-f]{32})\.parquet$")
"""
Digest in the name of a file: the begin of the SHA-256 of its bytes.

So a commit that lists a file also has the digest of its content.
"""
_BLOCK: Final = 1 << 20
"""Bytes of a file that are verified at once."""
ABSENT: Final = {ENOENT, ENOTDIR, ELOOP, ENAMETOOLONG}
"""Errors of the operating system about a path that leads nowhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLayout:
    """
    Division of the rows of a table among files: a file has rows of a single shard and a single day.

    Shards and days are small integers, so that no untrusted name is part of a path.
    """

    shard_of: str | None = None
    """Column of strings that are hashed to the shard; None for a table of one shard."""
    shards: int = 1
    """Number of shards; fixed when the table is created."""
    day_of: str | None = None
    """Column with ms since 1970: a file belongs to a UTC day; None for a table of one day."""


def by_user(shards: int, day_of: str) -> TableLayout:
    """
    Return the layout of the tables of a history with users.

    They all have the same number of shards, so that a table can be made from another one without a shuffle.
    """
    return TableLayout(shard_of="user", shards=shards, day_of=day_of)


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file of a table, with rows of one day and one shard. It never changes after its commit."""

    path: str
    """
    Path relative to the table, ending with a digest of the content.

    Paths of later appends of one day and shard sort later.
    """
    day: int
    """Days since 1970, UTC; 0 in a table without days."""
    shard: int
    """Number of the shard; 0 in a table without shards."""
    rows: int
    """Number of rows."""
    size: int
    """Size in bytes; a file of another size is damaged."""
    first_ms: int | None = None
    """Least value of the column that days are taken from, ms since 1970."""
    last_ms: int | None = None
    """Greatest value of that column."""

    def overlaps(self, begin: int, end: int) -> bool:
        """
        Return whether the file may have a row from `begin` to before `end`, ms since 1970.

        A file without statistics may.
        """
        return (self.first_ms is None or self.first_ms < end) and (self.last_ms is None or self.last_ms >= begin)


def shard_of(name: str, shards: int) -> int:
    """Return the shard of a name, the same in every process and release."""
    return crc32(name.encode("utf-8", "surrogatepass")) % shards


def shards_of(names: Column, shards: int) -> Numbers:
    """Return the shard of each name; null is taken for the empty name."""
    return numbers_of(names, lambda name: shard_of(name, shards))


def partitions_of(rows: pa.Table, layout: TableLayout) -> Numbers:
    """Return one number per row that is equal for rows of one file: `day * shards + shard`."""
    number = np.zeros(rows.num_rows, np.int64)
    if layout.day_of is not None:
        times = np.asarray(rows.column(layout.day_of).to_numpy(), np.int64)
        number = times // DAY_MS * layout.shards
    if layout.shard_of is not None:
        number = number + shards_of(rows.column(layout.shard_of), layout.shards)
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
        """True if the folder is of this machine, or is one that every machine mounts."""
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
        Write rows of one day and one shard to a new file, which no commit lists yet; one row group is in memory.

        Raises:
            NotWritten: the disk is full, or the folder cannot be written to. The incomplete file is removed.

        """
        day, shard = partition
        folder = f"day={day}/shard={shard}"
        path = f"{folder}/{time.time_ns():020d}-{secrets.token_hex(6)}.parquet"
        rising_names = [name for name in RISING if name in schema.names]
        plain_columns: Any = [name for name in schema.names if name not in (*RISING, *VARIED)]
        rows, times_ms = 0, list[int]()
        try:
            self.filesystem.create_dir(folder, recursive=True)
            with (
                _Digested(self.filesystem.open_output_stream(path)) as sink,
                pq.ParquetWriter(
                    pa.PythonFile(sink, "w"),
                    schema,
                    compression="zstd",
                    use_dictionary=plain_columns,
                    column_encoding=dict.fromkeys(rising_names, "DELTA_BINARY_PACKED"),
                    write_page_checksum=True,
                ) as writer,
            ):
                # a row group may grow to twice this size
                for held in gathered(batches, BATCH, GROUP_BYTES // 2):
                    group = pa.Table.from_batches(held)
                    writer.write_table(group, row_group_size=len(group))
                    rows += len(group)
                    if layout.day_of:
                        column_ms: Column = group.column(layout.day_of)
                        times_ms += [pc.min(column_ms).as_py(), pc.max(column_ms).as_py()]
            final_path = f"{path.removesuffix('.parquet')}-{sink.digest}.parquet"
            self.filesystem.move(path, final_path)
            path = final_path
            size = self.filesystem.get_file_info(path).size
        except BaseException as error:
            self.remove(path)
            if isinstance(error, OSError):
                raise NotWritten(self.uri, error) from error
            raise
        first_ms, last_ms = min(times_ms, default=None), max(times_ms, default=None)
        return File(path=path, day=day, shard=shard, rows=rows, size=size, first_ms=first_ms, last_ms=last_ms)

    def listing(self, folder: str) -> list[fs.FileInfo]:
        """Return the files of a folder, none where it is missing. Raises OSError."""
        selector = fs.FileSelector(folder, allow_not_found=True)
        try:
            return self.filesystem.get_file_info(selector)
        except FileNotFoundError:
            # Arrow lists first and then looks whether the folder is missing: another process has just created it.
            return self.filesystem.get_file_info(selector)

    def remove(self, path: str) -> None:
        """Remove a file, if it is there."""
        if self.filesystem.get_file_info(path).type is fs.FileType.File:
            self.filesystem.delete_file(path)

    def restrict(self, file: File, sources: Sequence[File], made_of: "Storage | None" = None) -> None:
        """
        Restrict the permissions of a local file to users who may read all of its sources.

        The sources are files of this table, or of `made_of`. If a source has another group than the file, the file's
        group has only the permissions that all users have.

        Raises:
            NotWritten: a source is gone, or its permissions cannot be read or set; the file is removed.

        """
        source_storage = made_of or self
        if self.is_local and source_storage.is_local:
            target = Path(self.uri, file.path)
            locations = (source_storage._place(source.path) for source in sources)  # noqa: SLF001 - of the same class
            places = (target, *(Path(place.uri, path) for place, path in locations))
            try:
                stats = [place.stat() for place in places]
                modes = [stat.S_IMODE(file_stat.st_mode) for file_stat in stats]
                mode = reduce(and_, modes)  # the permissions that all files have
                if any(file_stat.st_gid != stats[0].st_gid for file_stat in stats):
                    permissions_of_all_for_group = (mode & stat.S_IRWXO) << 3
                    mode &= ~stat.S_IRWXG | permissions_of_all_for_group
                if mode != modes[0]:  # some mounted storages refuse any
                    target.chmod(mode)
            except OSError as error:
                self.remove(file.path)
                raise NotWritten(self.uri, error) from error

    def batches(self, file: File, columns: pa.Schema) -> Iterator[pa.RecordBatch]:
        """
        Yield the rows of a committed file with the columns and types of a schema, in the schema's order.

        A column that the file lacks is null; other programs may have written the file.

        Raises:
            MissingFile: the file does not exist.
            DamagedFile: it has another size or other bytes than were committed, is no Parquet, or lacks values in a
                column without nulls.
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
                # the checksums of pages leave out their headers and the footer, which say how to read them
                if not _is_as_named(source, path):
                    raise DamagedFile(self.uri, file.path, "its bytes are not those that were committed")
                yield from _rows(source, columns, ahead=not self.is_local)
        except (OSError, ValueError, pa.ArrowException) as error:
            raise self._trouble(file.path, columns, error) from error

    def rows_of(self, path: str) -> int:
        """Return the number of rows of a committed file from its footer. Raises what `batches` raises."""
        place, name = self._place(path)
        try:
            return int(pq.read_metadata(name, filesystem=place.filesystem).num_rows)
        except (OSError, ValueError, pa.ArrowException) as error:
            raise self._trouble(path, pa.schema([]), error) from error

    def check(self, file: File, columns: pa.Schema) -> None:
        """Compare the bytes of a file with its digest, or decode a file without one. Raises what `batches` raises."""
        decoded = pa.schema([]) if _DIGEST.search(file.path) else columns
        for _ in self.batches(file, decoded):
            pass

    def missing(self, files: Sequence[File]) -> list[File]:
        """Return the files that do not exist, or have another size."""
        infos = self.filesystem.get_file_info([file.path for file in files]) if files else []
        return [file for file, info in zip(files, infos, strict=True) if info.size != file.size]

    def _place(self, path: str) -> tuple["Storage", str]:
        """Return the storage of a file, and the path in it; a shallow clone lists files of another folder by URI."""
        if not is_elsewhere(path):
            return self, path
        local = unquote(urlsplit(path).path) if path.startswith("file:") else path
        folder, _, name = local.rpartition("/")
        return Storage(folder), name

    def _trouble(self, path: str, columns: pa.Schema, error: Exception) -> TableError:
        """
        Return the error for a failed read of a file, by its cause.

        Arrow raises OSError for damaged Parquet, too, and object stores raise it without a code. So the bytes are read
        again: a file is only damaged if it can be read and cannot be decoded.
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
        except (OSError, ValueError, pa.ArrowException) as damage:  # a name that is not UTF-8 raises ValueError
            return DamagedFile(self.uri, path, damage)
        return unreachable(self, f"its file {path}", error)


class _Digested(RawIOBase):
    """A stream of Arrow, and the digest of all bytes written to it."""

    def __init__(self, stream: Any) -> None:  # noqa: ANN401 - Arrow's
        self._stream = stream
        self._hash = hashlib.sha256()

    @property
    def digest(self) -> str:
        """Digest as it stands in the file's name."""
        return self._hash.hexdigest()[:32]

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:  # noqa: ANN401 - bytes of Arrow
        self._hash.update(content)
        self._stream.write(content)
        return len(content)

    def tell(self) -> int:
        return int(self._stream.tell())

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()


def _is_as_named(source: Any, path: str) -> bool:  # noqa: ANN401 - a file of Arrow
    """Return whether the content of a file matches the digest in its name; files of other programs have no digest."""
    match = _DIGEST.search(path)
    if match is None:
        return True
    content = hashlib.sha256()
    while block := source.read_buffer(_BLOCK):
        content.update(block)
    source.seek(0)
    return content.hexdigest()[:32] == match[1]


def is_elsewhere(path: str) -> bool:
    """Return whether a path of a log is the URI of a file of another table, as in a shallow clone."""
    return re.match(r"/|[A-Za-z][A-Za-z0-9+.-]*:/", path) is not None


def unreachable(storage: Storage, what: str, error: Exception) -> UnreachableTable:
    """Return the error for a part of a table (`what`) that could not be read, and is not known to be damaged."""
    return UnreachableTable(storage.uri, what, error, _advice(storage, error) or _OTHERWISE)


def is_unreachable(storage: Storage, error: Exception) -> bool:
    """Return whether an error was caused by permissions, credentials or the storage."""
    if storage.is_local:
        return _code(error) not in {None, *ABSENT}
    return _advice(storage, error) is not None


def _advice(storage: Storage, error: Exception) -> str | None:
    """Return the advice for an error by its message, without the table's name, which may match any pattern; or None."""
    text = plain(error).replace(storage.uri, "")
    if storage.is_local:
        code = _code(error)
        text = "" if code is None else os.strerror(code)
    return next((advice for cause, advice in _ADVICE.items() if re.search(cause, text)), None)


def _code(error: Exception) -> int | None:
    """Return the operating system's error number, which deltalake only has in its message; None without one."""
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno
    match = re.search(r"\(os error (\d+)\)", str(error))
    return int(match.group(1)) if match else None


def _rows(source: Any, schema: pa.Schema, *, ahead: bool) -> Iterator[pa.RecordBatch]:  # noqa: ANN401 - a file of Arrow
    """
    Yield the rows of a file, one row group after the other, whose size the writer has bounded.

    With `ahead`, a row group is read in few requests, for object stores. On a disk that takes a third more CPU time, as
    threads would for row groups of this size.
    """
    footer = pq.read_metadata(source)
    stored = footer.schema.to_arrow_schema().names
    names = [column.name for column in schema if column.name in stored]
    encoded = [column.name for column in schema if column.name in stored and pa.types.is_dictionary(column.type)]
    with pq.ParquetFile(
        source, metadata=footer, read_dictionary=encoded, pre_buffer=ahead, page_checksum_verification=True
    ) as opened:
        for group in range(opened.num_row_groups):
            for batch in opened.iter_batches(BATCH, row_groups=[group], columns=names, use_threads=False):
                columns = [_values(batch, column) for column in schema]
                yield pa.record_batch(columns, schema=schema)


def _values(batch: pa.RecordBatch, column: "pa.Field[Any]") -> Column:
    """
    Return the values of a column with its type; null if the batch lacks it.

    Raises `ArrowInvalid` if a column that must not have nulls has one, as in files of other programs.
    """
    values: Column = pa.nulls(len(batch), column.type)
    if column.name in batch.schema.names:
        values = batch.column(column.name).cast(column.type)
    if values.null_count and not column.nullable:
        raise pa.ArrowInvalid(f"column {column.name} has no value in {values.null_count} rows")
    return values
