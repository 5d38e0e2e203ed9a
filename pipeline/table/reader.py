"""What readers see of a table: the files that its last commit lists, and nothing else."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from typing import Self

import pyarrow as pa

from ..errors import OtherSchema
from .compaction import merged_files
from .file import File
from .layout import Layout
from .log import Log
from .storage import Storage


class Reader:
    """
    A committed table to read.

    It can be sent to other processes, which then see what is committed when they look.

    Args:
        storage: where it lies.
        schema: the columns of its files.
        layout: how rows are spread over files, and their order.

    """

    def __init__(self, storage: Storage, schema: pa.Schema, layout: Layout) -> None:
        self.storage: Storage = storage
        self.schema: pa.Schema = schema
        self.layout: Layout = layout

    def __reduce__(self) -> tuple[type[Self], tuple[Storage, pa.Schema, Layout]]:
        return type(self), (self.storage, self.schema, self.layout)

    @classmethod
    def create(
        cls,
        path: str,
        schema: pa.Schema,
        layout: Layout,
        options: Mapping[str, str] | None = None,
    ) -> Self:
        """
        Make a table, or open the one that is there, whose layout then counts.

        Args:
            path: a folder, or a URI such as `s3://bucket/table` that deltalake knows.
            schema: the columns; none may be called `day` or `bucket`.
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
        return cls(storage, schema, log.layout)

    @classmethod
    def open(cls, path: str, options: Mapping[str, str] | None = None) -> Self:
        """
        Open a table.

        Raises:
            NoTable: there is none.
            UnreadableTable: its log is damaged, or of another program.

        """
        storage = Storage(path, options or {})
        log = Log.open(storage)
        return cls(storage, log.schema, log.layout)

    @property
    def identity(self) -> str:
        """What tells this table from another one made later at the same place."""
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
        """Whether a batch was committed; of the epochs of one id those up to the last one were."""
        last = self.last_epoch(batch_id)
        return last is not None and epoch <= last

    def last_epoch(self, batch_id: str) -> int | None:
        """Return the last epoch of a batch id that was added; None if none was."""
        return self._current().epoch_of(batch_id)

    def added_since(self, version: int | None) -> tuple[int, tuple[File, ...]]:
        """
        Return the last commit's number, and the files with rows that came after an earlier one; None gives all files.

        What was compacted since is told as it was before.

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
        yield from merged_files(self.storage, files, self.layout, columns)

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

    @cached_property
    def _log(self) -> Log:
        return Log.open(self.storage)

    def _current(self) -> Log:
        if "_log" in self.__dict__:
            self._log.refresh()
        return self._log


def _differences(found: pa.Schema, wanted: pa.Schema) -> str:
    kinds = {column.name: column.type for column in found}
    missing = [column.name for column in wanted if column.name not in kinds]
    other = [
        column.name
        for column in wanted
        if kinds.get(column.name, column.type) != column.type
    ]
    extra = [name for name in kinds if name not in wanted.names]
    words = (("without", missing), ("of another type", other), ("more", extra))
    return "; ".join(f"{word}: {', '.join(names)}" for word, names in words if names)
