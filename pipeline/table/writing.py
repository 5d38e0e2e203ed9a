"""Writes rows as sorted files that no reader sees before they are committed."""

import re
import secrets
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..errors import NotWritten
from .layout import (
    FIRST_DAY,
    LAST_DAY,
    Column,
    File,
    TableLayout,
    partitions_of,
    sorted_by,
)
from .storage import Storage

ROW_GROUP: Final = 65_536
"""Rows of a row group, for which a file has the least and greatest values."""

GROUP_BYTES: Final = 32 << 20
"""Of a row group in memory: readers hold one of each file, and a client id may have 32,767 bytes."""
CHUNK_BYTES: Final = 64 << 20
"""Of rows that are sorted, or made into others, at once; this takes several times as much."""

_NAME: Final = re.compile(r"\d{20}-[0-9a-f]{12}\.parquet")


def bounded(
    batch: pa.RecordBatch, rows: int, most_bytes: int
) -> Iterator[pa.RecordBatch]:
    """Cut a batch into slices within a number of rows and bytes, or of one row; in order."""
    for start in range(0, batch.num_rows, rows):
        part = batch.slice(start, rows)
        if part.nbytes <= most_bytes or part.num_rows == 1:
            yield part
        else:
            yield from bounded(part, -(-part.num_rows // 2), most_bytes)


def gathered(
    batches: Iterable[pa.RecordBatch], rows: int, most_bytes: int
) -> Iterator[list[pa.RecordBatch]]:
    """Batches, cut by ``bounded``, in groups that end with the one that reaches the number of rows or bytes; in order."""
    held: list[pa.RecordBatch] = []
    count = weight = 0
    for batch in batches:
        for piece in bounded(batch, rows, most_bytes):
            held.append(piece)
            count += piece.num_rows
            weight += piece.nbytes
            if count >= rows or weight >= most_bytes:
                yield held
                held, count, weight = [], 0, 0
    if held:
        yield held


@dataclass(frozen=True, kw_only=True)
class Writer:
    """Writes files of one table."""

    storage: Storage
    schema: pa.Schema
    layout: TableLayout

    def write(self, rows: pa.Table) -> list[File]:
        """
        Write rows as one sorted file for each day and bucket among them; rows are held in memory.

        Raises:
            NotWritten: the disk is full, the folder cannot be written to, or a time is of no day of a calendar. Nothing of it stays.

        """
        files: list[File] = []
        with self._undone_on_error(files):
            for part, sorted_rows in self._parts(rows):
                files.append(self.write_sorted(part, sorted_rows.to_batches()))
        return files

    def write_sorted(
        self,
        part: tuple[int, int],
        batches: Iterable[pa.RecordBatch],
        name: str | None = None,
    ) -> File:
        """Write batches as they come into one file of a day and a bucket."""
        day, bucket = part
        folder = f"day={day}/bucket={bucket}"
        path = f"{folder}/{name or new_name()}"
        with self._undone_on_error([], path):
            self.storage.make_folder(folder)
            rows, span = self._stream(path, batches)
            size = self.storage.filesystem.get_file_info(path).size
        return File(
            path=path,
            day=day,
            bucket=bucket,
            rows=rows,
            size=size,
            first=span[0],
            last=span[1],
        )

    def discard(self, files: Iterable[File]) -> None:
        """Remove files that will not be committed."""
        for file in files:
            self.storage.remove(file.path)

    def _parts(self, rows: pa.Table) -> Iterator[tuple[tuple[int, int], pa.Table]]:
        if not rows.num_rows:
            return
        parts = partitions_of(rows, self.layout)
        days = parts // self.layout.buckets
        for each in (int(days.min()), int(days.max())):
            if not FIRST_DAY <= each <= LAST_DAY:  # no reader could make a date of it
                why = f"day {each} since 1970 is in no calendar"
                raise NotWritten(self.storage.uri, why)
        positions = sorted_by(rows, self.layout.order, parts)
        of_sorted = parts[positions]
        starts = np.flatnonzero(np.diff(of_sorted, prepend=of_sorted[0] - 1))
        for start, end in zip(starts, [*starts[1:], len(parts)], strict=True):
            day, bucket = divmod(int(of_sorted[start]), self.layout.buckets)
            of_part: Column = pa.array(positions[start:end])
            yield (day, bucket), rows.take(of_part)

    def _stream(
        self, path: str, batches: Iterable[pa.RecordBatch]
    ) -> tuple[int, tuple[int | None, int | None]]:
        rows, spans = 0, list[int]()
        places = (self.schema.get_field_index(name) for name in self.layout.order)
        sorting = [pq.SortingColumn(place) for place in places]
        with (
            self.storage.filesystem.open_output_stream(path) as sink,
            pq.ParquetWriter(
                sink, self.schema, compression="zstd", sorting_columns=sorting
            ) as writer,
        ):
            for batch in batches:
                for group in bounded(batch, ROW_GROUP, GROUP_BYTES):
                    writer.write_batch(group, row_group_size=ROW_GROUP)
                rows += batch.num_rows
                if self.layout.day_of and batch.num_rows:
                    times: Column = batch.column(self.layout.day_of)
                    spans += [pc.min(times).as_py(), pc.max(times).as_py()]
        return rows, (min(spans, default=None), max(spans, default=None))

    @contextmanager
    def _undone_on_error(self, files: list[File], *paths: str) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            for path in (*paths, *(file.path for file in files)):
                self.storage.remove(path)
            if isinstance(error, OSError):
                raise NotWritten(self.storage.uri, str(error)) from error
            raise


def new_name(of_age: str | None = None) -> str:
    """Return a name that no other file has, and that sorts after those made before, or as another one does."""
    stamp = f"{time.time_ns():020d}" if of_age is None else of_age.partition("-")[0]
    return f"{stamp}-{secrets.token_hex(6)}.parquet"


def is_ours(name: str) -> bool:
    """Whether a file name is one that `new_name` returns: its rows are in order."""
    return _NAME.fullmatch(name) is not None
