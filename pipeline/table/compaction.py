"""Merges the files of a bucket and a day into one, in order."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

import pyarrow as pa

from .file import File, reading_order
from .layout import Layout
from .merging import merged
from .storage import Storage
from .writing import Writer, new_name


def compactable(files: Iterable[File]) -> list[list[File]]:
    """Return the files of each bucket and day that has more than one."""
    parts = groupby(sorted(files, key=reading_order), key=_part)
    groups = [list(of_part) for _, of_part in parts]
    return [group for group in groups if len(group) > 1]


def compact(writer: Writer, files: Sequence[File]) -> File:
    """
    Write one file with the rows of files of one bucket and day; it is not committed.

    Its name is of the age of the oldest, so that rows that are equal in the order stay as they were appended.
    """
    name = new_name(of_age=min(file.name for file in files))
    batches = merged_files(writer.storage, files, writer.layout)
    if writer.layout.sums:
        batches = (add_up(batch, writer.layout) for batch in batches)
    merged_file = writer.write_sorted(_part(files[0]), batches, name)
    writer.storage.restrict(merged_file, files)
    return merged_file


def merged_files(
    storage: Storage,
    files: Iterable[File],
    layout: Layout,
    columns: Sequence[str] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of files in their common order."""
    needed = None if columns is None else [*dict.fromkeys((*columns, *layout.order))]
    ordered = sorted(files, key=reading_order)
    streams = [storage.batches(file, needed) for file in ordered]
    for batch in merged(streams, layout.order):
        yield batch if columns is None else batch.select(list(columns))


def _part(file: File) -> tuple[int, int]:
    return file.day, file.bucket


def add_up(batch: pa.RecordBatch, layout: Layout) -> pa.RecordBatch:
    """Return one row for each key of the order, in the order in which they came, with the sums of the other columns."""
    rows = pa.Table.from_batches([batch])
    sums: Any = [(name, "sum") for name in layout.sums]
    grouped = rows.group_by(list(layout.order), use_threads=False).aggregate(sums)
    named = grouped.rename_columns(
        [name.removesuffix("_sum") for name in grouped.column_names]
    )
    summed = named.select(rows.column_names).cast(rows.schema)
    return summed.combine_chunks().to_batches()[0]
