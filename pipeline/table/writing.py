"""Writes rows as files that no reader sees before they are committed."""

import secrets
import time
from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..errors import NotWritten
from .layout import Column, File, TableLayout
from .storage import BATCH, Storage

GROUP_BYTES: Final = 32 << 20
"""Of a row group in memory, which a reader holds: a client id may have 32,767 bytes."""
RISING: Final = ("timestamp", "completed", "line", "position")
"""Columns that grow from row to row, as lines of a log do: their differences take a fifth of the room, and less time."""
CHUNK_BYTES: Final = 64 << 20
"""Of rows that are written, or made into others, at once; this takes several times as much."""


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


def written(
    storage: Storage,
    layout: TableLayout,
    partition: tuple[int, int],
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
) -> File:
    """
    Write rows of a day and a bucket into a new file, in the memory of a row group.

    Raises:
        NotWritten: the disk is full, or the folder cannot be written to. Nothing of it stays.

    """
    day, bucket = partition
    folder = f"day={day}/bucket={bucket}"
    path = f"{folder}/{time.time_ns():020d}-{secrets.token_hex(6)}.parquet"
    rising = [name for name in RISING if name in schema.names]
    others: Any = [name for name in schema.names if name not in rising]
    rows, spans = 0, list[int]()
    try:
        storage.make_folder(folder)
        with (
            storage.filesystem.open_output_stream(path) as sink,
            pq.ParquetWriter(
                sink,
                schema,
                compression="zstd",
                use_dictionary=others,
                column_encoding=dict.fromkeys(rising, "DELTA_BINARY_PACKED"),
            ) as writer,
        ):
            # a group may become twice what it ends with
            for held in gathered(batches, BATCH, GROUP_BYTES // 2):
                group = pa.Table.from_batches(held)
                writer.write_table(group, row_group_size=len(group))
                rows += len(group)
                if layout.day_of:
                    times: Column = group.column(layout.day_of)
                    spans += [pc.min(times).as_py(), pc.max(times).as_py()]
        size = storage.filesystem.get_file_info(path).size
    except BaseException as error:
        storage.remove(path)
        if isinstance(error, OSError):
            raise NotWritten(storage.uri, str(error)) from error
        raise
    return File(
        path=path,
        day=day,
        bucket=bucket,
        rows=rows,
        size=size,
        first=min(spans, default=None),
        last=max(spans, default=None),
    )
